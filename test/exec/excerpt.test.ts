import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Excerpt } from "../../src/exec/excerpt.ts";

const gap = (missing: number) => `<${missing}>`;

describe("head and tail", () => {
  test("what fits is shown whole", () => {
    const excerpt = new Excerpt(100);
    for (const line of ["one\n", "two\n", "three"]) excerpt.add(line);
    expect(excerpt.render(100, gap)).toBe("one\ntwo\nthree");
  });

  test("what does not fit shows its first and last lines and how much is missing", () => {
    const excerpt = new Excerpt(100);
    for (let i = 1; i <= 1000; i++) excerpt.add(`line ${i}\n`);
    expect(excerpt.render(40, gap)).toBe("line 1\nline 2\n<8860>\nline 999\nline 1000\n");
  });

  test("it does not matter in which pieces the text comes", () => {
    const text = Array.from({ length: 500 }, (_, i) => `row ${i} äöü 🙂`).join("\n");
    const whole = new Excerpt(200);
    whole.add(text);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1 }), (sizes) => {
        const pieces = new Excerpt(200);
        const characters = [...text];
        for (let i = 0; characters.length > 0; i++)
          pieces.add(characters.splice(0, sizes[i % sizes.length]!).join(""));
        expect(pieces.render(150, gap)).toBe(whole.render(150, gap));
      }),
    );
  });

  test("never more bytes than asked for, never half a character, nothing lost from the count", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme" })),
        fc.integer({ min: 2, max: 64 }),
        (parts, share) => {
          const excerpt = new Excerpt(64);
          for (const part of parts) excerpt.add(part);
          let missing = 0;
          const shown = excerpt.render(share, (n) => {
            missing = n;
            return "";
          });
          const size = Buffer.byteLength(parts.join(""));
          expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(share + 2);
          expect(missing).toBeLessThanOrEqual(size);
          if (missing === 0) expect(shown).toBe(parts.join(""));
          expect(shown.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});
