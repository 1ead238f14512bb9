import { describe, expect, test } from "bun:test";
import { LoopGuard } from "../../src/turn/guard.ts";

const result = (name: string, args: string, text: string, ok = true) => ({ name, args, text, ok });

/** What the guard says after each round: `n` for a note, `s` for a stop, a dot for nothing. */
function watch(...rounds: ReturnType<typeof result>[][]): string {
  const guard = new LoopGuard();
  return rounds
    .map((round) => {
      guard.round(round);
      if (guard.stop()) return "s";
      return guard.note() ? "n" : ".";
    })
    .join("");
}

const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));

describe("a model in circles", () => {
  test("is told at the third equal call, once, and stopped at the fifth", () => {
    expect(watch(...times(5, () => [result("shell", "{}", "same")]))).toBe("..n.s");
  });

  test("is found out also where it alternates, or makes other calls beside", () => {
    const [a, b] = [result("a", "{}", "x"), result("b", "{}", "y")];
    expect(watch([a], [b], [a], [b], [a], [b], [a], [b], [a])).toBe("....n...s");
    expect(watch(...times(5, (i) => [a, result("c", `${i}`, "z")]))).toBe("..n.s");
    expect(watch(...times(5, () => [a, a, a]))).toBe("..n.s");
  });

  test("is left alone when it asks the same many times at once: it has not seen a result yet", () => {
    const a = result("a", "{}", "x");
    expect(watch(times(20, () => a))).toBe(".");
  });

  test("is left alone where arguments or results differ", () => {
    expect(watch(...times(9, (i) => [result("a", `${i}`, "x")]))).toBe(".........");
    expect(watch(...times(9, (i) => [result("a", "{}", `count is ${i}`)]))).toBe(".........");
  });
});

describe("a model whose calls all fail", () => {
  const fail = (i: number) => [result("a", `${i}`, `no ${i}`, false)];

  test("is told after five rounds and stopped after ten", () => {
    expect(watch(...times(10, fail))).toBe("....n....s");
  });

  test("has a fresh start after one success", () => {
    expect(watch(...times(4, fail), [result("a", "x", "yes")], ...times(5, (i) => fail(i + 10)))).toBe(
      ".........n",
    );
  });
});
