/** Frames out of a stream that comes in pieces of any size. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Framer } from "../../src/ninep/framer.ts";

function frame(length: number, fill: number): Buffer {
  const bytes = Buffer.alloc(length, fill);
  bytes.writeUInt32LE(length);
  return bytes;
}

describe("framer", () => {
  test("gives the same frames however the stream is cut, and whenever they are asked for", () => {
    const pieces = fc.record({
      frames: fc.array(fc.tuple(fc.integer({ min: 7, max: 300 }), fc.nat(255)), { maxLength: 20 }),
      cuts: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 20 }),
      lazy: fc.boolean(),
    });
    fc.assert(
      fc.property(pieces, ({ frames, cuts, lazy }) => {
        const sent = frames.map(([length, fill]) => frame(length, fill));
        const stream = Buffer.concat(sent);
        const framer = new Framer(300);
        const got: string[] = [];
        const take = () => {
          for (let next = framer.next(); next; next = framer.next()) got.push(next.toString("hex"));
        };
        for (let at = 0, i = 0; at < stream.length; i++) {
          const end = at + cuts[i % cuts.length]!;
          framer.push(Buffer.from(stream.subarray(at, end)));
          if (!lazy) take();
          at = end;
        }
        take();
        expect(got).toEqual(sent.map((bytes) => bytes.toString("hex")));
      }),
      { numRuns: 1000 },
    );
  });

  test.each([0, 3, 6, 301, 0xffff_ffff])("refuses a size of %d, also when it comes byte by byte", (size) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(size);
    const framer = new Framer(300);
    for (const byte of bytes.subarray(0, 3)) {
      framer.push(Buffer.from([byte]));
      expect(framer.next()).toBeUndefined();
    }
    framer.push(bytes.subarray(3));
    expect(() => framer.next()).toThrow();
  });

  test("a large frame in small pieces", () => {
    const whole = frame(1_000_000, 7);
    const framer = new Framer(1 << 20);
    for (let at = 0; at < whole.length; at += 10_007) {
      expect(framer.next()).toBeUndefined();
      framer.push(whole.subarray(at, at + 10_007));
    }
    expect(framer.next()!.equals(whole)).toBe(true);
    expect(framer.next()).toBeUndefined();
  });
});
