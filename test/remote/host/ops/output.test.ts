/** What operations print: in order, each byte once, at the pace of who reads it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { window } from "../../../../src/remote/protocol/limits.ts";
import type { OpOutput } from "../../../../src/remote/protocol/operation.ts";
import { until } from "../../../until.ts";
import { call, ended, Host, request, run, sh } from "./ground.ts";

let host: Host;
let operations: Operations;

beforeEach(async () => {
  host = new Host();
  operations = await host.open();
});

afterEach(async () => {
  await operations.close();
  host.remove();
});

const bytesOf = ({ stream, data }: OpOutput) => Buffer.from(data, stream === "text" ? "utf8" : "base64");

/** Reads whole ranges until there is no more. */
async function all(opId: string, stream: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  const size = operations.get(opId).streams[stream] ?? 0;
  for (let from = 0; from < size; ) {
    const piece = await operations.output({ opId, stream, from, to: size });
    const bytes = Buffer.from(piece.data, stream === "text" ? "utf8" : "base64");
    if (bytes.length === 0) break;
    parts.push(bytes);
    from = piece.from + bytes.length;
  }
  return Buffer.concat(parts);
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

test("bytes come as they are, each stream by itself, with the step that has printed them", async () => {
  const asked = request([
    { program: "printf", args: ["\\000\\377one"], env: {} },
    sh("printf two; printf bad >&2; printf '\\303'"),
    sh("printf '\\251'"),
  ]);
  await operations.start(asked);
  operations.follow({ opId: asked.opId, from: {} });
  const report = await ended(operations, asked.opId);
  expect(report).toMatchObject({ status: "exited", code: 0, streams: { out: 10, err: 3 } });
  const out = host.outputs.filter(({ stream }) => stream === "out");
  expect(Buffer.concat(out.map(bytesOf)).toString("latin1")).toBe("\x00\xffonetwo\xc3\xa9");
  expect(new Set(out.map(({ step }) => step))).toEqual(new Set([0, 1, 2]));
  expect(host.outputs.filter(({ stream }) => stream === "err").map(({ step }) => step)).toEqual([1]);
  expect(host.exits.map(({ opId }) => opId)).toEqual([asked.opId]);
});

test("a reader that acknowledges nothing gets a window of each stream, and the program ends all the same", async () => {
  const asked = request([sh("head -c 3000000 /dev/zero; head -c 500000 /dev/zero >&2")]);
  await operations.start(asked);
  operations.follow({ opId: asked.opId, from: {} });
  expect(await ended(operations, asked.opId)).toMatchObject({
    code: 0,
    streams: { out: 3_000_000, err: 500_000 },
  });
  const sent = (name: string) =>
    host.outputs
      .filter(({ stream }) => stream === name)
      .reduce((sum, output) => sum + bytesOf(output).length, 0);
  expect([sent("out"), sent("err")]).toEqual([window, window]);
  // Who follows is told of the end after the last byte.
  expect(host.exits).toEqual([]);
  let read = 0;
  while (host.exits.length === 0) {
    const output = host.outputs[read++]!;
    operations.ack({ opId: asked.opId, stream: output.stream, off: output.off + bytesOf(output).length });
    await Bun.sleep(0);
  }
  expect([sent("out"), sent("err")]).toEqual([3_000_000, 500_000]);
  for (const name of ["out", "err"]) {
    let off = 0;
    for (const output of host.outputs.filter(({ stream }) => stream === name)) {
      expect(output.off).toBe(off);
      off += bytesOf(output).length;
    }
  }
});

test("who follows from an offset gets what comes after it, also after the connection was lost", async () => {
  const asked = request([sh("echo first; until [ -e go ]; do sleep 0.02; done; echo second")]);
  await operations.start(asked);
  operations.follow({ opId: asked.opId, from: {} });
  await until("output", () => host.outputs.length > 0);
  operations.detach();
  host.file("work/go", "");
  await ended(operations, asked.opId);
  expect(host.outputs.map(bytesOf).join("")).toBe("first\n");
  host.outputs.length = 0;
  operations.follow({ opId: asked.opId, from: { out: 3 } });
  await until("the end is told", () => host.exits.some(({ ended }) => ended !== undefined));
  expect(host.outputs).toMatchObject([{ off: 3, stream: "out" }]);
  expect(bytesOf(host.outputs[0]!).toString()).toBe("st\nsecond\n");
});

test("what a tool prints is text, cut between characters only", async () => {
  host.tool("say", "i=0; while [ $i -lt 4000 ]; do echo 'äöü ✓ 🙂'; i=$((i + 1)); done");
  const asked = request([call("say")]);
  host.onNotify = () => {
    const output = host.outputs.at(-1);
    if (output && host.exits.length === 0)
      operations.ack({ opId: output.opId, stream: output.stream, off: output.off + bytesOf(output).length });
  };
  await operations.start(asked);
  operations.follow({ opId: asked.opId, from: {} });
  const report = await ended(operations, asked.opId);
  await until("an end", () => host.exits.length > 0);
  const text = host.outputs.map(({ data }) => data).join("");
  expect(text).not.toContain("\ufffd");
  expect(text).toStartWith("äöü ✓ 🙂\näöü ✓ 🙂\n");
  expect(Buffer.byteLength(text)).toBe(report.streams.text!);
  expect((await all(asked.opId, "text")).toString()).toBe(text);
  for (const from of [1, 2, 3, 5])
    expect((await operations.output({ opId: asked.opId, stream: "text", from: 0, to: from })).data).toBe(
      Buffer.from("äöü")
        .subarray(0, from - (from % 2))
        .toString(),
    );
});

test("a report shows the beginning and the end of a long output, and says what is left out", async () => {
  const report = await run(
    operations,
    request([sh("echo begin; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end; echo why >&2")]),
  );
  expect(report.output).toStartWith("begin\nxxx");
  expect(report.output).toContain("bytes left out here");
  expect(report.output).toContain("end\n[stderr]\nwhy\n");
  expect(Buffer.byteLength(report.output!)).toBeLessThan(257 * 1024);
});

test("beyond max_spool_bytes the first half and the newest part are kept, and ranges say what is missing", async () => {
  await operations.close();
  host.hard = { max_spool_bytes: 1_000_000 };
  operations = await host.open();
  const asked = request([sh("seq 1000000")]);
  const report = await run(operations, asked);
  const size = report.streams.out!;
  expect(size).toBe(6_888_896);
  const folder = join(host.folder, "ops", asked.opId);
  const onDisk = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(onDisk).toBeLessThanOrEqual(1_000_000);
  const kept = await all(asked.opId, "out");
  expect(kept.toString()).toStartWith("1\n2\n3\n");
  expect(kept.toString()).toEndWith("\n999999\n1000000\n");
  const gap = await operations.output({ opId: asked.opId, stream: "out", from: 600_000, to: size });
  expect(gap.from).toBeGreaterThan(600_000);
  expect(report.output).toContain("\n1000000\n");
});

test("a gigabyte that nobody reads costs no memory", async () => {
  const child = Bun.spawnSync([process.execPath, join(import.meta.dir, "flood.child.ts"), host.top], {
    env: process.env,
  });
  expect(child.stderr.toString()).toBe("");
  const { status, code, size, peak, head, tail } = JSON.parse(child.stdout.toString());
  expect({ status, code, size }).toEqual({ status: "exited", code: 0, size: 2 ** 30 });
  expect([head, tail]).toEqual([sha256(Buffer.alloc(1000)), sha256(Buffer.alloc(1000))]);
  // MiB above what the engine itself has taken before.
  expect(peak).toBeLessThan(80);
}, 300_000);
