/**
 * File descriptors of append-only files, opened when needed and closed again when others need them more: thousands of idle agents
 * hold none.
 */
import { closeSync, constants, openSync } from "node:fs";
import { Fault, toFault } from "../fault.ts";

/** Something with a path that may change while it is open (its folder is renamed). */
export interface Cached {
  readonly path: string;
}

interface Entry {
  fd: number;
  /** Jobs under way on another thread: closing the number now could hand it to another file. */
  holds: number;
  dropped: boolean;
}

export class FdCache {
  /** In order of use, the longest unused first. */
  readonly #open = new Map<Cached, Entry>();
  /** Jobs under way, and those that wait for one of them to end: thousands of agents may want their files brought to disk at once. */
  #jobs = 0;
  readonly #queue: (() => void)[] = [];
  #closed = false;

  constructor(readonly limit = 128) {}

  /** A descriptor for reading and appending; valid until the caller gives up control. */
  get(file: Cached): number {
    return this.#entry(file).fd;
  }

  /** Runs a job with a descriptor that stays open until it is over. At most half of the descriptors are held at a time. */
  async hold<T>(file: Cached, job: (fd: number) => Promise<T>): Promise<T> {
    if (this.#jobs >= this.limit / 2) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#jobs++;
    try {
      return await this.#held(file, job);
    } finally {
      // Whoever waits longest takes over this job's place.
      const next = this.#queue.shift();
      if (next) next();
      else this.#jobs--;
    }
  }

  async #held<T>(file: Cached, job: (fd: number) => Promise<T>): Promise<T> {
    const entry = this.#entry(file);
    entry.holds++;
    try {
      return await job(entry.fd);
    } finally {
      entry.holds--;
      if (entry.dropped && entry.holds === 0) closeSync(entry.fd);
    }
  }

  drop(file: Cached): void {
    const entry = this.#open.get(file);
    if (!entry) return;
    this.#open.delete(file);
    entry.dropped = true;
    if (entry.holds === 0) closeSync(entry.fd);
  }

  /** Closes everything, for good. */
  close(): void {
    this.#closed = true;
    for (const file of [...this.#open.keys()]) this.drop(file);
  }

  #entry(file: Cached): Entry {
    const known = this.#open.get(file);
    if (known) {
      this.#open.delete(file);
      this.#open.set(file, known);
      return known;
    }
    if (this.#closed) throw new Fault("io", "the store has been closed");
    let fd: number;
    try {
      fd = openSync(file.path, constants.O_RDWR | constants.O_APPEND | constants.O_NOFOLLOW);
    } catch (error) {
      throw toFault(error, `${file.path} could not be opened`);
    }
    const entry = { fd, holds: 0, dropped: false };
    this.#open.set(file, entry);
    this.#evict(file);
    return entry;
  }

  #evict(keep: Cached): void {
    for (const [file, entry] of this.#open) {
      if (this.#open.size <= this.limit) return;
      if (file !== keep && entry.holds === 0) this.drop(file);
    }
  }
}
