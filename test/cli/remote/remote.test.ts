/** The commands of `olliesrv remote`, on a host that is this machine without SSH. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runRemote } from "../../../src/cli/server/remote/command.ts";
import * as stdio from "../../../src/cli/stdio.ts";
import { FakeHost } from "../../remote/client/host.ts";

let host: FakeHost;
let state: string;
let printed: string;
let spy: { mockRestore(): void };

beforeEach(() => {
  host = new FakeHost();
  state = join(host.folder, "state");
  mkdirSync(state, { mode: 0o700 });
  printed = "";
  spy = spyOn(stdio, "writeOut").mockImplementation(async (data) => {
    printed += data;
  });
});

afterEach(() => {
  spy.mockRestore();
  host.remove();
});

async function remote(...words: string[]): Promise<string> {
  printed = "";
  await runRemote({ state, config: state }, words, host);
  return printed;
}

async function remoteJson(words: string[], more: object = {}) {
  printed = "";
  await runRemote({ state, config: state, json: true, ...more }, words, host);
  return JSON.parse(printed);
}

describe("olliesrv remote", () => {
  test("probe tries all that a session needs, step by step", async () => {
    const text = await remote("probe", "alice@h1");
    const steps = [...text.matchAll(/^(\w+) {2,}/gm)].map(([, step]) => step);
    expect(steps).toEqual(
      "connect bootstrap hello can create write read list run replay detach reattach".split(" "),
    );
    expect(text).toMatch(/\nsession [0-9a-f-]{36} stays there/);
  }, 60_000);

  test("probe goes on with the session of an earlier one, and only with that of a probe on that host", async () => {
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    const again = await remoteJson(["probe", "alice@h1"], { "session-id": sessionId });
    expect(again.sessionId).toBe(sessionId);
    expect(again.steps.map(({ step }: { step: string }) => step)).toContain("attach");
    expect(host.sessions).toEqual([sessionId]);
    const other = remoteJson(["probe", "bob@h2"], { "session-id": sessionId });
    expect(other).rejects.toThrow(`no probe has made a session ${sessionId} on bob@h2`);
    await other.catch(() => {});
  }, 60_000);

  test("ls lists what is on the host, and without one what is known here, without its key", async () => {
    expect(await remote("ls", "alice@h1")).toBe("there is no session\n");
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    expect(await remote("ls", "alice@h1")).toMatch(new RegExp(`^${sessionId}  active .* used 0 min ago `));
    expect(await remote("ls")).toStartWith(`${sessionId}  alice@h1  `);
    const [known] = await remoteJson(["ls"]);
    expect(known).toMatchObject({ sessionId, target: "alice@h1" });
    expect(known.key).toBeUndefined();
  }, 60_000);

  test("export brings the files of a session, whole", async () => {
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    const output = join(host.folder, "out.tar.zst");
    const exported = await remoteJson(["export", "alice@h1", sessionId], { output });
    expect(exported).toMatchObject({ file: output, bytes: readFileSync(output).length });
    const tar = Buffer.from(Bun.zstdDecompressSync(readFileSync(output))).toString("latin1");
    expect(tar).toContain("ollie-probe.txt");
    expect(existsSync(`${output}.part`)).toBe(false);
  }, 60_000);

  test("export leaves nothing behind where it fails", async () => {
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    const output = join(host.folder, "out.bundle");
    const failed = remoteJson(["export", "alice@h1", sessionId], { output, format: "bundle" });
    expect(failed).rejects.toThrow();
    await failed.catch(() => {});
    expect(readdirSync(host.folder).filter((name) => name.startsWith("out."))).toEqual([]);
  }, 60_000);

  test("destroy wants the whole ID, and removes that session", async () => {
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    const short = remote("destroy", "alice@h1", sessionId.slice(0, 8));
    expect(short).rejects.toThrow("has to be given in full");
    await short.catch(() => {});
    expect(host.sessions).toEqual([sessionId]);
    expect(await remote("destroy", "alice@h1", sessionId)).toStartWith(`${sessionId} is gone: `);
    expect(host.sessions).toEqual([]);
  }, 60_000);

  test("gc leaves sessions that are in use", async () => {
    const { sessionId } = await remoteJson(["probe", "alice@h1"]);
    expect(await remote("gc", "alice@h1")).toContain("1 sessions stay\n");
    expect(host.sessions).toEqual([sessionId]);
  }, 60_000);

  test("says what is right where something is wrong", async () => {
    expect(remote("list")).rejects.toThrow("one of ls, probe, gc, export, destroy is right");
    expect(remote("probe")).rejects.toThrow("expected olliesrv remote probe TARGET");
    writeFileSync(join(state, "remotes.yaml"), "schema_version: 2\ntargets: {}\n");
    expect(remote("probe", "alice@h1")).rejects.toThrow("schema_version: must be 1");
    await Bun.sleep(0);
  });
});
