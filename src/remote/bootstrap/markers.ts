/** Finds what the script says (`\nOLLIE1 NONCE word …\n`) in what a host prints on stdout, and hands on what comes behind it. */

/** Bytes of anything else, kept for the error text; beyond them nothing sensible will come. */
export const noiseLimit = 64 * 1024;

export class Markers {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #start: Buffer;
  #pending: Buffer = Buffer.alloc(0);
  #noise: Buffer = Buffer.alloc(0);
  #ended = false;
  /** A marker has come. */
  spoke = false;

  constructor(stdout: AsyncIterable<Uint8Array>, nonce: string) {
    this.#source = stdout[Symbol.asyncIterator]();
    this.#start = Buffer.from(`\nOLLIE1 ${nonce} `);
  }

  /** What came that is no marker. */
  get noise(): string {
    return Buffer.concat([this.#noise, this.#ended ? this.#pending : Buffer.alloc(0)]).toString();
  }

  /**
   * The words of the next marker; undefined at the end of the stream.
   * @throws RangeError where more than `noiseLimit` of something else comes
   */
  async next(): Promise<string[] | undefined> {
    for (;;) {
      const at = this.#pending.indexOf(this.#start);
      const from = at + this.#start.length;
      const end = at < 0 ? -1 : this.#pending.indexOf(10, from);
      if (end >= 0) {
        const words = this.#pending.toString("utf8", from, end).split(" ").filter(Boolean);
        this.spoke = true;
        this.#keepNoise(at);
        this.#pending = this.#pending.subarray(end + 1 - at);
        return words;
      }
      // Of a marker that has begun something may be there already.
      if (at < 0) this.#keepNoise(Math.max(0, this.#pending.length - this.#start.length));
      if (this.#noise.length + this.#pending.length > noiseLimit) throw new RangeError("too much noise");
      const { value, done } = await this.#source.next();
      if (done) {
        this.#ended = true;
        return undefined;
      }
      this.#pending = Buffer.concat([this.#pending, value]);
    }
  }

  /** All that comes behind the marker that was read last. */
  async *rest(): AsyncGenerator<Uint8Array> {
    if (this.#pending.length > 0) yield this.#pending;
    this.#pending = Buffer.alloc(0);
    for (;;) {
      const { value, done } = await this.#source.next();
      if (done) return;
      yield value;
    }
  }

  #keepNoise(count: number): void {
    this.#noise = Buffer.concat([this.#noise, this.#pending.subarray(0, count)]);
    this.#pending = this.#pending.subarray(count);
  }
}
