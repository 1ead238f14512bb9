/**
 * One server for one state folder: it holds a record lock (fcntl(2)) on the file `lock` in it. The kernel knows who holds it and lets
 * go of it however that process ends, so nothing has to be written: a server starts on a full disk, too, and no lock is ever stale.
 */
import { closeSync, constants, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { lockOwner, tryLock } from "../exec/libc.ts";
import { Fault, toFault } from "../fault.ts";
import { fileMode, isErrno } from "./disk.ts";

const lockFile = "lock";
/** How often the lock may be neither free nor anybody's before that counts as a file system that has none. */
const tries = 100;

/**
 * Lock files of this process. The kernel would give it the same lock twice, and take the lock back as soon as any descriptor of the
 * file is closed; so a file in here is not opened again.
 */
const mine = new Set<string>();

export class StateLock {
  #fd?: number;

  private constructor(
    fd: number,
    readonly file: string,
  ) {
    this.#fd = fd;
    mine.add(file);
  }

  /** Throws a Fault of kind "busy" that names the owner's pid while another process holds the lock. */
  static acquire(folder: string): StateLock {
    const path = join(folder, lockFile);
    if (mine.has(identity(path) ?? "")) throw held(folder, process.pid);
    let fd: number | undefined;
    try {
      fd = openSync(path, constants.O_RDWR | constants.O_CREAT, fileMode);
      lock(fd, folder);
      return new StateLock(fd, identity(path)!);
    } catch (error) {
      if (fd !== undefined) closeSync(fd);
      throw toFault(error, `${folder} could not be locked`);
    }
  }

  release(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    mine.delete(this.file);
  }
}

/**
 * The process that holds the lock of a state folder; undefined where there is none, or none that has a pid here (it may run on
 * another machine or in a container). Takes no lock, and `folder` need not exist.
 */
export function lockHolder(folder: string): number | undefined {
  const path = join(folder, lockFile);
  if (mine.has(identity(path) ?? "")) return process.pid;
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw toFault(error, `cannot read ${path}`);
  }
  try {
    return lockOwner(fd) || undefined;
  } finally {
    closeSync(fd);
  }
}

function lock(fd: number, folder: string): void {
  for (let i = 0; i < tries; i++) {
    if (tryLock(fd)) return;
    const owner = lockOwner(fd);
    // Undefined where it was let go of meanwhile.
    if (owner !== undefined) throw held(folder, owner);
  }
  throw new Fault("io", "its file system has no locks");
}

function held(folder: string, pid: number): Fault {
  const who = pid > 0 ? `pid ${pid}` : "on another machine or in a container";
  return new Fault(
    "busy",
    `another server (${who}) uses ${folder}; stop it first, or use another state folder`,
  );
}

/** What tells a file from all others, whatever its folder is called. */
function identity(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}
