/**
 * One output stream of an operation on disk, readable by range while it grows and after this process has ended. It lies in segments that are called
 * after the offset at which they begin, `out.0`, `out.33554432` and so on, so that there is no index which could be wrong after a crash. Beyond
 * the limit the first half stays and of the rest the newest: a hole is where one segment begins later than the one before it ends.
 */
import { closeSync, openSync, readdirSync, readSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Segments of a full spool; the first half of them stays. */
const segments = 8;
/** Milliseconds until a disk that has refused something is tried again. */
const patience = 1000;

export interface Piece {
  /** Where `bytes` begins: later than asked for where the spool has a hole, or its end. */
  off: number;
  bytes: Buffer;
}

/** What reads a stream. */
export interface Source {
  /** Bytes that have been printed. */
  readonly size: number;
  /** @param into where the bytes may be put; they are valid for as long as nobody uses that again */
  read(offset: number, count: number, into?: Buffer): Piece;
}

export class Spool implements Source {
  /** Bytes that the disk did not take. */
  lost = 0;
  #size: number;
  #kept: { at: number; size: number }[];
  #fd?: number;
  #refused = Number.NEGATIVE_INFINITY;
  readonly #segment: number;

  /** @param cap bytes; what lies there from before is taken up */
  constructor(
    private readonly folder: string,
    private readonly name: string,
    cap: number,
  ) {
    this.#segment = Math.max(1, Math.ceil(cap / segments));
    this.#kept = segmentsIn(folder, name);
    const last = this.#kept.at(-1);
    this.#size = last ? last.at + last.size : 0;
  }

  get size(): number {
    return this.#size;
  }

  /** Bytes on disk. */
  get stored(): number {
    return this.#kept.reduce((sum, { size }) => sum + size, 0);
  }

  /** Never fails, and never makes its caller wait for anything but the disk: what cannot be kept is counted as lost. */
  add(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      const taken = this.#write(bytes.subarray(done));
      if (taken === 0) {
        this.lost += bytes.length - done;
        this.#size += bytes.length - done;
        return;
      }
      done += taken;
    }
  }

  read(offset: number, count: number, into?: Buffer): Piece {
    const holding = this.#kept.find(({ at, size }) => offset < at + size);
    if (!holding) return { off: Math.max(offset, this.#size), bytes: Buffer.alloc(0) };
    const from = Math.max(offset, holding.at);
    const length = Math.min(count, holding.at + holding.size - from);
    const bytes = into ? into.subarray(0, length) : Buffer.allocUnsafe(length);
    const fd = openSync(this.#path(holding.at), "r");
    try {
      return { off: from, bytes: bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from - holding.at)) };
    } finally {
      closeSync(fd);
    }
  }

  /** Nothing more comes. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #write(bytes: Uint8Array): number {
    if (performance.now() - this.#refused < patience) return 0;
    try {
      const current = this.#current();
      const written = writeSync(this.#fd!, bytes, 0, Math.min(bytes.length, this.#segment - current.size));
      current.size += written;
      this.#size += written;
      return written;
    } catch {
      this.#refused = performance.now();
      this.close();
      return 0;
    }
  }

  /** The segment that takes the next byte, open. */
  #current(): { at: number; size: number } {
    const last = this.#kept.at(-1);
    const goesOn = last && last.at + last.size === this.#size && last.size < this.#segment;
    if (goesOn) {
      this.#fd ??= openSync(this.#path(last.at), "a", 0o600);
      return last;
    }
    this.close();
    const fresh = { at: this.#size, size: 0 };
    this.#fd = openSync(this.#path(fresh.at), "a", 0o600);
    this.#kept.push(fresh);
    while (this.#kept.length > segments) {
      const [dropped] = this.#kept.splice(segments / 2, 1);
      rmSync(this.#path(dropped!.at), { force: true });
    }
    return fresh;
  }

  #path(at: number): string {
    return join(this.folder, `${this.name}.${at}`);
  }
}

function segmentsIn(folder: string, name: string): { at: number; size: number }[] {
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // nothing has been printed yet
  }
  return names
    .filter((each) => each.startsWith(`${name}.`) && /^\d+$/.test(each.slice(name.length + 1)))
    .map((each) => ({ at: Number(each.slice(name.length + 1)), size: statSync(join(folder, each)).size }))
    .filter(({ size }) => size > 0)
    .sort((a, b) => a.at - b.at);
}

/** The beginning and the end of a stream, within `limit` bytes, as text. */
export function headAndTail(source: Source, limit: number): string {
  const head = Math.floor(limit / 4);
  const { size } = source;
  if (size <= limit) return textOf(source, 0, size);
  const begin = textOf(source, 0, head);
  const end = textOf(source, size - (limit - head), size);
  const left = (size - limit).toLocaleString("en");
  return `${begin}\n[… ${left} bytes left out here; op.output reads what the host has kept]\n${end}`;
}

function textOf(source: Source, from: number, to: number): string {
  const parts: Buffer[] = [];
  for (let at = from; at < to; ) {
    const { off, bytes } = source.read(at, to - at);
    if (bytes.length === 0) break;
    parts.push(bytes);
    at = off + bytes.length;
  }
  return Buffer.concat(parts).toString("utf8");
}
