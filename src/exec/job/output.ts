/**
 * A job's output on disk: its beginning and its newest part, at most 10 MiB, for as long as the job may run.
 *
 * It lies in segments that are called after the offset at which they begin, `out.0`, `out.2097152` and so on, so that there is no index
 * which could be wrong after a crash. The first one stays; of the others the newest two do. A hole, be it of dropped segments or of what
 * the disk did not take, is where the next segment begins later than the one before it ends. Lines in the output itself say so.
 */
import { closeSync, openSync, readdirSync, readSync, statSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { toFault } from "../../fault.ts";

/** Bytes of the first segment and of all others. */
const headLimit = 2 * 1024 * 1024;
const segmentLimit = 4 * 1024 * 1024;
/** Milliseconds until a disk that has refused something is tried again. */
const patience = 1000;

const gapNotice = Buffer.from(
  "\n[… the beginning of the output ends here; after it only the newest 4 to 8 MiB are kept]\n",
);

interface Refusal {
  /** When it was last tried. */
  tried: number;
  reason: string;
  /** Bytes refused since the disk last took something. */
  bytes: number;
}

/** Takes all that comes, whatever the disk says to it: a program must neither wait nor break for its output. */
export class JobOutputWriter {
  /** Bytes given to it. */
  bytes = 0;
  /** Bytes of these that the disk did not take. */
  lost = 0;
  /** Where the next byte stands, the notices counted. */
  #position = 0;
  #fd?: number;
  #room = headLimit - gapNotice.length;
  #inHead = true;
  /** Offsets of the other segments. */
  readonly #tail: number[] = [];
  #refusal?: Refusal;

  /** @throws the system's error if the folder cannot be written */
  constructor(private readonly folder: () => string) {
    this.#open();
  }

  add(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    let rest = chunk;
    try {
      if (this.#refusal && !this.#resume(this.#refusal)) {
        this.#lose(this.#refusal, rest.length);
        return;
      }
      while (rest.length > 0) {
        if (this.#room <= 0) this.#next();
        rest = rest.subarray(this.#write(rest.subarray(0, this.#room)));
      }
    } catch (error) {
      this.#refusal = { tried: performance.now(), reason: toFault(error).message, bytes: 0 };
      this.#lose(this.#refusal, rest.length);
    }
  }

  /** The output is complete. What it lacks at its end is told there if the disk now takes that, and by `lost`. */
  close(): void {
    if (this.#refusal) this.#resume({ ...this.#refusal, tried: -patience });
    this.#shut();
  }

  #write(bytes: Uint8Array): number {
    const written = writeSync(this.#fd!, bytes);
    this.#position += written;
    this.#room -= written;
    return written;
  }

  #next(): void {
    if (this.#inHead) this.#write(gapNotice);
    this.#open();
    this.#keep(this.#position);
  }

  #open(): void {
    this.#shut();
    this.#fd = openSync(this.#path(this.#position), "w", 0o600);
  }

  /** The segment that has been opened at `offset` is part of the output. */
  #keep(offset: number): void {
    this.#inHead = false;
    this.#room = offset + segmentLimit - this.#position;
    this.#tail.push(offset);
    while (this.#tail.length > 2) this.#drop(this.#tail.shift()!);
  }

  #drop(offset: number): void {
    try {
      unlinkSync(this.#path(offset));
    } catch {
      // Somebody else has removed it.
    }
  }

  /** Goes on behind what was lost; false while the disk still refuses, or it is too early to try. */
  #resume(refusal: Refusal): boolean {
    if (performance.now() - refusal.tried < patience) return false;
    refusal.tried = performance.now();
    const offset = this.#position;
    const { bytes, reason } = refusal;
    const notice = Buffer.from(`\n[… ${bytes.toLocaleString("en")} bytes were lost here: ${reason}]\n`);
    try {
      this.#open();
      if (this.#write(notice) < notice.length) throw new Error("no room for the notice");
    } catch {
      this.#position = offset;
      this.#drop(offset);
      return false;
    }
    this.#keep(offset);
    this.#refusal = undefined;
    return true;
  }

  #lose(refusal: Refusal, bytes: number): void {
    this.lost += bytes;
    this.#position += bytes;
    refusal.bytes += bytes;
  }

  #shut(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #path(offset: number): string {
    return join(this.folder(), `out.${offset}`);
  }
}

interface Segment {
  at: number;
  size: number;
  path: string;
}

/** What is kept of an output, also while it grows; offsets count from its first byte. */
export class JobOutput {
  constructor(private readonly folder: () => string) {}

  get length(): number {
    const last = this.#segments().at(-1);
    return last ? last.at + last.size : 0;
  }

  /** The first byte from `offset` on that is kept. */
  kept(offset: number): number {
    const holding = this.#segments().find(({ at, size }) => offset < at + size);
    return holding ? Math.max(offset, holding.at) : offset;
  }

  /** At most `count` bytes from `offset`; empty at the end, and where nothing is kept. */
  read(offset: number, count: number): Uint8Array {
    const holding = this.#segments().find(({ at, size }) => offset >= at && offset < at + size);
    if (!holding) return new Uint8Array();
    const bytes = Buffer.allocUnsafe(Math.min(count, holding.at + holding.size - offset));
    try {
      const fd = openSync(holding.path, "r");
      try {
        return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, offset - holding.at));
      } finally {
        closeSync(fd);
      }
    } catch (error) {
      // Dropped since it was listed: the next look finds where it goes on.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return this.read(this.kept(offset), count);
      throw toFault(error, "the output cannot be read");
    }
  }

  /** Without the segments that hold nothing. */
  #segments(): Segment[] {
    const folder = this.folder();
    const found: Segment[] = [];
    for (const name of readNames(folder)) {
      const at = /^out\.(\d+)$/.exec(name)?.[1];
      if (at === undefined) continue;
      const path = join(folder, name);
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (size > 0) found.push({ at: Number(at), size, path });
    }
    return found.sort((a, b) => a.at - b.at);
  }
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
