/** An append-only file with a known length: the journal and the chat of an agent. */
import { fdatasync, ftruncateSync, readSync, statSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { isErrno } from "./disk.ts";
import type { Cached, FdCache } from "./fd-cache.ts";
import { type LineVisitor, scanLines } from "./journal-lines.ts";

const nothing = new Uint8Array(0);

export class LogFile implements Cached {
  #length = 0;
  /** Written since the last fdatasync began. */
  #dirty = false;
  #syncing?: Promise<void>;
  #following?: Promise<void>;
  #removed = false;

  /** `path` is asked anew at every open, since folders are renamed. */
  constructor(
    readonly locate: () => string,
    readonly cache: FdCache,
  ) {
    this.measure();
  }

  get path(): string {
    return this.locate();
  }

  /** Bytes. */
  get length(): number {
    return this.#length;
  }

  /** Looks at the disk for the length: another file has been put in this one's place. */
  measure(): void {
    this.cache.drop(this);
    try {
      this.#length = statSync(this.path).size;
    } catch (error) {
      if (!isErrno(error, "ENOENT")) throw toFault(error, `${this.path} could not be read`);
      this.#length = 0;
    }
  }

  /**
   * Appends, in one write(2) unless the system takes only a part. Throws a Fault (kind "full" on a full disk); `length` has then
   * grown by what did arrive.
   */
  write(bytes: Uint8Array): void {
    const fd = this.#fd();
    let done = 0;
    try {
      while (done < bytes.length) {
        const took = writeSync(fd, bytes, done, bytes.length - done);
        if (took === 0) throw new Fault("io", "the system took no bytes");
        done += took;
      }
    } catch (error) {
      throw toFault(error, `${basename(this.path)} cannot grow`);
    } finally {
      this.#length += done;
      if (done > 0) this.#dirty = true;
    }
  }

  /** Cuts off what stands behind `length`. */
  truncate(length: number): void {
    ftruncateSync(this.#fd(), length);
    this.#length = length;
    this.#dirty = true;
  }

  /** At most `count` bytes from `offset`; empty at the end. */
  read(offset: number, count: number): Uint8Array {
    const size = Math.min(count, this.#length - offset);
    if (!(size > 0) || offset < 0) return nothing;
    const bytes = Buffer.allocUnsafe(size);
    const fd = this.#fd();
    let done = 0;
    while (done < size) {
      const got = readSync(fd, bytes, done, size - done, offset + done);
      if (got === 0) break;
      done += got;
    }
    return done === size ? bytes : bytes.subarray(0, done);
  }

  /** Calls back with the lines from byte `from` to byte `to`; see `scanLines`. What is appended meanwhile does not matter. */
  lines(from: number, to: number, visit: LineVisitor): Promise<void> {
    if (this.#removed) return Promise.reject(this.#gone());
    return this.cache.hold(this, (fd) => scanLines(fd, from, to, visit));
  }

  /**
   * Everything written before the call is on disk when this resolves (fdatasync(2)). Callers that come while one runs share the
   * next. A rejection means that nothing written since the last success is certain.
   */
  sync(): Promise<void> {
    if (this.#removed) return Promise.reject(this.#gone());
    if (this.#following) return this.#following;
    if (this.#syncing) {
      if (!this.#dirty) return this.#syncing;
      this.#following = this.#syncAfter(this.#syncing);
      return this.#following;
    }
    if (!this.#dirty) return Promise.resolve();
    this.#syncing = this.#syncNow();
    return this.#syncing;
  }

  /** The file is gone: whoever still writes or reads gets a Fault of kind "missing". */
  retire(): void {
    this.#removed = true;
    this.cache.drop(this);
  }

  async #syncAfter(running: Promise<void>): Promise<void> {
    await running.catch(() => {});
    this.#following = undefined;
    this.#syncing = this.#syncNow();
    await this.#syncing;
  }

  async #syncNow(): Promise<void> {
    this.#dirty = false;
    try {
      await this.cache.hold(this, dataSync);
    } catch (error) {
      this.#dirty = true;
      throw toFault(error, `${basename(this.path)} could not be brought to disk`);
    } finally {
      this.#syncing = undefined;
    }
  }

  #fd(): number {
    if (this.#removed) throw this.#gone();
    return this.cache.get(this);
  }

  #gone(): Fault {
    return new Fault("missing", `${basename(this.path)} has been removed`);
  }
}

function dataSync(fd: number): Promise<void> {
  return new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())));
}
