/** A text that is still being written: on disk, so that a full disk shows at the write and a large one costs no memory. */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

let count = 0;

export class Spool {
  readonly #fd: number;

  /** A file in `dir` without a name: nothing of it stays behind, however the process ends. */
  constructor(dir: string) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const path = join(dir, `spool-${process.pid}-${++count}`);
    this.#fd = openSync(path, "wx+", 0o600);
    unlinkSync(path);
  }

  /** Bytes. */
  get length(): number {
    return fstatSync(this.#fd).size;
  }

  write(offset: number, data: Uint8Array): void {
    for (let done = 0; done < data.length; )
      done += writeSync(this.#fd, data, done, data.length - done, offset + done);
  }

  truncate(length: number): void {
    ftruncateSync(this.#fd, length);
  }

  read(): Uint8Array {
    const text = new Uint8Array(this.length);
    for (let done = 0; done < text.length; ) {
      const n = readSync(this.#fd, text, done, text.length - done, done);
      if (n === 0) return text.subarray(0, done);
      done += n;
    }
    return text;
  }

  close(): void {
    closeSync(this.#fd);
  }
}
