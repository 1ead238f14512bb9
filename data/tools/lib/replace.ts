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
  type Stats,
  statSync,
  writeFileSync,
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
  await replaceFiles([path], ([current]) => [change(current)]);
}

/** The same for several files: all of them or none. `change` gets their contents, and returns the new ones, in the order of `paths`. */
export async function replaceFiles(
  paths: readonly string[],
  change: (current: (Buffer | undefined)[]) => Uint8Array[],
): Promise<void> {
  const files: Replacement[] = [];
  try {
    // Always in the same order: two who want the same files then wait for each other only once.
    for (const path of paths.toSorted()) files.push(await Replacement.begin(path));
    const inOrder = paths.map((path) => files.find((file) => file.path === path)!);
    const contents = change(inOrder.map((file) => file.before));
    for (const [i, file] of inOrder.entries()) file.write(contents[i]!);
    commit(inOrder);
  } finally {
    for (const file of files) file.end();
  }
}

/** What fails in the middle, such as a rename on a failing disk, puts back those that were replaced already. */
function commit(files: Replacement[]): void {
  const done: Replacement[] = [];
  try {
    for (const file of files) {
      file.commit();
      done.push(file);
    }
  } catch (error) {
    for (const file of done) file.undo();
    throw error;
  }
}

/** One file that is being replaced. */
class Replacement {
  readonly before: Buffer | undefined;
  private readonly stat: Stats | undefined;
  private committed = false;

  private constructor(
    readonly path: string,
    private readonly lock: string,
    private readonly fd: number,
  ) {
    this.stat = statFile(path);
    if (this.stat && (this.stat.mode & 0o222) === 0) throw new Error(`${show(path)} is read-only`);
    // As in `readPage`: the path has been resolved.
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    this.before = this.stat && readFileSync(path, { flag });
  }

  /** Takes the lock. */
  static async begin(path: string): Promise<Replacement> {
    mkdirSync(dirname(path), { recursive: true });
    const lock = join(dirname(path), `.${basename(path).slice(0, 200)}.ollie-new`);
    const fd = await withPatience(path, lock);
    try {
      return new Replacement(path, lock, fd);
    } catch (error) {
      rmSync(lock, { force: true });
      closeSync(fd);
      throw error;
    }
  }

  write(content: Uint8Array): void {
    for (let done = 0; done < content.length; )
      done += writeSync(this.fd, content, done, content.length - done, done);
    if (this.stat) {
      giveTo(this.fd, this.stat.uid, this.stat.gid);
      fchmodSync(this.fd, this.stat.mode & 0o7777);
    }
    fsyncSync(this.fd);
  }

  commit(): void {
    renameSync(this.lock, this.path);
    this.committed = true;
  }

  /** The file as it was. Who has opened it meanwhile has the new one. */
  undo(): void {
    if (this.before) writeFileSync(this.path, this.before);
    else rmSync(this.path, { force: true });
  }

  /** Gives the lock back. */
  end(): void {
    if (!this.committed) rmSync(this.lock, { force: true });
    closeSync(this.fd);
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
      const { code, message } = error as NodeJS.ErrnoException;
      // It is the file that cannot be written; nobody has asked for the lock.
      if (code !== "EEXIST") throw new Error(message.replace(lock, path));
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > stale) rmSync(lock, { force: true });
      else if (Date.now() > end)
        throw new Error(`${show(path)} is being written by somebody else: ${show(lock)} exists`);
    }
  }
}
