import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Cleaner, lineLimit } from "../../src/exec/clean.ts";

function clean(...chunks: string[]): string {
  const cleaner = new Cleaner();
  return chunks.map((chunk) => cleaner.push(chunk)).join("") + cleaner.end();
}

describe("what a program prints, as plain text", () => {
  const cases: [string, string, string][] = [
    ["colours", "\x1b[31mred\x1b[0m plain", "red plain"],
    ["CRLF", "one\r\ntwo\r\n", "one\ntwo\n"],
    ["a progress bar keeps its last state", " 1%\r 50%\r100%\ndone\n", "100%\ndone\n"],
    ["a progress bar that ends with a return", "1%\r99%\r\nnext", "99%\nnext"],
    [
      "a spinner that erases its line",
      "\x1b[2K\x1b[1G| wait\x1b[2K\x1b[1G/ wait\x1b[2K\x1b[1Gready\n",
      "ready\n",
    ],
    ["a window title, ended by BEL", "\x1b]0;title\x07text", "text"],
    ["a hyperlink, ended by ST", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["a device control string", "\x1bPq#0;2;0~\x1b\\after", "after"],
    ["a character set and a two-character escape", "\x1b(Ba\x1b=b", "ab"],
    ["the 8-bit form of CSI", "\u009b31mred", "red"],
    ["a sequence that never ends takes its line only", "\x1b]0;oops\nnext line\n", "\nnext line\n"],
    ["overstriking", "b\bbo\bol\bld", "bold"],
    ["controls", "ab\x07c\x7fd\te", "abcd\te"],
    ["NULs", "a\x00b\x00\n", "a␀b␀\n"],
    ["no newline at the end", "last", "last"],
    ["other alphabets", "日本語 🙂\n", "日本語 🙂\n"],
  ];
  test.each(cases)("%s", (_name, input, output) => {
    expect(clean(input)).toBe(output);
  });

  test("it does not matter where the chunks end", () => {
    const input = cases.map(([, text]) => text).join("\n");
    const whole = clean(input);
    fc.assert(
      fc.property(fc.array(fc.nat(input.length), { maxLength: 20 }), (cuts) => {
        const borders = [0, ...cuts.sort((a, b) => a - b), input.length];
        expect(clean(...borders.slice(1).map((end, i) => input.slice(borders[i], end)))).toBe(whole);
      }),
    );
  });

  test("any text becomes text without controls", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), (chunks) => {
        expect(clean(...chunks)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
    );
  });
});

describe("long lines", () => {
  test("keep their first 2,000 characters and say how many are missing", () => {
    expect(clean(`${"x".repeat(5000)}\nnext\n`)).toBe(
      `${"x".repeat(lineLimit)}… [+3,000 characters]\nnext\n`,
    );
  });

  test("are cut in the middle of other lines as well", () => {
    expect(clean(`a\n${"x".repeat(2001)}\nb\n`)).toBe(`a\n${"x".repeat(lineLimit)}… [+1 characters]\nb\n`);
  });

  test("are left alone up to the limit", () => {
    const line = `${"x".repeat(lineLimit)}\n`;
    expect(clean(line + line + line)).toBe(line + line + line);
  });

  test("never end in half a character", () => {
    expect(clean("🙂".repeat(3000))).toBe(`${"🙂".repeat(1000)}… [+4,000 characters]`);
    expect(clean(`x${"🙂".repeat(3000)}`)).toBe(`x${"🙂".repeat(999)}… [+4,002 characters]`);
  });

  test("start over with a return", () => {
    expect(clean(`${"x".repeat(5000)}\rshort\n`)).toBe("short\n");
  });
});
