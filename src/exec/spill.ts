/** The whole of an output, on disk as far as it outgrows memory. */
import { type FileHandle, mkdir, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { toFault } from "../fault.ts";

/** Bytes that wait in memory before a file is made: nearly all outputs never need one. */
const memory = 64 * 1024;

/** Keeps the first `cap` bytes as they came. The file at `path` exists only once there is more than fits in memory, or after `keep`. */
export class Spill {
  /** Bytes written to it in all. */
  bytes = 0;
  /** Why the disk did not take it, if it did not. */
  problem: string | undefined;
  private waiting: Uint8Array[] | undefined = [];
  private file: FileHandle | undefined;
  private stored = 0;

  constructor(
    readonly path: string,
    readonly cap: number,
  ) {}

  /** Whoever feeds it awaits what comes back: a slow disk then slows the program instead of filling memory. */
  write(chunk: Uint8Array): Promise<void> | undefined {
    const room = this.cap - this.bytes;
    this.bytes += chunk.length;
    if (room <= 0 || this.problem) return undefined;
    const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
    if (this.waiting && this.bytes <= memory) {
      this.waiting.push(part);
      return undefined;
    }
    return this.store(part);
  }

  /** Puts everything on disk and closes the file; false if the disk took nothing. */
  async keep(): Promise<boolean> {
    await this.store(new Uint8Array());
    const kept = this.problem === undefined || this.stored > 0;
    await this.close();
    return kept;
  }

  /** Nobody needs it: no file stays. */
  async discard(): Promise<void> {
    const made = this.file !== undefined;
    await this.close();
    if (made) await unlink(this.path).catch(() => {});
  }

  /** What the file does not hold, in words; empty if it holds all. */
  shortfall(): string {
    if (this.problem)
      return `only the first ${this.stored.toLocaleString("en")} bytes of it: ${this.problem}`;
    return this.bytes > this.cap ? `the first ${this.cap / 1024 / 1024} MiB of it` : "";
  }

  private async close(): Promise<void> {
    const file = this.file;
    this.waiting = undefined;
    this.file = undefined;
    await file?.close().catch(() => {});
  }

  private async store(part: Uint8Array): Promise<void> {
    if (this.problem) return;
    try {
      if (!this.file) {
        await ensureFolder(dirname(this.path));
        this.file = await open(this.path, "w", 0o600);
      }
      const parts = [...(this.waiting ?? []), part];
      this.waiting = undefined;
      for (const bytes of parts) {
        for (let done = 0; done < bytes.length; ) {
          const { bytesWritten } = await this.file.write(bytes, done);
          done += bytesWritten;
          this.stored += bytesWritten;
        }
      }
    } catch (error) {
      this.problem = toFault(error).message;
    }
  }
}

/** Not what it lies in: that may have been removed meanwhile, with all that was kept there. */
async function ensureFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
