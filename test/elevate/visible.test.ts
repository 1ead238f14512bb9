import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { commandOf, lineOf } from "../../src/elevate/question.ts";
import { visible } from "../../src/elevate/visible.ts";

describe("what a person is shown", () => {
  test("is the text itself where there is nothing hidden in it", () => {
    const text = "grep -rn 'naïve 你好' src | sed 's/\\n//' # 👍";
    expect(visible(text)).toBe(text);
  });

  test("has a sign for what is hidden", () => {
    expect(visible("a\nb\tc\x1b[31m\r\x7f")).toBe("a⏎b␉c␛[31m␍␡");
    expect(visible("\u202egnp.exe\u200b\u00a0\ufeff\u009b\u2028\ud800")).toBe(
      "<U+202E>gnp.exe<U+200B><U+00A0><U+FEFF><U+009B><U+2028><U+D800>",
    );
  });

  test("cannot be confused with a text that holds the signs themselves", () => {
    expect(visible("⏎␛")).toBe("<U+23CE><U+241B>");
  });

  test("is one line without controls, and nothing that can be seen is lost", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const shown = visible(text);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
        for (const character of text)
          if (/[\p{L}\p{N}\p{P}]/u.test(character)) expect(shown).toContain(visible(character));
      }),
    );
  });

  test("is of a command line that line, of other arguments all of them", () => {
    expect(commandOf({ command: "make", elevated: true, timeout: 5 })).toBe("make");
    expect(commandOf({ command: "make", detach: true })).toBe('{"command":"make","detach":true}');
    expect(commandOf({ lines: 5, unit: "a" })).toBe('{"lines":5,"unit":"a"}');
    expect(commandOf({})).toBe("{}");
  });

  test("has five columns, whatever the names are", () => {
    const line = lineOf({
      id: "1",
      kind: "password",
      session: "a\tb",
      agent: "c\nd",
      tool: "t",
      command: "x\ty",
      cwd: "/",
      host: "h",
    });
    expect(line).toBe("1\ta␉b\tc⏎d\tt (password)\tx␉y");
  });
});
