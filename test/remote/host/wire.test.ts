/** Broken lines, modes of files, and output over more than one connection, as `ollie-remote serve` and its daemon have them. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { statOf } from "../../../src/exec/proc.ts";
import { opHash } from "../../../src/remote/protocol/hash.ts";
import type { OpOutput } from "../../../src/remote/protocol/operation.ts";
import { until } from "../../until.ts";
import { type BridgeProcess, kill, Machine } from "./machine.ts";

setDefaultTimeout(30_000);

let machine: Machine;
beforeEach(() => {
  machine = new Machine();
});
afterEach(() => machine.close());

const untilGo = "while [ ! -e go ]; do sleep 0.02; done";
const go = () => writeFileSync(join(machine.project, "go"), "");

const outputs = ({ notified }: BridgeProcess) =>
  notified
    .filter(({ method }) => method === "output")
    .map(({ params }) => params as OpOutput)
    .map(({ off, data }) => [off, atob(data)]);

async function say(bridge: BridgeProcess, text: string): Promise<void> {
  bridge.child.stdin.write(text);
  await bridge.child.stdin.flush();
}

describe("lines", () => {
  test("one that is too long costs itself and nothing else", async () => {
    const bridge = await machine.bridge().greet();
    await bridge.create(machine.project);
    await say(bridge, `{"jsonrpc":"2.0","method":"ping","params":"${"x".repeat(9 * 1024 * 1024)}"}\n`);
    expect(await bridge.peer.request<object>("ping", {})).toEqual({});
  });

  test("one or two that are no JSON are passed over, three end the connection", async () => {
    const bridge = await machine.bridge().greet();
    await bridge.create(machine.project);
    await say(bridge, "noise\nmore noise\n");
    expect(await bridge.peer.request<object>("ping", {})).toEqual({});
    await say(bridge, "a\nb\nc\n");
    expect(await bridge.child.exited).toBe(0);
  });

  test("hundreds at once are all answered", async () => {
    const bridge = await machine.bridge().greet();
    await bridge.create(machine.project);
    const pings = Array.from({ length: 300 }, () => bridge.peer.request<object>("ping", {}));
    expect(new Set((await Promise.all(pings)).map((answer) => JSON.stringify(answer)))).toEqual(
      new Set(["{}"]),
    );
  });
});

test("what a session keeps is the user's alone", async () => {
  const bridge = await machine.bridge().greet();
  const { sessionId } = await bridge.create(machine.project);
  const folder = join(machine.sessions(), sessionId);
  const names = ["", "session.json", "journal.ndjson", "daemon.json"].map((name) => join(folder, name));
  for (const path of [...names, join(machine.folder, "run/ollie-remote")])
    expect([path, statSync(path).mode & 0o077]).toEqual([path, 0]);
});

describe("over more than one connection", () => {
  test("output goes on at the offset that the next one asks for", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const { opId } = await bridge.start(["sh", "-c", `echo first; ${untilGo}; echo second`]);
    await bridge.peer.request("op.follow", { opId, from: {} });
    await until("output", () => outputs(bridge).length > 0);
    kill(bridge.child.pid);
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    expect((await next.attach(made)).ops).toMatchObject([{ opId, status: "running", streams: { out: 6 } }]);
    await next.peer.request("op.follow", { opId, from: { out: 6 } });
    go();
    await next.end(opId);
    expect(outputs(next)).toEqual([[6, "second\n"]]);
  });

  test("what is detached goes on where the daemon is killed, and the next daemon has its end", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const steps = [{ code: `${untilGo}; echo over`, lang: "sh" as const }];
    const request = { steps, sandbox: "", detach: true };
    const opId = Bun.randomUUIDv7();
    await bridge.peer.request("op.start", { opId, hash: opHash(request), ...request });
    await until("its processes are known", () =>
      existsSync(join(machine.sessions(), made.sessionId, "ops", opId, "job/family")),
    );
    kill(machine.daemonOf(made.sessionId));
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    await next.attach(made);
    go();
    expect(await next.end(opId)).toMatchObject({ status: "exited", code: 0, streams: { out: 5 } });
  });

  test("a bridge ends with its client, whatever runs; the daemon stays", async () => {
    const bridge = await machine.bridge().greet();
    const { sessionId } = await bridge.create(machine.project);
    await bridge.start(["sleep", "100"]);
    expect(await bridge.close()).toBe(0);
    expect(statOf(machine.daemonOf(sessionId))?.dead).toBe(false);
  });
});
