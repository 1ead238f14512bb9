/** Hashes of programs, as hosts make them. */
import { createHash } from "node:crypto";

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

const polynomial = 0x04c11db7;
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ polynomial : crc << 1;
  return crc >>> 0;
});

/** What cksum(1) prints of the bytes (POSIX), as `CRC-LENGTH`. For hosts that have nothing better: it protects from damage only. */
export class Cksum {
  #crc = 0;
  #length = 0;

  update(bytes: Uint8Array): this {
    let crc = this.#crc;
    for (let at = 0; at < bytes.length; at++) crc = (crc << 8) ^ table[(crc >>> 24) ^ bytes[at]!]!;
    this.#crc = crc;
    this.#length += bytes.length;
    return this;
  }

  digest(): string {
    let crc = this.#crc;
    for (let rest = this.#length; rest > 0; rest = Math.floor(rest / 256))
      crc = (crc << 8) ^ table[(crc >>> 24) ^ (rest & 0xff)]!;
    return `${~crc >>> 0}-${this.#length}`;
  }
}
