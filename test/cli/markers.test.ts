import { expect, test } from "bun:test";
import fc from "fast-check";
import { MarkerFilter, terminalStyle } from "../../src/cli/client/markers.ts";

/** What a chat reads like without its markers, said the simple way. */
function withoutMarkers(text: string): string {
  return text.replace(/^\[\[\[.*(\n|$)/gm, "");
}

function filtered(text: string, cuts: number[]): string {
  const filter = new MarkerFilter();
  const bytes = Buffer.from(text);
  let out = "";
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    out += Buffer.from(filter.pass(bytes.subarray(from, cut))).toString("latin1");
    from = cut;
  }
  return Buffer.from(out, "latin1").toString();
}

test("lines that begin with three brackets are left out, wherever the pieces are cut", () => {
  const line = fc.oneof(
    fc.constantFrom(
      "[[[user]]]",
      "[[[end]]]",
      "[[",
      "[",
      " [[[no marker]]]",
      "[[x",
      "",
      "plain",
      "a [[[ b",
      "grüße →",
    ),
    fc.string(),
  );
  const text = fc.array(line).map((lines) => lines.map((one) => `${one}\n`).join(""));
  fc.assert(
    fc.property(text, fc.array(fc.nat()), (chat, cuts) => {
      expect(filtered(chat, cuts)).toBe(withoutMarkers(chat));
    }),
  );
});

test("half a line is shown at once, a beginning that may become a marker only when it is none", () => {
  const filter = new MarkerFilter();
  const pass = (text: string) => Buffer.from(filter.pass(Buffer.from(text))).toString();
  expect(pass("Hel")).toBe("Hel");
  expect(pass("lo\n[[")).toBe("lo\n");
  expect(pass("x")).toBe("[[x");
  expect(pass("\n[[[end]]]\n[")).toBe("\n");
  expect(pass("\n")).toBe("[\n");
});

test("on a terminal each block has the style of its type, also when its marker comes in pieces", () => {
  const filter = new MarkerFilter(terminalStyle);
  const pass = (text: string) => Buffer.from(filter.pass(Buffer.from(text))).toString();
  expect(pass("[[[us") + pass("er time=x]]]\nhi\n[[[end]]]\n")).toBe("\x1b[0m\x1b[1mhi\n\x1b[0m");
  expect(pass("[[[assistant]]]\nhello\n[[[end]]]\n")).toBe("\x1b[0mhello\n\x1b[0m");
  expect(pass("[[[tool name=shell]]]\nout\n")).toBe("\x1b[0m\x1b[2mout\n");
});

test("blocks can be left out, each with all that is in it, wherever the pieces are cut", () => {
  const chat =
    "[[[user]]]\nmine\n [[ x\n[[[end]]]\n[[[assistant]]]\nyes\n[[[end]]]\n[[[user]]]\nyours\n[[[end]]]\n";
  for (let size = 1; size <= chat.length; size++) {
    let own = 1;
    const filter = new MarkerFilter(undefined, (type) => type === "user" && own-- > 0);
    let shown = "";
    for (let at = 0; at < chat.length; at += size)
      shown += Buffer.from(filter.pass(Buffer.from(chat.slice(at, at + size)))).toString();
    expect(shown).toBe("yes\nyours\n");
  }
});
