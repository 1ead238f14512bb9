/** Times and versions of files that no topic of a live object speaks for, and lengths that are dear to find out. */
import type { Stamp } from "../session/live.ts";

/** Oldest entries go first; losing one only makes an mtime newer than it need be or a length be counted again. */
const kept = 4096;

class Recent<V> {
  readonly #entries = new Map<number, V>();

  get(path: number): V | undefined {
    return this.#entries.get(path);
  }

  set(path: number, value: V): void {
    this.#entries.delete(path);
    this.#entries.set(path, value);
    if (this.#entries.size <= kept) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      break;
    }
  }
}

/** Notices by comparing that a content has changed: its fingerprint is the version, the time of noticing the mtime. */
export class Noticed {
  readonly #seen = new Recent<Stamp>();

  /** `print` is a number that differs when the content does. */
  see(path: number, print: number): Stamp {
    const known = this.#seen.get(path);
    if (known?.vers === print) return known;
    const stamp = { vers: print, mtime: Date.now() };
    this.#seen.set(path, stamp);
    return stamp;
  }

  /** What was seen last, without looking. */
  last(path: number): Stamp | undefined {
    return this.#seen.get(path);
  }
}

/** Lengths in bytes, each good for one version. */
export class Lengths {
  readonly #known = new Recent<{ vers: number; length: number }>();

  get(path: number, vers: number): number | undefined {
    const known = this.#known.get(path);
    return known?.vers === vers ? known.length : undefined;
  }

  set(path: number, vers: number, length: number): void {
    this.#known.set(path, { vers, length });
  }
}
