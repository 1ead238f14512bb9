import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { statOf } from "../../../../src/exec/proc.ts";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { sealGrant } from "../../../../src/remote/protocol/hash.ts";
import type { Step } from "../../../../src/remote/protocol/operation.ts";
import { until } from "../../../until.ts";
import { ended, Host, run as ran, request as requestOf, sh } from "./ground.ts";

setDefaultTimeout(30_000);

let host: Host;
let operations: Operations;
beforeEach(async () => {
  host = new Host();
  operations = await host.open();
});
afterEach(async () => {
  await operations.seal();
  await operations.close();
  host.remove();
});

/** As a new daemon would find them. */
async function reopen(): Promise<Operations> {
  operations = await host.open();
  return operations;
}

const codeOf = async (work: Promise<unknown>) =>
  work.then(
    () => "no error",
    (error) => error.code ?? error.message,
  );

describe("steps", () => {
  test("a step's output and status", async () => {
    const report = await ran(operations, requestOf([sh("echo out; echo err >&2; exit 3")]));
    expect(report).toMatchObject({ status: "exited", code: 3, streams: { out: 4, err: 4 } });
    expect(report.output).toBe("out\n[stderr]\nerr\n");
    expect(host.exits.map(({ opId }) => opId)).toEqual([report.opId]);
  });

  test("a program, its arguments as they are, its stdin and its variables", async () => {
    const step = {
      program: "sh",
      args: ["-c", 'cat; echo "$1 $A"', "x", "a b;c"],
      env: { A: "1" },
      stdin: "in\n",
    };
    const report = await ran(operations, requestOf([step]));
    expect(report.output).toBe("in\na b;c 1\n");
  });

  test("steps run one after the other until one fails, and output says whose it is", async () => {
    const request = requestOf([sh("echo a; sleep 0.1"), sh("echo b; false"), sh("echo c")]);
    await operations.start(request);
    operations.follow({ opId: request.opId, from: {} });
    expect((await ended(operations, request.opId)).output).toBe("a\nb\n");
    expect(host.outputs.map(({ step, off, data }) => [step, off, atob(data)])).toEqual([
      [0, 0, "a\n"],
      [1, 2, "b\n"],
    ]);
  });

  test("it is confined: the working folder can be written, what lies beside it cannot", async () => {
    const beside = join(host.cwd, "../beside");
    const report = await ran(
      operations,
      requestOf([sh(`echo x >in; echo x >${beside}; cat ${host.folder}/journal.ndjson`)]),
    );
    expect(readFileSync(join(host.cwd, "in"), "utf8")).toBe("x\n");
    expect(existsSync(beside)).toBe(false);
    expect(report.code).not.toBe(0);
  });

  test("CARGO_HOME is the session's own and can be written", async () => {
    const report = await ran(operations, requestOf([sh('echo x >"$CARGO_HOME/x" && echo "$CARGO_HOME"')]));
    expect(report.output).toBe(`${host.folder}/cargo\n`);
  });

  test("a time limit", async () => {
    const report = await ran(operations, requestOf([sh("echo begun; sleep 100")], { timeout: 0.5 }));
    expect(report).toMatchObject({ status: "timeout", output: "begun\n" });
  });

  test("cancel ends also what has left the group", async () => {
    const pidFile = join(host.cwd, "pid");
    const request = requestOf([sh(`setsid sh -c 'echo $$ >${pidFile}; exec sleep 100' & sleep 100`)]);
    await operations.start(request);
    await until("its pid is written", () => existsSync(pidFile) && readFileSync(pidFile, "utf8"));
    const report = await operations.cancel({ opId: request.opId, grace: 0.5 });
    expect(report.status).toBe("cancelled");
    expect(statOf(Number(readFileSync(pidFile, "utf8")))?.dead ?? true).toBe(true);
  });

  test("a signal is sent to its processes and ends nothing by itself", async () => {
    const request = requestOf([sh("trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.05; done")]);
    await operations.start(request);
    await until("it has printed", () => operations.get(request.opId).streams.out !== undefined);
    await operations.cancel({ opId: request.opId, signal: 10, grace: 0 });
    expect(await ended(operations, request.opId)).toMatchObject({ code: 7, streams: { out: 10 } });
  });

  test("what is left behind is ended and named", async () => {
    const report = await ran(operations, requestOf([sh("sleep 100 >/dev/null 2>&1 & echo done")]));
    expect(report.output).toContain("ended with it: pid ");
  });

  test("a program reads neither the protocol nor what other descriptors hold", async () => {
    const report = await ran(operations, requestOf([sh("cat; ls /proc/self/fd | wc -l")]));
    expect(report.output?.trim()).toBe("4");
  });
});

describe("at most once", () => {
  test("the same request again is the same operation", async () => {
    const request = requestOf([sh("echo x >>count; cat count")]);
    const reports = await Promise.all([1, 2, 3].map(() => operations.start(request)));
    expect(new Set(reports.map(({ opId }) => opId)).size).toBe(1);
    await ended(operations, request.opId);
    expect((await operations.start(request)).output).toBe("x\n");
  });

  test("another request under the same id is refused", async () => {
    const request = requestOf([sh("true")]);
    await ran(operations, request);
    const other = { ...requestOf([sh("false")]), opId: request.opId };
    expect(await codeOf(operations.start(other))).toBe("op.mismatch");
    expect(await codeOf(operations.start({ ...requestOf([sh("a")]), hash: "0".repeat(64) }))).toBe("op.hash");
  });

  test("an id that nobody has used", () => {
    expect(() => operations.get(Bun.randomUUIDv7())).toThrow("knows of no operation");
  });

  test("the next daemon knows how it ended, and runs nothing again", async () => {
    const request = requestOf([sh("echo x >>count; cat count")]);
    await ran(operations, request);
    await operations.close();
    const again = await (await reopen()).start(request);
    expect(again).toMatchObject({ status: "exited", code: 0, output: "x\n" });
  });

  test("what ran when the daemon ended is interrupted, with its output so far", async () => {
    const request = requestOf([sh("echo begun; sleep 100")]);
    await operations.start(request);
    await until("it has printed", () => operations.get(request.opId).streams.out !== undefined);
    // As if the daemon had been killed: the journal has no end of it.
    const journal = join(host.folder, "journal.ndjson");
    const before = readFileSync(journal);
    await operations.close();
    writeFileSync(journal, before);
    const report = (await reopen()).get(request.opId);
    expect(report).toMatchObject({ status: "interrupted", output: "begun\n" });
  });
});

describe("detached", () => {
  test("goes on without a daemon, and is found by the next one", async () => {
    const request = requestOf([sh("echo a; while [ ! -e go ]; do sleep 0.05; done; echo b; exit 4")], {
      detach: true,
    });
    await operations.start(request);
    await until("it has printed", () => operations.get(request.opId).streams.out !== undefined);
    await operations.close();
    const next = await reopen();
    expect(next.get(request.opId).status).toBe("running");
    writeFileSync(join(host.cwd, "go"), "");
    expect(await ended(next, request.opId)).toMatchObject({ status: "exited", code: 4, streams: { out: 4 } });
    const { data } = await next.output({ opId: request.opId, stream: "out", from: 2, to: 100 });
    expect(atob(data)).toBe("b\n");
  });

  test("its output comes to who follows it", async () => {
    const request = requestOf([sh("echo a; while [ ! -e go ]; do sleep 0.05; done; echo b")], {
      detach: true,
    });
    await operations.start(request);
    operations.follow({ opId: request.opId, from: {} });
    await until("output is sent", () => host.outputs.length > 0);
    writeFileSync(join(host.cwd, "go"), "");
    await ended(operations, request.opId);
    expect(host.outputs.map(({ off, data }) => [off, atob(data)])).toEqual([
      [0, "a\n"],
      [2, "b\n"],
    ]);
  });

  test("is ended by cancel", async () => {
    const request = requestOf([sh("sleep 100")], { detach: true });
    await operations.start(request);
    await until("it has started", () => operations.get(request.opId).status !== "accepted");
    expect((await operations.cancel({ opId: request.opId, grace: 0.5 })).status).toBe("cancelled");
  });
});

describe("output", () => {
  test("is sent from an offset on, and no more than the window without an ack", async () => {
    const request = requestOf([sh("head -c 1000000 /dev/zero | tr '\\0' x")]);
    await ran(operations, request);
    operations.follow({ opId: request.opId, from: { out: 10 } });
    const sent = () => host.outputs.reduce((sum, { data }) => sum + atob(data).length, 0);
    expect(host.outputs[0]!.off).toBe(10);
    expect(sent()).toBe(256 * 1024);
    operations.ack({ opId: request.opId, stream: "out", off: 10 + 100_000 });
    expect(sent()).toBe(256 * 1024 + 100_000);
    operations.detach();
    operations.ack({ opId: request.opId, stream: "out", off: 10 + 300_000 });
    expect(sent()).toBe(256 * 1024 + 100_000);
  });

  test("a result has head and tail, with a mark between", async () => {
    const { output } = await ran(
      operations,
      requestOf([sh("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")]),
    );
    expect(output!.length).toBeLessThan(270_000);
    expect(output).toStartWith("first\n");
    expect(output).toEndWith("\nlast\n");
    expect(output).toContain("bytes left out here");
  });
});

describe("what is refused", () => {
  test("programs, code and variables that the policy does not have", async () => {
    await operations.close();
    host.hard = { allowed_programs: ["true"], allow_code_steps: false };
    await reopen();
    const start = (step: Step) => codeOf(operations.start(requestOf([step])));
    expect(await start({ program: "ls", args: [], env: {} })).toBe("policy.program");
    expect(await start(sh("true"))).toBe("policy.code");
    expect(await start({ program: "true", args: [], env: { LD_PRELOAD: "x" } })).toBe("policy.env");
    expect(operations.list()).toEqual([]);
    expect((await ran(operations, requestOf([{ program: "true", args: [], env: {} }]))).code).toBe(0);
  });

  test("a working folder outside of the session's", async () => {
    const step = { program: "true", args: [], env: {}, cwd: "../.." };
    expect(await codeOf(operations.start(requestOf([step])))).toBe("op.cwd");
  });

  test("a permission that is for another request, or old", async () => {
    const request = requestOf([sh("echo x >../beside")]);
    const terms = { scope: "once" as const, root: false, expires: Date.now() + 60_000 };
    const seal = (opId: string, expires = terms.expires) =>
      sealGrant(host.key, { opId, hash: request.hash, ...terms, expires });
    const start = (mac: string, expires = terms.expires) =>
      codeOf(operations.start({ ...request, grant: { ...terms, expires, mac } }));
    expect(await start(seal(Bun.randomUUIDv7()))).toBe("op.grant");
    expect(await start(seal(request.opId, 1), 1)).toBe("op.grant");
    expect(await start(seal(request.opId))).toBe("no error");
    await ended(operations, request.opId);
    expect(existsSync(join(host.cwd, "../beside"))).toBe(true);
  });

  test("anything, once it is sealed; what runs has ended then", async () => {
    const request = requestOf([sh("sleep 100")]);
    await operations.start(request);
    await operations.seal();
    expect(operations.get(request.opId).status).toBe("cancelled");
    expect(await codeOf(operations.start(requestOf([sh("true")])))).toBe("session.sealed");
  });
});

describe("what a project asks for", () => {
  test("is told, and counts once its hash is approved", async () => {
    const beside = join(host.cwd, "../beside");
    mkdirSync(beside);
    const text = `filesystem:\n  rw: [${JSON.stringify(beside)}]\n`;
    writeFileSync(join(host.cwd, ".ollie-sandbox.yaml"), text);
    const request = () => requestOf([sh(`echo x >${beside}/x`)]);
    const sha256 = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    expect(operations.asks).toMatchObject({ sha256, text, asks: [`filesystem.rw: ${beside}`] });
    expect((await ran(operations, request())).code).not.toBe(0);
    host.settings = { ...host.settings, approved: [sha256] };
    expect(operations.asks).toBeUndefined();
    expect((await ran(operations, request())).code).toBe(0);
  });
});

describe("tool calls", () => {
  const hash = "a".repeat(64);
  const tool = (name: string, script: string, meta: object = {}) => {
    const folder = join(host.top, "base", "tools", hash, "0");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    writeFileSync(join(folder, `${name}.meta`), JSON.stringify({ description: "a tool", ...meta }));
    host.settings = { ...host.settings, toolsHash: hash };
  };
  const call = (name: string, args: Record<string, unknown> = {}) => ({
    tool: name,
    args,
    callId: "c1",
    agent: "a",
    session: "s",
    cwd: host.cwd,
    sandbox: "",
  });

  test("runs as on the local server, and its text comes as it is printed", async () => {
    tool("say", 'echo "$OLLIE_ARG_WHAT"; exit 2');
    const request = requestOf([call("say", { what: "grüß" })]);
    await operations.start(request);
    operations.follow({ opId: request.opId, from: {} });
    const report = await ended(operations, request.opId);
    expect(report.outcome).toEqual({ ok: false, how: "failed", text: "grüß\n[exit 2]", closing: "[exit 2]" });
    expect(host.outputs.map(({ stream, data }) => [stream, data])).toEqual([["text", "grüß\n"]]);
  });

  test("lists what there is, and refuses what there is not", async () => {
    tool("say", "true");
    expect(operations.tools().tools.map(({ name }) => name)).toEqual(["say"]);
    expect(await codeOf(operations.start(requestOf([call("nope")])))).toBe("op.tool");
  });

  test("one that wants out of the sandbox needs a permission", async () => {
    tool("out", "true", { elevated: true });
    expect(await codeOf(operations.start(requestOf([call("out")])))).toBe("op.grant");
  });

  test("as a job", async () => {
    const args = { type: "object", properties: { detach: { type: "boolean" } } };
    tool("job", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over", { args });
    const request = requestOf([call("job", { detach: true })], { detach: true });
    await operations.start(request);
    await until("it has printed", () => operations.get(request.opId).streams.out !== undefined);
    writeFileSync(join(host.cwd, "go"), "");
    expect(await ended(operations, request.opId)).toMatchObject({ code: 0, streams: { out: 11 } });
  });
});
