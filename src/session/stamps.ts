/** When what changed, and how often: the source of `mtime` and `qid.vers`. */
import type { Stamp, Topic } from "./live.ts";

export class Stamps {
  /** Only what has changed since the start has an entry: thousands of idle agents have none. */
  #stamps?: Map<Topic, Stamp>;

  constructor(readonly origin: number) {}

  of(topic: Topic): Stamp {
    return this.#stamps?.get(topic) ?? { vers: 0, mtime: this.origin };
  }

  touch(topic: Topic): void {
    this.#stamps ??= new Map();
    this.#stamps.set(topic, { vers: (this.of(topic).vers + 1) >>> 0, mtime: Date.now() });
  }
}
