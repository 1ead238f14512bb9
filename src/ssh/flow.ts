/** Bytes between a source that pushes and a reader that takes its time. */

/** More than this waits: the source is asked to stop. Bytes. */
const mark = 1 << 20;
/** Of what a program says for people, this much of the end is kept. Bytes. */
const kept = 32 << 10;

/** For one reader. */
export class Flow implements AsyncIterable<Uint8Array> {
  private readonly waiting: Uint8Array[] = [];
  private size = 0;
  private ended = false;
  private wake: (() => void) | undefined;

  /** @param hold stops the source, or lets it go on */
  constructor(private readonly hold: (stop: boolean) => void) {}

  push(bytes: Uint8Array): void {
    this.waiting.push(bytes);
    this.size += bytes.length;
    if (this.size > mark && !this.ended) this.hold(true);
    this.wake?.();
  }

  /** What waits can still be read. */
  end(): void {
    this.ended = true;
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    while (true) {
      const bytes = this.waiting.shift();
      if (bytes) {
        const full = this.size > mark;
        this.size -= bytes.length;
        if (full && this.size <= mark) this.hold(false);
        yield bytes;
      } else if (this.ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
        this.wake = undefined;
      }
    }
  }
}

/** The end of what was said. */
export class Tail {
  private readonly pieces: Uint8Array[] = [];
  private size = 0;

  push(bytes: Uint8Array): void {
    // A copy: the piece may be a part of something much bigger.
    this.pieces.push(bytes.slice(-kept));
    this.size += this.pieces.at(-1)!.length;
    while (this.size - this.pieces[0]!.length >= kept) this.size -= this.pieces.shift()!.length;
  }

  get text(): string {
    return new TextDecoder().decode(Buffer.concat(this.pieces).subarray(-kept));
  }
}

/** Waits that something else may end. (A race with a promise that lives as long as a connection would keep something of every round.) */
export class Waits {
  private readonly open = new Set<() => void>();

  /** Whether what was started has called back with true. */
  until(start: (done: (well: boolean) => void) => void): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (well: boolean) => {
        this.open.delete(fail);
        resolve(well);
      };
      const fail = () => settle(false);
      this.open.add(fail);
      start(settle);
    });
  }

  /** Those that are open end with false. */
  end(): void {
    for (const fail of this.open) fail();
  }
}
