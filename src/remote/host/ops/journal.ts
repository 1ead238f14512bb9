/**
 * Records that outlive this process: one a line, `BYTES JSON`, so that a line that was cut off by a crash is known as such. What is torn at the end
 * is cut away; a line that is damaged further up is passed over, because those after it still say what has been run.
 */
import {
  closeSync,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

const sync = promisify(fdatasync);

export class Journal<T> {
  #fd: number;
  #size: number;
  /** One that runs may have begun before the last record was written; who comes now waits for the next one. */
  #running?: Promise<void>;
  #next?: Promise<void>;

  private constructor(
    private readonly file: string,
    fd: number,
    size: number,
  ) {
    this.#fd = fd;
    this.#size = size;
  }

  /** @throws the system's error where the file cannot be read or made */
  static open<T>(file: string): { journal: Journal<T>; records: T[]; damaged: number } {
    const fd = openSync(file, "a+", 0o600);
    try {
      const { records, size, damaged } = parse<T>(readFileSync(file));
      ftruncateSync(fd, size);
      return { journal: new Journal<T>(file, fd, size), records, damaged };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  get size(): number {
    return this.#size;
  }

  /** Survives the end of this process. @throws the system's error; then nothing of the record stays */
  append(record: T): void {
    const line = lineOf(record);
    try {
      writeAll(this.#fd, line);
      this.#size += line.length;
    } catch (error) {
      ftruncateSync(this.#fd, this.#size);
      throw error;
    }
  }

  /** Survives the end of the host, when it resolves. Records that come together wait for the disk once. */
  async commit(record: T): Promise<void> {
    this.append(record);
    await this.sync();
  }

  /** Resolves when all that has been appended survives the end of the host. */
  sync(): Promise<void> {
    this.#next ??= (this.#running ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        const running = sync(this.#fd).finally(() => {
          if (this.#running === running) this.#running = undefined;
        });
        this.#running = running;
        return running;
      });
    return this.#next;
  }

  /** Puts these in the place of all records, at once or not at all. */
  rewrite(records: readonly T[]): void {
    const fresh = `${this.file}.new`;
    const fd = openSync(fresh, "w", 0o600);
    let size = 0;
    try {
      for (const record of records) {
        const line = lineOf(record);
        writeAll(fd, line);
        size += line.length;
      }
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(fresh, this.file);
    syncFolder(dirname(this.file));
    const old = this.#fd;
    this.#fd = openSync(this.file, "a", 0o600);
    this.#size = size;
    // A sync of the old file may still run on its descriptor.
    void (this.#running ?? Promise.resolve()).catch(() => {}).finally(() => closeSync(old));
  }

  async close(): Promise<void> {
    while (this.#next ?? this.#running) await (this.#next ?? this.#running)?.catch(() => {});
    closeSync(this.#fd);
  }
}

function lineOf(record: unknown): Buffer {
  const json = JSON.stringify(record);
  return Buffer.from(`${Buffer.byteLength(json)} ${json}\n`);
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** `size`: bytes up to the end of the last whole line. */
function parse<T>(bytes: Buffer): { records: T[]; size: number; damaged: number } {
  const records: T[] = [];
  let size = 0;
  let damaged = 0;
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(10, from);
    if (end < 0) break;
    const record = recordIn<T>(bytes.subarray(from, end));
    if (record === undefined) damaged++;
    else records.push(record);
    from = end + 1;
    size = from;
  }
  return { records, size, damaged };
}

function recordIn<T>(line: Buffer): T | undefined {
  const space = line.indexOf(32);
  if (space <= 0 || Number(line.toString("latin1", 0, space)) !== line.length - space - 1) return undefined;
  try {
    return JSON.parse(line.toString("utf8", space + 1)) as T;
  } catch {
    return undefined;
  }
}
