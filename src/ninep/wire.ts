/** The primitive fields of 9P messages, `intro(5)`: little-endian integers and counted UTF-8 strings. */
import { NineError, phrase } from "./errors.ts";

/** The other side broke the protocol. The only error that the codec throws. */
export class ProtocolError extends NineError {}

/** Bytes that are no message. */
export function malformed(detail: string): ProtocolError {
  return new ProtocolError(phrase.proto, detail);
}

/** A 64-bit field: a number where that is exact (below 2^53), a bigint above. */
export type U64 = number | bigint;

/** "Don't touch" of the 64-bit fields of a Twstat. */
export const MAX_U64 = 0xffff_ffff_ffff_ffffn;

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf8 = new TextEncoder();

/** Reads fields from a byte range; every read is checked against its end. */
export class Reader {
  constructor(
    private readonly bytes: Buffer,
    private at: number,
    private readonly end: number,
  ) {}

  get rest(): number {
    return this.end - this.at;
  }

  private take(count: number): number {
    const at = this.at;
    if (count > this.end - at) throw malformed("a field runs past the end of the message");
    this.at = at + count;
    return at;
  }

  u8(): number {
    return this.bytes[this.take(1)]!;
  }

  u16(): number {
    const at = this.take(2);
    return this.bytes[at]! | (this.bytes[at + 1]! << 8);
  }

  u32(): number {
    const at = this.take(4);
    const bytes = this.bytes;
    return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
  }

  u64(): U64 {
    const low = this.u32();
    const high = this.u32();
    return high < 0x20_0000 ? high * 0x1_0000_0000 + low : (BigInt(high) << 32n) | BigInt(low);
  }

  /** A view, not a copy. */
  data(count: number): Buffer {
    const at = this.take(count);
    return this.bytes.subarray(at, at + count);
  }

  /** Invalid UTF-8 and NUL are refused, never replaced: two different names must not become one. */
  string(): string {
    const length = this.u16();
    const at = this.take(length);
    const end = at + length;
    let bits = 0;
    for (let i = at; i < end; i++) {
      const byte = this.bytes[i]!;
      if (byte === 0) throw malformed("a string contains NUL");
      bits |= byte;
    }
    if (bits < 0x80) return this.bytes.toString("latin1", at, end);
    try {
      return strict.decode(this.bytes.subarray(at, end));
    } catch {
      throw malformed("a string is not valid UTF-8");
    }
  }

  /** For error texts, which are worth reading even where they are not valid. */
  looseString(): string {
    return this.data(this.u16()).toString("utf8");
  }
}

/** Appends fields to a buffer that grows. What it throws leaves half a message behind: take the `end` before and set it back. */
export class Writer {
  constructor(
    public bytes: Buffer,
    public end = 0,
  ) {}

  /** Makes room for `count` more bytes. */
  reserve(count: number): void {
    const need = this.end + count;
    if (need <= this.bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(need, 2 * this.bytes.length));
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  u8(value: number): void {
    this.reserve(1);
    this.bytes[this.end++] = value;
  }

  u16(value: number): void {
    this.reserve(2);
    this.bytes[this.end++] = value;
    this.bytes[this.end++] = value >>> 8;
  }

  u32(value: number): void {
    this.reserve(4);
    this.putU32(this.end, value);
    this.end += 4;
  }

  /** Overwrites an earlier field, such as a size that is known only at the end. */
  putU32(at: number, value: number): void {
    this.bytes[at] = value;
    this.bytes[at + 1] = value >>> 8;
    this.bytes[at + 2] = value >>> 16;
    this.bytes[at + 3] = value >>> 24;
  }

  u64(value: U64): void {
    if (typeof value === "number") {
      this.u32(value);
      this.u32(value / 0x1_0000_0000);
    } else {
      this.u32(Number(value & 0xffff_ffffn));
      this.u32(Number(value >> 32n));
    }
  }

  data(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.end);
    this.end += bytes.length;
  }

  string(text: string): void {
    this.reserve(2 + 3 * text.length);
    const at = this.end + 2;
    let end = at;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x80 || unit === 0) {
        end = at + this.encodeInto(text, at);
        break;
      }
      this.bytes[end++] = unit;
    }
    const length = end - at;
    if (length > 0xffff) throw malformed("a string is longer than 65535 bytes");
    this.end = at - 2;
    this.u16(length);
    this.end = end;
  }

  private encodeInto(text: string, at: number): number {
    if (text.includes("\0")) throw malformed("a string contains NUL");
    if (!text.isWellFormed()) throw malformed("a string is not valid Unicode");
    return utf8.encodeInto(text, this.bytes.subarray(at)).written;
  }
}
