/** A bounded ring of JSON lines: one for each transition of an agent's actors. */
import type { TextLog } from "./live.ts";

/** Bytes kept; older lines fall out. */
const capacity = 64 * 1024;

export interface Transition {
  /** `agent`, or `call:ID`. */
  actor: string;
  /** The event's type as XState has it. */
  event: string;
  from: string;
  to: string;
}

export class Trace implements TextLog {
  #lines: Uint8Array[] = [];
  #kept = 0;
  length = 0;

  get start(): number {
    return this.length - this.#kept;
  }

  add(transition: Transition): void {
    const line = Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), ...transition })}\n`);
    this.#lines.push(line);
    this.length += line.length;
    this.#kept += line.length;
    let fallen = 0;
    while (this.#kept > capacity) this.#kept -= this.#lines[fallen++]!.length;
    if (fallen > 0) this.#lines.splice(0, fallen);
  }

  /** An offset before the oldest line that is kept reads from that line on. */
  read(offset: number, count: number): Uint8Array {
    const text = Buffer.concat(this.#lines);
    const at = Math.max(0, offset - this.start);
    return text.subarray(at, at + count);
  }
}
