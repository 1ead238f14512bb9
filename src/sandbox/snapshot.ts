/**
 * What lay at a path, whole, so that it can be put back. Programs that could swap any part of the path may still run: everything goes
 * through a descriptor of the folder (`/proc/self/fd/N`) that was checked to be the folder meant, and no link is ever followed.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
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
  /** Too large to be kept, unreadable, or neither file nor folder: known again by its inode and the time of its last change. */
  | { kind: "other"; stamp: string };

/** Bytes of a file that is kept, and how deep folders are. Hooks and configs are far below that. */
const sizeLimit = 4 * 1024 * 1024;
const depthLimit = 6;

/** Never throws for what a path may hold; a part of it that cannot be read counts as absent. */
export function take(path: string): Entry {
  try {
    return inFolder(dirname(path), (folder) => read(join(folder, basename(path)), depthLimit));
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

function read(path: string, depth: number): Entry {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return { kind: "absent" };
  const mode = stat.mode & 0o777;
  if (stat.isSymbolicLink()) return { kind: "link", target: readlinkSync(path) };
  if (stat.isFile() && stat.size <= sizeLimit) {
    const content = contentOf(path);
    if (content) return { kind: "file", mode, content };
  }
  if (stat.isDirectory() && depth > 0) {
    const entries = readdirSync(path).sort();
    return {
      kind: "folder",
      mode,
      entries: Object.fromEntries(entries.map((name) => [name, read(join(path, name), depth - 1)])),
    };
  }
  return { kind: "other", stamp: `${stat.dev}:${stat.ino}:${stat.size}:${stat.ctimeMs}` };
}

/** Undefined where it cannot be read, or has become something else meanwhile. */
function contentOf(path: string): Buffer | undefined {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return fstatSync(fd).isFile() ? readFileSync(fd) : undefined;
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
