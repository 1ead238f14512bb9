/**
 * What lay at a path, whole, so that it can be put back. Programs that could swap any part of the path may still run: everything goes
 * through a descriptor of the folder (`/proc/self/fd/N`) that was checked to be the folder meant, and no link is ever followed.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";

export type Entry =
  | { kind: "absent" }
  | { kind: "file"; mode: number; content: Buffer }
  | { kind: "link"; target: string }
  | { kind: "folder"; mode: number; entries: Record<string, Entry> }
  /** Too large to be kept, unreadable, or neither file nor folder: known again by inodes and the times of their last changes. */
  | { kind: "other"; stamp: string };

/** Bytes and entries that are kept of one path, and how deep folders are. Hooks and configs are far below that. */
const sizeLimit = 4 * 1024 * 1024;
const entryLimit = 1000;
const depthLimit = 6;
/** Entries of what is not kept by which it is known again. */
const stampLimit = 20_000;

/** Never throws for what a path may hold; a part of it that cannot be read counts as absent. */
export function take(path: string): Entry {
  try {
    return inFolder(dirname(path), (folder) => {
      const there = join(folder, basename(path));
      return read(there, depthLimit, { bytes: sizeLimit, entries: entryLimit }) ?? other(there);
    });
  } catch {
    return { kind: "absent" };
  }
}

export function same(a: Entry, b: Entry): boolean {
  return isDeepStrictEqual(a, b);
}

/**
 * Puts an entry in the place of what is there.
 * @throws the system's error, or that the folder is no longer what it was
 */
export function replace(path: string, entry: Entry): void {
  inFolder(dirname(path), (folder) => {
    const there = join(folder, basename(path));
    rmSync(there, { recursive: true, force: true });
    write(there, entry);
  });
}

/** Writes an entry where nothing is. */
export function write(path: string, entry: Entry): void {
  if (entry.kind === "link") symlinkSync(entry.target, path);
  if (entry.kind === "file") writeNew(path, entry.content, entry.mode);
  if (entry.kind !== "folder") return;
  mkdirSync(path, { mode: entry.mode });
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    for (const [name, child] of Object.entries(entry.entries))
      write(join(`/proc/self/fd/${fd}`, name), child);
  } finally {
    closeSync(fd);
  }
}

function writeNew(path: string, content: Buffer, mode: number): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    writeFileSync(fd, content);
  } finally {
    closeSync(fd);
  }
}

/** What is left of what may be kept. */
interface Room {
  bytes: number;
  entries: number;
}

/** Undefined where there is no room for it. */
function read(path: string, depth: number, room: Room): Entry | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return { kind: "absent" };
  room.entries--;
  if (room.entries < 0) return undefined;
  const mode = stat.mode & 0o777;
  if (stat.isSymbolicLink()) return { kind: "link", target: readlinkSync(path) };
  if (stat.isFile()) {
    room.bytes -= stat.size;
    if (room.bytes < 0) return undefined;
    const content = contentOf(path, stat.size);
    if (content) return { kind: "file", mode, content };
  }
  if (!stat.isDirectory()) return { kind: "other", stamp: stampOf(stat) };
  if (depth === 0) return undefined;
  const entries: Record<string, Entry> = {};
  for (const name of readdirSync(path).sort()) {
    const entry = read(join(path, name), depth - 1, room);
    if (!entry) return undefined;
    entries[name] = entry;
  }
  return { kind: "folder", mode, entries };
}

/** What is as large as that is no hooks folder that anybody works with: it is enough to notice that it changes. */
function other(path: string): Entry {
  const hash = createHash("sha256");
  let left = stampLimit;
  const add = (at: string) => {
    const stat = lstatSync(at, { throwIfNoEntry: false });
    if (!stat || left-- <= 0) return;
    hash.update(`${stampOf(stat)}\0`);
    if (stat.isDirectory()) for (const name of readdirSync(at)) add(join(at, name));
  };
  add(path);
  return { kind: "other", stamp: hash.digest("hex") };
}

function stampOf({ dev, ino, size, ctimeMs }: Stats): string {
  return `${dev}:${ino}:${size}:${ctimeMs}`;
}

/** Undefined where it cannot be read, or has become something else meanwhile. */
function contentOf(path: string, size: number): Buffer | undefined {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(fd);
      if (!stat.isFile() || stat.size !== size) return undefined;
      const bytes = Buffer.alloc(size);
      return bytes.subarray(0, readSync(fd, bytes));
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** @throws where no folder lies at just this path, without links */
function inFolder<T>(path: string, work: (folder: string) => T): T {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const folder = `/proc/self/fd/${fd}`;
    if (readlinkSync(folder) !== path) throw new Error(`${path} is not the folder it was`);
    return work(folder);
  } finally {
    closeSync(fd);
  }
}
