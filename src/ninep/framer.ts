/** Cuts a byte stream into frames: size[4] and what follows, `intro(5)`. */
import { HEADER } from "./codec.ts";
import { malformed } from "./wire.ts";

const none: Buffer = Buffer.alloc(0);
/** What a half frame may occupy before more of it has arrived. */
const firstHold = 64 * 1024;

export class Framer {
  /** Largest frame, in bytes: the msize once it is agreed on. */
  limit: number;
  private chunk = none;
  private at = 0;
  /** The beginning of a frame whose rest has not arrived: `held` bytes of `size`, or of the size field while `size` is 0. */
  private hold = none;
  private held = 0;
  private size = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** Adds what has arrived; the chunk must not change afterwards, frames are views into it. */
  push(chunk: Buffer): void {
    this.chunk = this.at < this.chunk.length ? Buffer.concat([this.chunk.subarray(this.at), chunk]) : chunk;
    this.at = 0;
  }

  /** The next whole frame, or undefined until more has arrived. Throws when what follows cannot be a frame. */
  next(): Buffer | undefined {
    const { chunk, at } = this;
    if (this.held === 0 && chunk.length - at >= 4) {
      const size = this.checked(chunk.readUInt32LE(at));
      if (size <= chunk.length - at) {
        this.at = at + size;
        return chunk.subarray(at, at + size);
      }
    }
    if (this.size === 0 && !this.fill(4)) return undefined;
    this.size = this.checked(this.hold.readUInt32LE(0));
    if (!this.fill(this.size)) return undefined;
    const frame = this.hold.subarray(0, this.size);
    this.hold = none;
    this.held = this.size = 0;
    return frame;
  }

  private checked(size: number): number {
    if (size < HEADER) throw malformed(`a frame of ${size} bytes is smaller than its header`);
    if (size > this.limit)
      throw malformed(`a frame of ${size} bytes is larger than the msize of ${this.limit}`);
    return size;
  }

  /** Moves bytes of the chunk to the held frame until that has `want`; says whether it has. */
  private fill(want: number): boolean {
    const count = Math.min(want - this.held, this.chunk.length - this.at);
    const need = this.held + count;
    if (need > this.hold.length) {
      // A size field alone must not cost its sender's word in memory: the room grows with what has really come.
      const room = Math.max(Math.min(want, firstHold), Math.min(want, 2 * need));
      const larger = Buffer.allocUnsafeSlow(room);
      larger.set(this.hold.subarray(0, this.held));
      this.hold = larger;
    }
    this.hold.set(this.chunk.subarray(this.at, this.at + count), this.held);
    this.held = need;
    this.at += count;
    if (this.at === this.chunk.length) {
      this.chunk = none;
      this.at = 0;
    }
    return need === want;
  }
}
