import { describe, expect, test } from "bun:test";
import { Trace } from "../../src/session/trace.ts";

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();
const step = (n: number | string) => ({ actor: "agent", event: `E${n}`, from: "idle", to: "thinking" });
const events = (lines: string) =>
  lines
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line).event);

describe("a trace", () => {
  test("keeps lines in order, and a reader that follows gets each once", () => {
    const trace = new Trace();
    let read = "";
    for (let i = 0; i < 2000; i++) {
      trace.add(step(i));
      for (let at = Buffer.byteLength(read); at < trace.length; at = Buffer.byteLength(read))
        read += text(trace.read(at, 50));
    }
    expect(events(read)).toEqual(Array.from({ length: 2000 }, (_, i) => `E${i}`));
  });

  test("forgets the oldest lines, whole, and a reader that comes late begins with the oldest there is", () => {
    const trace = new Trace();
    for (let i = 0; i < 2000; i++) trace.add(step(i));
    const kept = events(text(trace.read(0, 1e6)));
    expect(kept.length).toBeGreaterThan(50);
    expect(kept.length).toBeLessThan(200);
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => `E${2000 - kept.length + i}`));
    expect(trace.length - trace.kept(0)).toBeLessThanOrEqual(16 * 1024);
    expect(text(trace.read(trace.kept(0), 1e6))).toBe(text(trace.read(0, 1e6)));
    expect(trace.read(trace.length, 100)).toHaveLength(0);
  });

  test("takes a line of any length", () => {
    const trace = new Trace();
    trace.add(step("x".repeat(50_000)));
    for (let i = 0; i < 3; i++) trace.add(step(i));
    expect(events(text(trace.read(0, 1e6))).slice(-3)).toEqual(["E0", "E1", "E2"]);
  });

  test("does not change what has been read from it", () => {
    const trace = new Trace();
    trace.add(step(0));
    const read = trace.read(0, 1000);
    const before = text(read);
    for (let i = 0; i < 1000; i++) trace.add(step(i));
    expect(text(read)).toBe(before);
  });
});
