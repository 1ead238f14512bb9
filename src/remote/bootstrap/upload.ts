/** Sends a program down a channel: tells how far it is, and gives up when nothing moves any more. */
import { Fault } from "../../fault.ts";
import type { SshChannel } from "../../ssh/transport.ts";
import { coded } from "../protocol/errors.ts";
import type { BootOptions } from "./bootstrap.ts";

/** Bytes handed to the channel at once: what progress is counted in. */
const pieceBytes = 64 * 1024;
/** Milliseconds between two reports, and between two looks at whether something moves. */
const interval = 250;
/** The shortest time over which a rate is worth telling, in milliseconds. */
const rateWindow = 2000;

/** Waits for anything of a host, but not longer than it may stand still, and not when nobody wants it any more. */
export class Patience {
  #moved = performance.now();

  constructor(
    readonly stall: number,
    private readonly signal: AbortSignal,
    /** What stands still, for the error. */
    private readonly what: string,
  ) {}

  /** Something has moved. */
  progress(): void {
    this.#moved = performance.now();
  }

  /** @throws Fault "interrupted"; CodedFault "boot.stalled" */
  async wait<T>(work: Promise<T>, look?: () => void): Promise<T> {
    // What was done here since the last time, such as packing, is not the host's delay.
    this.progress();
    let timer: Timer | undefined;
    let abort: (() => void) | undefined;
    const ended = new Promise<never>((_, reject) => {
      abort = () => reject(new Fault("interrupted", `${this.what} was cancelled`));
      if (this.signal.aborted) abort();
      this.signal.addEventListener("abort", abort);
      timer = setInterval(
        () => {
          look?.();
          if (performance.now() - this.#moved < this.stall) return;
          const seconds = Math.round(this.stall / 1000);
          reject(coded("boot.stalled", `${this.what}: nothing has moved for ${seconds} s`, { retry: true }));
        },
        Math.min(interval, this.stall),
      );
    });
    try {
      return await Promise.race([work, ended]);
    } finally {
      clearInterval(timer);
      this.signal.removeEventListener("abort", abort!);
      // When it fails later, nobody waits for it any more.
      work.catch(() => {});
    }
  }
}

export class Upload {
  #written = 0;
  #told = 0;
  #tellAgain = 0;
  #marks: { at: number; done: number }[] = [];

  constructor(
    private readonly channel: SshChannel,
    private readonly total: number,
    private readonly patience: Patience,
    private readonly onProgress: BootOptions["onProgress"],
  ) {}

  /** Bytes that have left for the host. */
  get sent(): number {
    return Math.max(0, this.#written - this.channel.buffered);
  }

  /**
   * @param answer what the host says next; in the middle of an upload it can only be that it wants no more
   * @returns false when it has
   */
  async send(bytes: Uint8Array, answer: Promise<unknown>): Promise<boolean> {
    const answered = answer.then(() => false);
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      const written = this.channel.write(piece).then(() => true);
      written.catch(() => {});
      this.#written += piece.length;
      if (!(await this.patience.wait(Promise.race([answered, written]), () => this.look()))) return false;
      this.look();
    }
    return true;
  }

  /** Tells how far it is, when it is time to. */
  look(): void {
    const done = this.sent;
    const at = performance.now();
    if (done > this.#told) {
      this.patience.progress();
      this.#marks.push({ at, done });
      while (this.#marks.length > 2 && at - this.#marks[1]!.at > rateWindow) this.#marks.shift();
    }
    const last = done >= this.total && this.#told < this.total;
    this.#told = done;
    if (!last && (at < this.#tellAgain || done >= this.total)) return;
    this.#tellAgain = at + interval;
    this.onProgress({ doing: "uploading", done, total: this.total, ...this.#rate() });
    if (last) this.onProgress({ doing: "installing" });
  }

  #rate(): { rate?: number; left?: number } {
    const [first, last] = [this.#marks[0], this.#marks.at(-1)];
    if (!first || !last || last.at <= first.at) return {};
    const rate = Math.round((1000 * (last.done - first.done)) / (last.at - first.at));
    return rate > 0 ? { rate, left: Math.ceil((this.total - last.done) / rate) } : {};
  }
}
