/** What the made-up sessions, agents and jobs have in common. */
import { qidBlock, type Stamp, type Topic } from "../../src/session/live.ts";
import type { TextLog } from "../../src/store/text-log.ts";

export const started = Date.UTC(2026, 0, 2);
let blocks = 0;

export function nextQid(): number {
  return ++blocks * qidBlock;
}

export class Stamps {
  readonly #stamps = new Map<string, Stamp>();

  stamp(topic: Topic): Stamp {
    return this.#stamps.get(topic) ?? { vers: 0, mtime: started };
  }

  touch(topic: Topic): void {
    const { vers, mtime } = this.stamp(topic);
    this.#stamps.set(topic, { vers: vers + 1, mtime: mtime + 60_000 });
  }
}

export class FakeLog implements TextLog {
  #text = Buffer.alloc(0);
  start = 0;

  get length(): number {
    return this.start + this.#text.length;
  }

  add(text: string): void {
    this.#text = Buffer.concat([this.#text, Buffer.from(text)]);
  }

  /** Forgets the oldest bytes. */
  drop(bytes: number): void {
    this.#text = this.#text.subarray(bytes);
    this.start += bytes;
  }

  kept(offset: number): number {
    return Math.max(offset, this.start);
  }

  read(offset: number, count: number): Uint8Array {
    const at = this.kept(offset) - this.start;
    return this.#text.subarray(at, at + count);
  }
}
