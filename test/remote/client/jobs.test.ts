/** Background jobs on a host, over links and clients that end. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalTools } from "../../../src/remote/client/tools/local.ts";
import type { JobRequest } from "../../../src/tools/tool.ts";
import { until } from "../../until.ts";
import { FakeHost } from "./host.ts";
import { TestSession } from "./session.ts";

let host: FakeHost;
let folder: string;
let tools: LocalTools;
const sessions: TestSession[] = [];
const signal = () => AbortSignal.timeout(30_000);

beforeEach(() => {
  host = new FakeHost();
  folder = mkdtempSync(join(tmpdir(), "ollie-tools-"));
  tools = new LocalTools([folder]);
  writeFileSync(join(folder, "sh"), '#!/bin/sh\neval "$OLLIE_ARG_SCRIPT"\n');
  chmodSync(join(folder, "sh"), 0o755);
  const args = { type: "object", properties: { script: { type: "string" }, detach: { type: "boolean" } } };
  writeFileSync(join(folder, "sh.meta"), JSON.stringify({ description: "sh", args }));
});

afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
  host.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function open(locator?: TestSession["locator"]): Promise<TestSession> {
  const session = new TestSession(host, tools, locator);
  sessions.push(session);
  await session.ready();
  return session;
}

/** Starts a job; resolves with the id of its operation and what the model is told. */
async function start(session: TestSession, script: string) {
  let opId = "";
  const jobs = {
    start: () => Promise.reject(new Error("not here")),
    startThere: async (id: string, _: JobRequest, begin: () => Promise<void>) => {
      opId = id;
      await begin();
      return { id: "7" };
    },
  };
  const outcome = await session.call("sh", { script, detach: true }, { ctx: { jobs } });
  return { opId, outcome };
}

describe("a job on a host", () => {
  test("is started, listed and read, and ends by itself", async () => {
    const session = await open();
    const { opId, outcome } = await start(session, "echo one; sleep 0.3; echo two; exit 3");
    expect(outcome.ok).toBe(true);
    expect(outcome.text).toStartWith("Job 7 runs in the background.");
    expect(outcome.text).toEndWith("[on alice@h1]");
    expect(session.jobs.list().map((job) => job.opId)).toEqual([opId]);
    const job = session.jobs.get(opId)!;
    expect(await job.ended(signal())).toEqual({ how: "exited", detail: "3" });
    expect((await job.read(0, 1000, signal())).bytes.toString()).toBe("one\ntwo\n");
    const part = await job.read(4, 1000, signal());
    expect([part.bytes.toString(), part.next]).toEqual(["two\n", 8]);
  }, 60_000);

  test("outlives the daemon and the client, and is found again", async () => {
    const first = await open();
    const { opId } = await start(first, "touch begun; sleep 2; echo done");
    await until("it has begun", () => existsSync(join(host.project, "begun")));
    first.close();
    host.killDaemons();
    const second = await open(first.locator);
    const job = second.jobs.get(opId)!;
    expect(job.ending).toBeUndefined();
    expect(await job.ended(signal())).toEqual({ how: "exited", detail: "0" });
    expect((await job.read(0, 1000, signal())).bytes.toString()).toBe("done\n");
  }, 60_000);

  test("is ended when it is told to, with all that it has started", async () => {
    const session = await open();
    const { opId } = await start(session, "sleep 60 & sleep 60");
    const job = session.jobs.get(opId)!;
    await job.kill(signal());
    expect(await job.ended(signal())).toMatchObject({ how: "killed" });
  }, 60_000);

  test("goes on while the link is lost, and its end is learnt afterwards", async () => {
    const session = await open();
    const { opId } = await start(session, "sleep 0.5");
    host.dropLink();
    expect(await session.jobs.get(opId)!.ended(signal())).toEqual({ how: "exited", detail: "0" });
  }, 60_000);
});
