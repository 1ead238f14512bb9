import { expect, test } from "bun:test";
import fc from "fast-check";
import { Frames } from "../../../src/remote/protocol/frames.ts";

function framed(limit: number, pieces: Uint8Array[]) {
  const seen: (string | number)[] = [];
  const frames = new Frames(limit, {
    onLine: (line) => seen.push(line),
    onTooLong: (bytes) => seen.push(bytes),
  });
  for (const piece of pieces) frames.add(piece);
  return seen;
}

const bytes = (text: string) => new TextEncoder().encode(text);

test("lines come out as they went in, wherever the bytes were cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "grapheme" })),
      fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
      (texts, sizes) => {
        const lines = texts.map((text) => JSON.stringify(text));
        const whole = bytes(lines.map((line) => `${line}\n`).join(""));
        const pieces: Uint8Array[] = [];
        for (let at = 0; at < whole.length; ) {
          const size = sizes.next().value as number;
          pieces.push(whole.subarray(at, at + size));
          at += size;
        }
        expect(framed(1000, pieces)).toEqual(lines);
      },
    ),
  );
});

test("a line of exactly the limit, its newline included, is taken; one byte more is not", () => {
  expect(framed(5, [bytes("1234\n")])).toEqual(["1234"]);
  expect(framed(5, [bytes("12345\n")])).toEqual([6]);
});

test("what is too long is passed over to its end, and the next line is whole", () => {
  const long = "x".repeat(100);
  expect(framed(10, [bytes(long), bytes(long), bytes("\n1\n")])).toEqual([201, "1"]);
});

test("a buffer that its owner uses again does not change what came before", () => {
  const buffer = bytes("12");
  const seen: string[] = [];
  const frames = new Frames(100, { onLine: (line) => seen.push(line), onTooLong() {} });
  frames.add(buffer);
  buffer.fill(57);
  frames.add(bytes("3\n"));
  expect(seen).toEqual(["123"]);
});

test("an empty line is nothing", () => {
  expect(framed(10, [bytes("\n\n1\n\n")])).toEqual(["1"]);
});
