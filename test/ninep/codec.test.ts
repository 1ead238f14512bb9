/** Messages and bytes. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decode, encode } from "../../src/ninep/codec.ts";
import * as m from "../../src/ninep/messages.ts";
import { ProtocolError } from "../../src/ninep/wire.ts";
import { message } from "./arbitrary.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("bytes of messages", () => {
  // Written out by hand from intro(5) and its sections.
  const golden: [m.Message, string][] = [
    [
      { type: m.Tversion, tag: m.NOTAG, msize: 8192, version: "9P2000" },
      "13000000 64 ffff 00200000 0600 395032303030",
    ],
    [
      { type: m.Tattach, tag: 1, fid: 0, afid: m.NOFID, uname: "me", aname: "" },
      "15000000 68 0100 00000000 ffffffff 0200 6d65 0000",
    ],
    [
      { type: m.Twalk, tag: 2, fid: 3, newfid: 4, wname: ["a", "é"] },
      "18000000 6e 0200 03000000 04000000 0200 0100 61 0200 c3a9",
    ],
    [
      { type: m.Rwalk, tag: 2, wqid: [{ type: 0x80, vers: 1, path: 2 }] },
      "16000000 6f 0200 0100 80 01000000 0200000000000000",
    ],
    [
      { type: m.Tread, tag: 5, fid: 1, offset: 2 ** 52, count: 0xffff_ffff },
      "17000000 74 0500 01000000 0000000000001000 ffffffff",
    ],
    [
      { type: m.Twrite, tag: 5, fid: 1, offset: m.dontTouch.length, data: Buffer.from("hi") },
      "19000000 76 0500 01000000 ffffffffffffffff 02000000 6869",
    ],
    [{ type: m.Rerror, tag: 5, ename: "no" }, "0b000000 6b 0500 0200 6e6f"],
    [
      { type: m.Twstat, tag: 1, fid: 7, stat: m.dontTouch },
      "3e000000 7e 0100 07000000 3100 2f00 ffff ffffffff ff ffffffff ffffffffffffffff ffffffff ffffffff ffffffff ffffffffffffffff 0000 0000 0000 0000",
    ],
  ];
  test.each(golden.map(([message, bytes]) => [bytes, message] as const))("%s", (bytes, message) => {
    expect(hex(encode(message))).toBe(bytes.replaceAll(" ", ""));
    expect(decode(encode(message))).toEqual(message);
  });

  test("what is encoded is decoded to the same", () => {
    fc.assert(
      fc.property(message, (message) => {
        const bytes = encode(message);
        expect(bytes.readUInt32LE(0)).toBe(bytes.length);
        expect(decode(bytes)).toEqual(message);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("bytes that are no message", () => {
  const decodes = (bytes: Buffer) => {
    try {
      decode(bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
    }
  };

  test("random ones end in a message or a protocol error", () => {
    const frame = fc.tuple(fc.integer({ min: 95, max: 130 }), fc.uint8Array({ maxLength: 100 }));
    fc.assert(
      fc.property(frame, ([type, body]) => decodes(Buffer.from([0, 0, 0, 0, type, 1, 0, ...body]))),
      { numRuns: 5000 },
    );
  });

  test("every message cut short or made longer is an error", () => {
    fc.assert(
      fc.property(message, fc.nat(), (message, at) => {
        const whole = encode(message);
        if (whole.length > 7) {
          const cut = whole.subarray(0, 7 + (at % (whole.length - 7)));
          expect(() => decode(cut)).toThrow(ProtocolError);
        }
        expect(() => decode(Buffer.concat([whole, Buffer.from([0])]))).toThrow(ProtocolError);
      }),
      { numRuns: 2000 },
    );
  });

  test("one changed byte never does worse", () => {
    fc.assert(
      fc.property(message, fc.nat(), fc.integer({ min: 0, max: 255 }), (message, at, byte) => {
        const bytes = encode(message);
        bytes[at % bytes.length] = byte;
        decodes(bytes);
      }),
      { numRuns: 5000 },
    );
  });

  test.each([
    ["a lone continuation", [0x80]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a cut sequence", [0xe2, 0x82]],
    ["beyond Unicode", [0xf4, 0x90, 0x80, 0x80]],
    ["NUL", [0x61, 0x00]],
  ])("a name with %s is refused, not mended", (_what, bytes) => {
    const body = [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, bytes.length, 0, ...bytes];
    expect(() => decode(Buffer.from([0, 0, 0, 0, m.Twalk, 1, 0, ...body]))).toThrow(ProtocolError);
  });

  test("a byte order mark is part of a name", () => {
    const message: m.Message = { type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname: ["\uFEFFname"] };
    expect(decode(encode(message))).toEqual(message);
  });
});

describe("what does not fit its wire form", () => {
  const walk = (wname: string[]) => () => encode({ type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname });

  test("is an error where it is encoded", () => {
    expect(walk(["x".repeat(65536)])).toThrow("longer than 65535 bytes");
    expect(walk(["é".repeat(32768)])).toThrow("longer than 65535 bytes");
    expect(walk(["x".repeat(65535)])).not.toThrow();
    expect(walk(Array(17).fill("a"))).toThrow("at most 16");
    expect(walk(["half \ud83d pair"])).toThrow("not valid Unicode");
    expect(walk(["a\0b"])).toThrow("NUL");
  });
});
