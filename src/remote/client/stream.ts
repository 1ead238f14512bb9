/** One output stream, put together from pieces that may come twice. */
export class Stream {
  #offset = 0;
  /** Bytes of which the host has been told that they have come. */
  acked = 0;

  /** Bytes that have been taken, counted from the first. */
  get offset(): number {
    return this.#offset;
  }

  /** Of a piece what has not been there yet; nothing where bytes before it are missing, which then come first by another way. */
  take(off: number, bytes: Buffer): Buffer {
    const known = this.#offset - off;
    if (known < 0 || known >= bytes.length) return Buffer.alloc(0);
    this.#offset = off + bytes.length;
    return bytes.subarray(known);
  }

  /** What lies before is not to be had any more. */
  skipTo(offset: number): void {
    this.#offset = Math.max(this.#offset, offset);
  }
}
