/** Bytes to lines: one JSON value each, UTF-8, ended by a newline; none longer than agreed. */

export interface FrameListener {
  onLine(line: string): void;
  /** A line that was longer than allowed; its bytes are gone. */
  onTooLong(bytes: number): void;
}

export class Frames {
  #parts: Uint8Array[] = [];
  #length = 0;
  /** The present line is too long and is read only to find its end. */
  #skipping = false;
  readonly #decoder = new TextDecoder();

  constructor(
    private readonly limit: number,
    private readonly listener: FrameListener,
  ) {}

  add(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(10, from);
      const part = bytes.subarray(from, end < 0 ? undefined : end);
      this.#length += part.length + (end < 0 ? 0 : 1);
      if (this.#length > this.limit) this.#skip();
      // The buffer may be its owner's to use again.
      if (!this.#skipping && part.length > 0) this.#parts.push(end < 0 ? part.slice() : part);
      if (end < 0) return;
      this.#finish();
      from = end + 1;
    }
  }

  #skip(): void {
    this.#skipping = true;
    this.#parts = [];
  }

  #finish(): void {
    const [only, ...more] = this.#parts;
    const line = more.length === 0 ? only : Buffer.concat(this.#parts);
    const { listener } = this;
    const length = this.#length;
    const tooLong = this.#skipping;
    this.#parts = [];
    this.#length = 0;
    this.#skipping = false;
    if (tooLong) listener.onTooLong(length);
    else if (line) listener.onLine(this.#decoder.decode(line));
  }
}
