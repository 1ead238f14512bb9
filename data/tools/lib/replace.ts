/** Replacing a file's content: one writer at a time, all or nothing. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { show, statFile } from "./paths.ts";

/** Milliseconds to wait for another writer. */
const patience = 10_000;
/** Milliseconds after which a lock has been left behind by a writer that was killed: what it guards takes a few. */
const stale = 30_000;

/**
 * Takes the file's lock, gives the current content (undefined: there is no file) to `change`, and puts what that returns in its place
 * with the same mode and owner. If `change` throws, nothing has happened.
 *
 * The lock is the new file itself, made beside the old one with O_EXCL and renamed over it at the end, as git does with its index: so it
 * also holds between sessions and hosts, and a reader sees the old content or the new.
 */
export async function replaceFile(
  path: string,
  change: (current: Buffer | undefined) => Uint8Array,
): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const lock = join(dirname(path), `.${basename(path).slice(0, 200)}.ollie-new`);
  const fd = await withPatience(path, lock);
  try {
    const stat = statFile(path);
    if (stat && (stat.mode & 0o222) === 0) throw new Error(`${show(path)} is read-only`);
    const content = change(stat && readFileSync(path));
    for (let done = 0; done < content.length; )
      done += writeSync(fd, content, done, content.length - done, done);
    if (stat) {
      giveTo(fd, stat.uid, stat.gid);
      fchmodSync(fd, stat.mode & 0o7777);
    }
    fsyncSync(fd);
    renameSync(lock, path);
  } catch (error) {
    rmSync(lock, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
}

function giveTo(fd: number, uid: number, gid: number): void {
  try {
    fchownSync(fd, uid, gid);
  } catch {
    // Only root may give files away; whoever could write the old file may still replace it.
  }
}

async function withPatience(path: string, lock: string): Promise<number> {
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
  for (const end = Date.now() + patience; ; await Bun.sleep(20)) {
    try {
      return openSync(lock, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o666);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > stale) rmSync(lock, { force: true });
      else if (Date.now() > end)
        throw new Error(`${show(path)} is being written by somebody else: ${show(lock)} exists`);
    }
  }
}
