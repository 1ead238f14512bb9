/** The bridge and the daemon behind it, as a client sees them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { CodedFault } from "../../../src/fault.ts";
import { until } from "../../until.ts";
import { type Attached, kill, Machine } from "./machine.ts";

setDefaultTimeout(30_000);

let machine: Machine;
beforeAll(() => {
  machine = new Machine();
});
afterAll(() => machine.close());

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "it did not fail",
    (error) => (error instanceof CodedFault ? error.code : String(error)),
  );
}

describe("before a session", () => {
  test("the host says hello unasked, and what it is", async () => {
    const bridge = machine.bridge();
    const hello = await bridge.hello.promise;
    expect(hello.proto).toEqual({ min: 1, max: 1 });
    expect(hello.home).toBe(machine.home);
    expect(hello.caps).toContain("op");
    expect(hello.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(await bridge.close()).toBe(0);
  });

  test("what needs a session says so, and a client must have said hello", async () => {
    const bridge = machine.bridge();
    expect(await codeOf(bridge.peer.request("op.list", {}))).toBe("session.none");
    expect(await codeOf(bridge.peer.request("file.stat", { path: "a" }))).toBe("session.none");
    expect(await codeOf(bridge.create(machine.project))).toBe("proto.hello");
    await bridge.close();
  });

  test("a client that needs more than the host can is told both lists", async () => {
    const bridge = machine.bridge();
    const asked = bridge.peer.request("hello", { proto: 1, client: "c", need: ["op", "teleport"] });
    const error = await asked.catch((error) => error as CodedFault);
    expect((error as CodedFault).code).toBe("caps.missing");
    expect((error as Error).message).toContain("teleport");
    expect((error as Error).message).toContain("op.detach");
    const later = bridge.peer.request("hello", { proto: 99, client: "c", need: [] });
    expect(await codeOf(later)).toBe("proto.version");
    await bridge.close();
  });

  test("what is no protocol ends the bridge, and starts nothing", async () => {
    const bridge = machine.bridge();
    await bridge.hello.promise;
    bridge.child.stdin.write("GET / HTTP/1.1\nHost: a\nAccept: b\n\n");
    await bridge.child.stdin.flush();
    expect(await bridge.child.exited).toBe(0);
  });
});

describe("a session", () => {
  test("is made where the client wants it; one that names no folder is at home", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    expect(made.cwd).toBe(machine.project);
    await bridge.close();
    const second = await machine.bridge().greet();
    expect((await second.create("")).cwd).toBe(machine.home);
    await second.close();
  });

  test("in a folder that is not there, or has no absolute path, is refused and leaves nothing", async () => {
    const bridge = await machine.bridge().greet();
    const sessionId = crypto.randomUUID();
    expect(await codeOf(bridge.create(join(machine.project, "nowhere"), { sessionId }))).toBe("session.cwd");
    expect(await codeOf(bridge.create("project", { sessionId }))).toBe("session.cwd");
    expect(existsSync(join(machine.sessions(), sessionId))).toBe(false);
    await bridge.close();
  });

  test("asked for again, since the answer was lost, is the same; with another key it is refused", async () => {
    const sessionId = crypto.randomUUID();
    const first = await machine.bridge().greet();
    await first.create(machine.project, { sessionId });
    await first.close();
    const second = await machine.bridge().greet();
    expect((await second.create(machine.project, { sessionId })).sessionId).toBe(sessionId);
    await second.close();
    const third = await machine.bridge().greet();
    const other = { sessionId, key: Buffer.alloc(32, 8).toString("base64") };
    expect(await codeOf(third.create(machine.project, other))).toBe("session.exists");
    await third.close();
  });

  test("is attached only under the policy and references that it was made with, and never made anew", async () => {
    const first = await machine.bridge().greet();
    const made = await first.create(machine.project);
    await first.close();
    const bridge = await machine.bridge().greet();
    expect(await codeOf(bridge.attach({ ...made, policyHash: "0".repeat(64) }))).toBe(
      "session.policy_broader",
    );
    expect(await codeOf(bridge.attach({ ...made, envRefHash: "0".repeat(64) }))).toBe("session.envref");
    expect(await codeOf(bridge.attach({ ...made, sessionId: crypto.randomUUID() }))).toBe("session.absent");
    expect((await bridge.attach(made)).sessionId).toBe(made.sessionId);
    await bridge.close();
  });

  test("of a managed workspace has a folder of its own", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create("", { workspace: { kind: "managed", seed: "empty" } });
    expect(made.cwd).toBe(join(machine.sessions(), made.sessionId, "workspace"));
    await bridge.close();
  });
});

describe("who holds a session", () => {
  test("a newer connection of the same client cuts the older one", async () => {
    const older = await machine.bridge().greet();
    const made = await older.create(machine.project);
    const newer = await machine.bridge().greet();
    expect((await newer.attach(made)).epoch).toBe(made.epoch + 1);
    await older.child.exited;
    expect(older.notified.map(({ method }) => method)).toContain("superseded");
    expect(await newer.peer.request<object[]>("op.list", {})).toEqual([]);
    await newer.close();
  });

  test("another client gets it only by taking it over", async () => {
    const mine = await machine.bridge().greet("mine");
    const made = await mine.create(machine.project);
    const other = await machine.bridge().greet("other");
    expect(await codeOf(other.attach(made))).toBe("session.held");
    expect((await other.attach(made, { takeover: true })).sessionId).toBe(made.sessionId);
    await other.close();
    await mine.close();
  });

  test("nobody comes in by the daemon's socket without what only a bridge knows", async () => {
    const bridge = await machine.bridge().greet();
    const { sessionId } = await bridge.create(machine.project);
    const file = JSON.parse(readFileSync(join(machine.sessions(), sessionId, "daemon.json"), "utf8"));
    const answer = Promise.withResolvers<string>();
    const socket = await Bun.connect({
      unix: file.socket,
      socket: { data: (_, bytes) => answer.resolve(bytes.toString()) },
    });
    const attach = { token: "wrong", client: "test", epoch: 1 };
    const lines = [
      { id: 1, method: "op.list" },
      { id: 2, method: "daemon.attach", params: attach },
    ].map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    socket.write(lines[0]!);
    expect(await answer.promise).toContain("there is no method op.list");
    const second = Promise.withResolvers<string>();
    socket.reload({ socket: { data: (_: unknown, bytes: Buffer) => second.resolve(bytes.toString()) } });
    socket.write(lines[1]!);
    expect(await second.promise).toContain("session.token");
    socket.end();
    await bridge.close();
  });
});

describe("ends", () => {
  test("a bridge that is killed leaves what runs; the next one has its result", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const mark = join(machine.project, "after-bridge");
    const { opId } = await bridge.start(["sh", "-c", `sleep 0.5; echo once >> ${mark}; echo done`]);
    kill(bridge.child.pid);
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    const again = await next.attach(made);
    expect(again.ops.map((op) => op.opId)).toEqual([opId]);
    expect(await next.end(opId)).toMatchObject({ status: "exited", code: 0, output: "done\n" });
    expect(readFileSync(mark, "utf8")).toBe("once\n");
    await next.close();
  });

  test("a client that says no more right after a start loses nothing", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const opId = crypto.randomUUID();
    const started = bridge.start(["sh", "-c", "sleep 0.2; echo kept"], opId).catch(() => {});
    expect(await bridge.close()).toBe(0);
    await started;
    const next = await machine.bridge().greet();
    await next.attach(made);
    expect(await next.end(opId)).toMatchObject({ status: "exited", output: "kept\n" });
    await next.close();
  });

  test("a daemon that is killed has interrupted what ran, and another one takes its place", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const { opId } = await bridge.start(["sh", "-c", "echo begun; sleep 1000"]);
    await until("it runs", async () => (await report(bridge.peer, opId)).status === "running");
    const before = machine.daemonOf(made.sessionId);
    kill(before);
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    await next.attach(made);
    expect(machine.daemonOf(made.sessionId)).not.toBe(before);
    const { status } = await report(next.peer, opId);
    expect(status).toBe("interrupted");
    await next.close();
  });

  test("several bridges at once start one daemon", async () => {
    const first = await machine.bridge().greet();
    const made = await first.create(machine.project);
    kill(machine.daemonOf(made.sessionId));
    await first.child.exited;
    const bridges = await Promise.all(Array.from({ length: 4 }, () => machine.bridge().greet()));
    const attached = await Promise.allSettled(bridges.map((bridge) => bridge.attach(made)));
    expect(attached.some(({ status }) => status === "fulfilled")).toBe(true);
    const daemons = machine
      .pids()
      .filter((pid) =>
        readFileSync(`/proc/${pid}/cmdline`, "utf8").endsWith(
          `daemon\0--root\0${join(machine.sessions(), "..")}\0--base\0${machine.home}/.cache/ollie\0${made.sessionId}\0`,
        ),
      );
    expect(daemons).toHaveLength(1);
    for (const bridge of bridges) await bridge.close();
  });

  test("a sealed session can be read, and runs nothing more, also after its daemon has ended", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const { opId } = await bridge.start(["echo", "before"]);
    await bridge.end(opId);
    await bridge.peer.request("session.seal", {});
    expect(await codeOf(bridge.start(["echo", "after"]))).toBe("session.sealed");
    expect(
      await codeOf(bridge.peer.request("file.write", { path: "a", data: "", expect: { any: true } })),
    ).not.toBe("");
    kill(machine.daemonOf(made.sessionId));
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    const again: Attached = await next.attach(made);
    expect(again.state).toBe("sealed");
    expect((await next.end(opId)).output).toBe("before\n");
    expect(await codeOf(next.start(["echo", "after"]))).toBe("session.sealed");
    await next.close();
  });

  test("a daemon is replaced where nothing runs, and not before", async () => {
    const bridge = await machine.bridge().greet();
    const made = await bridge.create(machine.project);
    const { opId } = await bridge.start(["sleep", "1000"]);
    expect(await codeOf(bridge.peer.request("session.upgrade", {}))).toBe("session.busy");
    await bridge.peer.request("op.cancel", { opId, grace: 0 });
    await bridge.end(opId);
    const before = machine.daemonOf(made.sessionId);
    await bridge.peer.request("session.upgrade", {});
    await bridge.child.exited;
    const next = await machine.bridge().greet();
    await next.attach(made);
    expect(machine.daemonOf(made.sessionId)).not.toBe(before);
    await next.close();
  });
});

test("what a program prints and reads is never the protocol's", async () => {
  const bridge = await machine.bridge().greet();
  await bridge.create(machine.project);
  const { opId } = await bridge.start([
    "sh",
    "-c",
    "cat; ls /proc/self/fd | wc -l; echo x >&3; echo status $?",
  ]);
  const { output } = await bridge.end(opId);
  // Nothing on stdin; 0, 1, 2 and the folder that ls has open; no descriptor 3.
  expect(output).toContain("4\n");
  expect(output).toContain("status 2\n");
  await bridge.close();
});

test("execute is a start and a wait in one", async () => {
  const bridge = await machine.bridge().greet();
  await bridge.create(machine.project);
  mkdirSync(join(machine.project, "src"), { recursive: true });
  writeFileSync(join(machine.project, "src/a"), "");
  const answer = await bridge.peer.request<object>("execute", {
    steps: [{ code: "ls src; exit 3" }],
    timeout: 60,
    sandbox: "default",
  });
  expect(answer).toEqual({ output: "a\n", exit_code: 3 });
  expect(bridge.notified.filter(({ method }) => method === "output")).not.toEqual([]);
  await bridge.close();
});

async function report(peer: { request: <T>(method: string, params: unknown) => Promise<T> }, opId: string) {
  return peer.request<{ status: string }>("op.get", { opId });
}

test("a session at home neither shows nor exports what is ollie's own there", async () => {
  const bridge = await machine.bridge().greet();
  const made = await bridge.create("");
  const own = relative(machine.home, machine.sessions());
  expect(await codeOf(bridge.peer.request("file.stat", { path: own }))).toBe("file.denied");
  const file = join(own, made.sessionId, "session.json");
  expect(await codeOf(bridge.peer.request("file.read", { path: file }))).toBe("file.denied");
  writeFileSync(join(machine.home, "mine"), "");
  const { entries } = await bridge.peer.request<{ entries: { path: string }[] }>("file.walk", { path: "." });
  const paths = entries.map(({ path }) => path);
  expect(paths).toContain("mine");
  expect(paths.filter((path) => path.includes(made.sessionId))).toEqual([]);
  await bridge.close();
});
