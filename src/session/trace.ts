/** A bounded ring of JSON lines: one for each transition of an agent's actors. */
import { Secrets } from "../config/secrets.ts";
import type { TextLog } from "../store/text-log.ts";

/** Bytes kept, for as long as the agent lives: some fifteen turns. Older lines fall out, half of them at a time. */
const capacity = 16 * 1024;

export interface Transition {
  /** `agent`, `call:ID`, or `remote`: the way to another host. */
  actor: string;
  /** The event's type as XState has it. */
  event: string;
  from: string;
  to: string;
}

export class Trace implements TextLog {
  #bytes = Buffer.alloc(1024);
  #kept = 0;
  length = 0;

  /** @param secrets what no line may hold */
  constructor(private readonly secrets = new Secrets()) {}

  kept(offset: number): number {
    return Math.max(offset, this.length - this.#kept);
  }

  add(transition: Transition): void {
    const line = Buffer.from(
      this.secrets.mask(`${JSON.stringify({ time: new Date().toISOString(), ...transition })}\n`),
    );
    if (this.#kept + line.length > capacity) this.#forget(capacity / 2);
    this.#makeRoom(this.#kept + line.length);
    line.copy(this.#bytes, this.#kept);
    this.#kept += line.length;
    this.length += line.length;
  }

  /** An offset before the oldest line that is kept reads from that line on. */
  read(offset: number, count: number): Uint8Array {
    const at = this.kept(offset) - (this.length - this.#kept);
    return Buffer.from(this.#bytes.subarray(at, Math.min(at + count, this.#kept)));
  }

  /** Drops the oldest lines, at least so many bytes of them if there are as many. */
  #forget(bytes: number): void {
    const end = this.#bytes.subarray(0, this.#kept).indexOf("\n", Math.min(bytes, this.#kept) - 1) + 1;
    this.#bytes.copyWithin(0, end, this.#kept);
    this.#kept -= end;
  }

  #makeRoom(size: number): void {
    if (size <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(size, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#kept);
    this.#bytes = larger;
  }
}
