/** How file_edit finds its place, and that it leaves everything else as it is. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { locate } from "../../data/tools/lib/locate.ts";
import { FlatText, fromFile, fromModel } from "../../data/tools/lib/text.ts";

/** What file_edit makes of a file's bytes. */
function edit(file: string | Uint8Array, old: string, by: string, all = false): string {
  const bytes = typeof file === "string" ? Buffer.from(file) : file;
  const flat = new FlatText(fromFile(bytes));
  const { edits } = locate(flat.text, fromModel(old), fromModel(by), all, (offset) => flat.lineOf(offset));
  return Buffer.from(flat.splice(edits), "latin1").toString("utf8");
}

describe("the attempts, in their order", () => {
  test("1: exactly, also a part of a line", () => {
    expect(edit("let a = 1;\n", "a = 1", "b = 2")).toBe("let b = 2;\n");
    expect(edit("x\n  x \n", "  x ", "y")).toBe("x\ny\n");
  });

  test("2: blanks at line ends ignored", () => {
    expect(edit("a  \nb\t\nc\n", "a\nb", "A\nB")).toBe("A\nB\nc\n");
    expect(edit("a\nb\n", "a  \nb\n", "A\nB\n")).toBe("A\nB\n");
  });

  test("3: indentation ignored, the file's is kept", () => {
    expect(
      edit("if x:\n    a()\n    if y:\n        b()\n", "a()\nif y:\n    b()", "a()\nif z:\n    c()\n    d()"),
    ).toBe("if x:\n    a()\n    if z:\n        c()\n        d()\n");
    expect(edit("\tone\n\t\ttwo\n", "    one\n        two", "    one\n        2\n")).toBe("\tone\n\t\t2\n");
    expect(edit("  a\n\n  b\n", "a\n\nb", "a\n\n\nb\n")).toBe("  a\n\n\n  b\n");
  });

  test("3: but not where nobody knows which indentation the new lines should have", () => {
    expect(() => edit("a:\n  b\n    c\n", "a:\nb\nc", "a:\nx\ny")).toThrow("not shifted evenly");
  });

  test("4: runs of blanks count as one", () => {
    expect(edit("int   a  =  1;\n", "int a = 1;", "int a = 2;")).toBe("int a = 2;\n");
  });

  test("an earlier attempt wins over a later one", () => {
    expect(edit("  a\na\n", "  a", "  b")).toBe("  b\na\n");
    expect(edit("\ta\nx a\n", "x a", "x b")).toBe("\ta\nx b\n");
  });
});

describe("never ambiguous", () => {
  test("two places are an error that names them, for every attempt", () => {
    expect(() => edit("a\nb\na\n", "a", "c")).toThrow("occurs 2 times, at lines 1, 3");
    expect(() => edit("  a\nb\n    a\n", "a \n", "c")).toThrow("(indentation ignored), at lines 1, 3");
    expect(() => edit("a\n".repeat(50), "a", "c")).toThrow(
      "occurs 50 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …",
    );
  });

  test("unless all are meant", () => {
    expect(edit("a\nb\na\n", "a", "c", true)).toBe("c\nb\nc\n");
    expect(edit("  f(1)\n    f(1)\n", "f(1) \n", "g(2)\n", true)).toBe("  g(2)\n    g(2)\n");
    expect(edit("aaaa", "aa", "b", true)).toBe("bb");
  });

  test("a place that is not there is an error, with the likely reason", () => {
    expect(() => edit("a\n", "b", "c")).toThrow("does not occur");
    expect(() => edit("a\nb\n", "     1\ta\n     2\tb", "c")).toThrow("leave out the line numbers");
    expect(() => edit("a\n", " \n", "c")).toThrow("does not occur");
  });
});

describe("everything around stays as it is", () => {
  const crlf = "def greet(name):\r\n    print(name)\r\n\r\ndef add(a, b):\r\n    return a + b\r\n";

  test("CRLF files stay CRLF, edited with LF text", () => {
    expect(
      edit(crlf, "def add(a, b):\n    return a + b", "def add(a, b):\n    # sum\n    return a + b"),
    ).toBe(crlf.replace("    return", "    # sum\r\n    return"));
    expect(edit("a\r\nb\r\nc\r\n", "b\n", "")).toBe("a\r\nc\r\n");
    expect(edit("a\r\nb", "b", "b\nc")).toBe("a\r\nb\r\nc");
    expect(edit("a\r\n", "a\r\n", "b\r\nc\r\n")).toBe("b\r\nc\r\n");
  });

  test("one bare LF does not convert the file", () => {
    expect(edit("a\r\nb\nc\r\nd\r\n", "c\nd", "C\nD")).toBe("a\r\nb\nC\r\nD\r\n");
    expect(edit("a\nb\r\nc\n", "a", "a\nx")).toBe("a\nx\nb\r\nc\n");
  });

  test("the byte order mark stays, and the first line is found behind it", () => {
    expect(edit("\uFEFFone\ntwo\n", "one\ntwo", "1\n2")).toBe("\uFEFF1\n2\n");
    expect(edit("\uFEFFone  \ntwo\n", "one\ntwo\n", "1\n2\n")).toBe("\uFEFF1\n2\n");
  });

  test("the last line keeps having, or not having, a newline", () => {
    expect(edit("a\nb", "b", "c")).toBe("a\nc");
    expect(edit("a\nb", "b\n", "c\n")).toBe("a\nc");
    expect(edit("a\nb\n", "b", "c")).toBe("a\nc\n");
  });

  test("whole lines go with their newline", () => {
    expect(edit("a\n  b\nc\n", "b\n", "", false)).toBe("a\n  c\n");
    expect(edit("a\n  b  \nc\n", "  b\n", "")).toBe("a\nc\n");
  });

  test("bytes that are no UTF-8 survive", () => {
    const file = Buffer.from([0xff, 0xfe, 0x0a, 0x61, 0x0a, 0xe9, 0x0d, 0x0a]);
    const flat = new FlatText(fromFile(file));
    const { edits } = locate(flat.text, fromModel("a"), fromModel("ä"), false, () => 0);
    expect(Buffer.from(flat.splice(edits), "latin1")).toEqual(
      Buffer.from([0xff, 0xfe, 0x0a, 0xc3, 0xa4, 0x0a, 0xe9, 0x0d, 0x0a]),
    );
  });

  test("whatever the file: only the place changes", () => {
    const line = fc
      .array(fc.constantFrom("a", "b", " ", "\t", "ä", "\r"), { maxLength: 4 })
      .map((parts) => parts.join(""));
    const rows = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 6 });
    const join = (lines: [string, string][]) => lines.map(([text, end]) => text + end).join("");
    fc.assert(
      fc.property(fc.boolean(), rows, rows, (mark, before, after) => {
        const [head, tail] = [(mark ? "\uFEFF" : "") + join(before), join(after)];
        expect(edit(`${head}THE PLACE\r\n${tail}`, "THE PLACE\n", "ONE\nTWO\n")).toBe(
          `${head}ONE\r\nTWO\r\n${tail}`,
        );
      }),
    );
  });
});

test("the documentation of file_edit tells the order", () => {
  const { documentation } = JSON.parse(
    readFileSync(`${import.meta.dir}/../../data/tools/file_edit.meta`, "utf8"),
  );
  const order = ["exactly", "blanks at their ends", "indentation", "any run of blanks"].map((words) =>
    documentation.indexOf(words),
  );
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order[0]).toBeGreaterThan(0);
});
