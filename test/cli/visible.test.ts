import { expect, test } from "bun:test";
import fc from "fast-check";
import { Visible } from "../../src/cli/client/visible.ts";

function shown(text: string, cut = 0): string {
  const visible = new Visible();
  const bytes = Buffer.from(text);
  const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)].map((piece) => visible.pass(piece));
  return Buffer.concat(pieces).toString();
}

test("escape sequences are shown and not sent", () => {
  expect(shown("a\x1b]0;owned\x07b\r\x7f")).toBe("a^[]0;owned^Gb^M^?");
  expect(shown("\u009b31mred")).toBe("^[[31mred");
});

test("everything else passes, wherever the pieces are cut", () => {
  const text = "naïve ¿§ 你好 👍\ttab\nline";
  for (let cut = 0; cut <= Buffer.byteLength(text); cut++) expect(shown(text, cut)).toBe(text);
});

test("no control character ever comes through", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(), (text, cut) => {
      const out = shown(text, cut % (Buffer.byteLength(text) + 1));
      expect(out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }),
  );
});
