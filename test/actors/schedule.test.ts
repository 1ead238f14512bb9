import { describe, expect, test } from "bun:test";
import { type Scheduled, startable } from "../../actors/schedule.ts";

/** `r` read, `w` write, `x` exclusive; lower case waits, upper case runs, a dot has settled. */
function calls(pattern: string): Scheduled[] {
  const classes = { r: "read", w: "write", x: "exclusive" } as const;
  return [...pattern].map((letter) => ({
    concurrency: classes[letter.toLowerCase() as keyof typeof classes] ?? "read",
    status: letter === "." ? "settled" : letter === letter.toLowerCase() ? "waiting" : "running",
  }));
}

function starts(pattern: string): number[] {
  const all = calls(pattern);
  return startable(all).map((call) => all.indexOf(call));
}

describe("which calls may start", () => {
  test("neighbouring reads start together", () => expect(starts("rrr")).toEqual([0, 1, 2]));
  test("a read joins running reads", () => expect(starts("Rr")).toEqual([1]));
  test("a write waits for the reads before it", () => expect(starts("RRw")).toEqual([]));
  test("a write starts alone once those are done", () => expect(starts("..wr")).toEqual([2]));
  test("a read behind a write waits for it", () => expect(starts(".Wr")).toEqual([]));
  test("writes follow each other", () => expect(starts("Ww")).toEqual([]));
  test("an exclusive call holds up what follows", () => expect(starts("xr")).toEqual([0]));
  test("of very many reads, the first ones", () => expect(starts("r".repeat(100))).toHaveLength(32));
  test("as many more as have settled", () => expect(starts(`.${"R".repeat(31)}rr`)).toEqual([32]));
  test("nothing is left to start", () => expect(starts("..")).toEqual([]));
});
