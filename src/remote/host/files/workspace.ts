/** The working folder of a session, as its file methods see it. */
import { closeSync, constants, fstatSync, openSync, type Stats } from "node:fs";
import type { HostPolicy } from "../../policy/host-policy.ts";
import { coded } from "../../protocol/errors.ts";
import { Beneath, folderOnly, selfPath } from "./beneath.ts";
import { type RelativePath, relative, shownPath } from "./names.ts";
import { openQuietly } from "./native.ts";
import { about } from "./problem.ts";

export class Workspace {
  readonly tree: Beneath;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * @param folder an absolute path
   * @param kernel false: as on a kernel without openat2(2)
   */
  constructor(
    folder: string,
    readonly policy: HostPolicy,
    kernel = true,
  ) {
    this.tree = new Beneath(folder, kernel);
  }

  close(): void {
    this.tree.close();
  }

  /** One change after the other, so that nothing of ours lies between what a change expects and what it does. */
  change<T>(work: () => Promise<T> | T): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  /** A descriptor, to be closed, of what may be looked at there; links are followed if the policy says so. */
  open(path: RelativePath, follow = this.policy.policy.follow_inside): number {
    this.policy.checkPath(path.text, "read");
    const fd = this.tree.open(path, follow);
    if (!follow) return fd;
    try {
      // A link may lead to what has another name, and is denied under that.
      this.policy.checkPath(this.tree.whereIs(fd, path).text, "read");
      return fd;
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Opens a regular file for reading; both belong together, whatever becomes of the path. */
  openFile(path: RelativePath): { fd: number; stat: Stats } {
    const found = this.open(path);
    try {
      const stat = fstatSync(found);
      if (stat.isSymbolicLink())
        throw coded("file.symlink", `${shownPath(path)} is a link, and links are not followed`);
      if (!stat.isFile())
        throw coded(
          "file.kind",
          `${shownPath(path)} is ${stat.isDirectory() ? "a folder" : "no regular file"}`,
        );
      return { fd: about(path, () => openSync(selfPath(found), openQuietly)), stat };
    } finally {
      closeSync(found);
    }
  }

  openFolder(path: RelativePath): number {
    return folderOnly(this.open(path), path);
  }

  /** The folder in which a change takes place: links are never followed to it. */
  openParent(path: RelativePath): { folder: number; name: Buffer } {
    const name = path.parts.at(-1);
    if (name === undefined) throw coded("file.denied", "the working folder itself is not changed");
    this.policy.checkPath(path.text, "write");
    return { folder: this.tree.openFolder(relative(path.parts.slice(0, -1))), name };
  }
}

/** For long work on the thread that also carries the protocol: others get their turn. */
export class Pauses {
  #since = performance.now();

  async take(): Promise<void> {
    if (performance.now() - this.#since < 8) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}

export const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY;
