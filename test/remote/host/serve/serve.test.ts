import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Attached, HostHello, OpReport } from "../../../../src/remote/protocol/messages.ts";
import { hostHello } from "../../../../src/remote/protocol/messages.ts";
import { Host, lines, lives, op } from "./client.ts";

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(() => host.remove());

const file = (name: string) => join(host.project, name);

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(10);
}

describe("hello", () => {
  test("comes unasked", async () => {
    const { params } = await host.serve().message(({ method }) => method === "hello");
    const hello = hostHello.parse(params) as HostHello;
    expect(hello).toMatchObject({ os: "linux", home: host.home, root: host.root, sessions: [] });
    expect(hello.caps).toContain("op");
  });

  test("a client that needs what is not there is told both lists", async () => {
    const bridge = host.serve();
    const id = bridge.send("hello", { proto: 1, client: "me", need: ["teleport"] });
    const { error } = await bridge.message((message) => message.id === id);
    expect(error?.data?.code).toBe("caps.missing");
    expect(error?.message).toContain("teleport");
    expect(error?.message).toContain("session");
  });

  test("another version, and a session before any hello", async () => {
    const bridge = host.serve();
    expect(await bridge.ask("hello", { proto: 99, client: "me", need: [] })).toBe("proto.version");
    expect(await bridge.ask("op.list")).toBe("session.none");
  });
});

describe("frames", () => {
  test("a line that is too long costs that line and no more", async () => {
    const bridge = host.serve();
    await bridge.create();
    bridge.raw(
      `{"jsonrpc":"2.0","id":900,"method":"ping","params":{"x":"${"x".repeat(9 * 1024 * 1024)}"}}\n`,
    );
    const { error } = await bridge.message(({ id }) => id === null);
    expect(error?.data?.code).toBe("frame.too_long");
    expect(await bridge.ask("ping")).toEqual({});
  });

  test("a line that is no JSON is passed over, three in a row end the connection", async () => {
    const bridge = host.serve();
    await bridge.create();
    bridge.raw("noise\nmore noise\n");
    expect(await bridge.ask("ping")).toEqual({});
    bridge.raw("a\nb\nc\n");
    expect(await bridge.exited).toBe(0);
  });

  test("a request in pieces, and many in one", async () => {
    const bridge = host.serve();
    await bridge.create();
    for (const piece of ['{"jsonrpc":"2.0","id"', ":901,", '"method":"ping"}', "\n"]) {
      bridge.raw(piece);
      await Bun.sleep(5);
    }
    await bridge.message(({ id }) => id === 901);
    const ids = Array.from({ length: 200 }, (_, at) => 1000 + at);
    bridge.raw(ids.map((id) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`).join(""));
    for (const id of ids) await bridge.message((message) => message.id === id);
  });
});

describe("a session", () => {
  test("is private to the user", async () => {
    const { sessionId } = await host.serve().create();
    const folder = join(host.root, "sessions", sessionId);
    for (const path of [folder, join(host.runtime, "ollie-remote")])
      expect(statSync(path).mode & 0o077).toBe(0);
    for (const name of ["session.json", "journal.ndjson", "daemon.json"])
      expect(statSync(join(folder, name)).mode & 0o077).toBe(0);
  });

  test("that is not there, is another client's, or has another policy", async () => {
    const first = host.serve();
    const session = await first.create();
    expect(await host.serve().attach({ ...session, sessionId: Bun.randomUUIDv7() })).toBe("session.absent");
    expect(await host.serve().attach({ ...session, policyHash: "x" })).toBe("session.policy_broader");
    expect(await host.serve().attach({ ...session, envRefHash: "x" })).toBe("session.envref");
    expect(await host.serve().attach(session, {}, "another")).toBe("session.held");
    expect(await host.serve().attach(session, { takeover: true }, "another")).toMatchObject({ epoch: 2 });
    expect(await first.message(({ method }) => method === "superseded")).toBeDefined();
    await first.exited;
  });

  test("a newer connection of the same client cuts the older one", async () => {
    const first = host.serve();
    const session = await first.create();
    const second = await host.serve().attach(session);
    expect(second).toMatchObject({ sessionId: session.sessionId, epoch: session.epoch + 1 });
    await first.exited;
  });

  test("created again after a lost answer is the same one", async () => {
    const session = await host.serve().create();
    const again = await host.serve().create(session.sessionId);
    expect(again).toMatchObject({ sessionId: session.sessionId, cwd: host.project });
  });

  test("many connections at once find one daemon", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    process.kill(host.daemon(session.sessionId), "SIGKILL");
    await bridge.exited;
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() =>
        host
          .serve()
          .attach(session)
          .catch(() => "cut"),
      ),
    );
    expect(answers.some((answer) => typeof answer === "object")).toBe(true);
    const last = (await host.serve().attach(session)) as Attached;
    expect(last.epoch).toBeGreaterThan(session.epoch);
  });
});

describe("what happens to connections", () => {
  test("a client that has said everything and goes: its operation runs all the same", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    const request = op("sleep 0.3; echo x >>ran; echo done");
    bridge.send("op.start", request);
    bridge.end();
    await bridge.exited;
    const next = host.serve();
    await next.attach(session);
    await next.ask("op.start", request);
    expect(await next.over(request.opId)).toMatchObject({ code: 0, output: "done\n" });
    expect(lines(file("ran"))).toEqual(["x"]);
  });

  test("a bridge that is killed: output goes on at the offset that the next one asks for", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    const request = op("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second");
    await bridge.ask("op.start", request);
    await bridge.ask("op.follow", { opId: request.opId, from: {} });
    await bridge.message(({ method }) => method === "output");
    bridge.kill("SIGKILL");
    await bridge.exited;
    const next = host.serve();
    const again = (await next.attach(session)) as Attached;
    expect(again.ops).toMatchObject([{ opId: request.opId, status: "running", streams: { out: 6 } }]);
    await next.ask("op.follow", { opId: request.opId, from: { out: 6 } });
    writeFileSync(file("go"), "");
    await next.over(request.opId);
    const told = next.outputs(request.opId).map(({ off, data }) => [off, atob(data)]);
    expect(told).toEqual([[6, "second\n"]]);
  });

  test("a daemon that is killed: its operation is interrupted, ends, and is not run again", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    const request = op("echo $$ >pid; echo x >>ran; echo begun; sleep 100");
    await bridge.ask("op.start", request);
    await until(() => lines(file("ran")).length > 0);
    process.kill(host.daemon(session.sessionId), "SIGKILL");
    await bridge.exited;
    const next = host.serve();
    await next.attach(session);
    const report = (await next.ask("op.start", request)) as OpReport;
    expect(report).toMatchObject({ status: "interrupted", output: "begun\n" });
    expect(lines(file("ran"))).toEqual(["x"]);
    await until(() => !lives(Number(lines(file("pid"))[0])));
  });

  test("a daemon that is killed leaves detached operations alone", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    const request = op("while [ ! -e go ]; do sleep 0.02; done; echo over", { detach: true });
    request.hash = (await import("../../../../src/remote/protocol/hash.ts")).opHash(request);
    await bridge.ask("op.start", request);
    await until(() =>
      existsSync(join(host.root, "sessions", session.sessionId, "ops", request.opId, "job/family")),
    );
    process.kill(host.daemon(session.sessionId), "SIGKILL");
    await bridge.exited;
    const next = host.serve();
    await next.attach(session);
    writeFileSync(file("go"), "");
    expect(await next.over(request.opId)).toMatchObject({ status: "exited", code: 0, streams: { out: 5 } });
  });

  test("a bridge ends when its client does, whatever runs", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    await bridge.ask("op.start", op("sleep 100"));
    bridge.end();
    expect(await bridge.exited).toBe(0);
    expect(lives(host.daemon(session.sessionId))).toBe(true);
  });

  test("a program has neither the protocol's stdin nor a descriptor of the daemon", async () => {
    const bridge = host.serve();
    await bridge.create();
    const request = op("cat; for fd in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$fd ] && echo $fd; done; true");
    await bridge.ask("op.start", request);
    expect(await bridge.over(request.opId)).toMatchObject({ code: 0, streams: {} });
    expect(await bridge.ask("ping")).toEqual({});
  });
});

describe("execute", () => {
  test("as in the specification: steps with code, live output, one answer", async () => {
    const bridge = host.serve();
    await bridge.create();
    const answer = await bridge.ask("execute", {
      steps: [{ code: "echo hi; exit 3" }],
      timeout: 10,
      sandbox: "default",
    });
    expect(answer).toEqual({ output: "hi\n", exit_code: 3 });
    const { params } = await bridge.message(({ method }) => method === "output");
    expect(params).toMatchObject({ step: 0, stream: "out", off: 0, data: btoa("hi\n") });
  });
});

describe("the end of a session", () => {
  test("sealed: nothing runs, nothing is changed, all can be read", async () => {
    const bridge = host.serve();
    await bridge.create();
    const request = op("echo x");
    await bridge.ask("op.start", request);
    await bridge.over(request.opId);
    await bridge.ask("session.seal");
    expect(await bridge.ask("op.start", op("true"))).toBe("session.sealed");
    expect(await bridge.ask("file.write", { path: "a", text: "a" })).toBe("session.sealed");
    expect(await bridge.ask("op.get", { opId: request.opId })).toMatchObject({ output: "x\n" });
  });

  test("upgrade: the daemon of an idle session makes room, that of a busy one does not", async () => {
    const bridge = host.serve();
    const session = await bridge.create();
    const before = host.daemon(session.sessionId);
    const request = op("while [ ! -e go ]; do sleep 0.02; done");
    await bridge.ask("op.start", request);
    expect(await bridge.ask("session.upgrade")).toBe("session.busy");
    writeFileSync(file("go"), "");
    await bridge.over(request.opId);
    await bridge.ask("session.upgrade");
    await bridge.exited;
    await until(() => !lives(before));
    const next = host.serve();
    expect(await next.attach(session)).toMatchObject({ ops: [{ opId: request.opId, status: "exited" }] });
    expect(host.daemon(session.sessionId)).not.toBe(before);
  });
});
