/** Tools on a host that is this machine, over links, bridges and daemons that end when the test says so. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalTools } from "../../../src/remote/client/tools/local.ts";
import { until } from "../../until.ts";
import { FakeHost } from "./host.ts";
import { TestSession } from "./session.ts";

let host: FakeHost;
let folder: string;
let tools: LocalTools;
const sessions: TestSession[] = [];

/** A tool that runs its argument `script` with sh. */
function addTool(name: string, script: string, meta: object = {}): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
  const args = { type: "object", properties: { script: { type: "string" }, detach: { type: "boolean" } } };
  writeFileSync(join(folder, `${name}.meta`), JSON.stringify({ description: name, args, ...meta }));
}

function open(locator?: TestSession["locator"]): TestSession {
  const session = new TestSession(host, tools, locator);
  sessions.push(session);
  return session;
}

async function ready(): Promise<TestSession> {
  const session = open();
  await session.ready();
  return session;
}

/** Waits for something that will come, or for the test's own time limit. */
const path = (name: string) => join(host.project, name);
const written = (name: string) => existsSync(path(name));

beforeEach(() => {
  host = new FakeHost();
  folder = mkdtempSync(join(tmpdir(), "ollie-tools-"));
  mkdirSync(folder, { recursive: true });
  addTool("sh", 'eval "$OLLIE_ARG_SCRIPT"');
  tools = new LocalTools([folder]);
});

afterEach(() => {
  for (const session of sessions.splice(0)) session.close();
  host.remove();
  rmSync(folder, { recursive: true, force: true });
});

describe("tools of a host", () => {
  test("are those of here, run there, and say where", async () => {
    const session = await ready();
    expect(session.line).toBe("ready alice@h1");
    expect(session.hands.registry.list().map(({ name }) => name)).toEqual(["sh"]);
    const outcome = await session.call("sh", { script: "echo hello; pwd" });
    expect(outcome).toMatchObject({ ok: true, text: `hello\n${host.project}\n[on alice@h1]` });
    expect(session.printed).toBe(`hello\n${host.project}\n`);
  }, 60_000);

  test("say how they ended", async () => {
    const session = await ready();
    expect((await session.call("sh", { script: "exit 3" })).text).toEndWith("[exit 3, on alice@h1]");
  }, 60_000);

  test("are the new ones soon after they have changed here", async () => {
    const session = await ready();
    addTool("hello", "echo first");
    await until("the tools are there", () => session.hands.registry.get("hello") !== undefined);
    expect((await session.call("hello", {})).text).toStartWith("first\n");
    addTool("hello", "echo second");
    await until("it is ready with its tools", () => session.line.startsWith("ready") && tools !== undefined);
    const text = async () => (await session.call("hello", {})).text;
    while (!(await text()).startsWith("second")) await Bun.sleep(50);
  }, 60_000);
});

describe("a call whose link is lost", () => {
  test("goes on there, and its output comes without a gap and nothing twice", async () => {
    const session = await ready();
    const script = "echo run >> runs; for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.2; done";
    const call = session.call("sh", { script });
    await until("its third line", () => session.printed.includes("line 3"));
    host.dropLink();
    const { text } = await call;
    const lines = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => `line ${i}\n`).join("");
    expect(text).toBe(`${lines}[on alice@h1]`);
    expect(session.printed).toBe(lines);
    expect(readFileSync(path("runs"), "utf8")).toBe("run\n");
    expect(session.ways).toEqual(["lost alice@h1", "back"]);
  }, 60_000);

  test("ends while nobody listens, and its result is there afterwards", async () => {
    const session = await ready();
    const call = session.call("sh", { script: "echo begun; sleep 1; echo done; touch ended" });
    await until("it has begun", () => session.printed.includes("begun"));
    host.reachable = false;
    host.dropLink();
    await until("it has ended there", () => written("ended"));
    host.reachable = true;
    session.actor.send({ type: "RECONNECT" });
    expect((await call).text).toBe("begun\ndone\n[on alice@h1]");
    expect(session.printed).toBe("begun\ndone\n");
  }, 60_000);

  test("survives a bridge that is killed", async () => {
    const session = await ready();
    const call = session.call("sh", { script: "echo begun; sleep 0.5; echo done" });
    await until("it has begun", () => session.printed.includes("begun"));
    host.killBridges();
    expect((await call).text).toBe("begun\ndone\n[on alice@h1]");
  }, 60_000);

  test("that is cancelled meanwhile is ended there when the host is back", async () => {
    const session = await ready();
    const stop = new AbortController();
    const call = session.call("sh", { script: "echo begun; sleep 30; touch late" }, { signal: stop.signal });
    await until("it has begun", () => session.printed.includes("begun"));
    host.reachable = false;
    host.dropLink();
    await until("another way to the host", () => session.ways.length > 0);
    stop.abort();
    const outcome = await call;
    expect(outcome).toMatchObject({ ok: false, how: "cancelled" });
    expect(outcome.text).toContain("is ended there as soon as the host can be told");
    host.reachable = true;
    session.actor.send({ type: "RECONNECT" });
    await until("every operation has ended", () =>
      session.link.operations.known().every(({ ended }) => ended !== undefined),
    );
    expect(session.link.operations.known()[0]!.status).toBe("cancelled");
  }, 60_000);

  test("and that was never asked for is not asked for any more once it is cancelled", async () => {
    const session = await ready();
    host.reachable = false;
    host.dropLink();
    await until("the way is broken", () => session.line.startsWith("reconnecting"));
    const stop = new AbortController();
    const call = session.call("sh", { script: "touch ran" }, { signal: stop.signal });
    stop.abort();
    expect(await call).toMatchObject({
      how: "cancelled",
      text: "sh was cancelled by the user before it ran.",
    });
    host.reachable = true;
    session.actor.send({ type: "RECONNECT" });
    await session.ready();
    await session.call("sh", { script: "true" });
    expect(written("ran")).toBe(false);
  }, 60_000);
});

describe("a call whose daemon is killed", () => {
  test("is told as interrupted, with what it had printed, and is not run again", async () => {
    const session = await ready();
    const call = session.call("sh", { script: "echo run >> runs; echo begun; sleep 30" });
    await until("it has begun", () => session.printed.includes("begun"));
    host.killDaemons();
    const outcome = await call;
    expect(outcome).toMatchObject({ ok: false, how: "failed" });
    expect(outcome.text).toStartWith("begun\n[interrupted: alice@h1 ");
    expect(readFileSync(path("runs"), "utf8")).toBe("run\n");
    expect((await session.call("sh", { script: "echo next" })).text).toBe("next\n[on alice@h1]");
  }, 60_000);
});

describe("a client that is another one now", () => {
  test("finds the call that runs by its name", async () => {
    const first = await ready();
    const opId = Bun.randomUUIDv7();
    const lost = first.call("sh", { script: "echo run >> runs; echo begun; sleep 1; echo done" }, { opId });
    lost.catch(() => {});
    await until("it has begun", () => first.printed.includes("begun"));
    first.close();
    const second = open(first.locator);
    await second.ready();
    expect((await second.call("sh", {}, { opId, again: true })).text).toBe("begun\ndone\n[on alice@h1]");
    expect(second.printed).toBe("begun\ndone\n");
    expect(readFileSync(path("runs"), "utf8")).toBe("run\n");
    expect(host.sessions).toHaveLength(1);
  }, 60_000);

  test("is told where the host knows nothing of a call", async () => {
    const session = await ready();
    const call = session.call("sh", {}, { opId: Bun.randomUUIDv7(), again: true });
    expect(call).rejects.toMatchObject({ code: "op.unknown" });
    await call.catch(() => {});
  }, 60_000);

  test("is never given another session than its own", async () => {
    const first = await ready();
    first.close();
    const { locator } = first;
    const second = open({ ...locator!, sessionId: Bun.randomUUIDv7() });
    expect(second.ready()).rejects.toMatchObject({ code: "session.absent" });
    await until("the way is given up", () => second.line.startsWith("failed"));
    expect(host.sessions).toHaveLength(1);
  }, 60_000);
});

test("sessions of one target share a connection", async () => {
  await Promise.all([ready(), ready()]);
  expect(host.dialled).toBe(1);
  expect(host.sessions).toHaveLength(2);
}, 60_000);
