/**
 * Opens files below one folder, and nothing else, whatever is done to the tree meanwhile: by descriptors of folders and openat2(2), whose rules
 * the kernel applies to every step of the way. On a kernel without that call, and to learn why it failed, the way is gone name by name, each
 * opened without following a link in the folder that was opened before.
 *
 * A descriptor is also a path, `/proc/self/fd/N`, for the functions of node:fs: it leads to the very file or folder that was opened.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync } from "node:fs";
import { coded } from "../../protocol/errors.ts";
import { joined, type RelativePath, relative, shownPath, split } from "./names.ts";
import { O_PATH, openat2, RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS } from "./native.ts";
import { about } from "./problem.ts";

/** Links that a way may have, as the kernel counts them. */
const linkLimit = 40;

export class Beneath {
  readonly #root: number;

  /**
   * @param folder its links are followed, now and never again
   * @param kernel false: without openat2(2)
   * @throws Error of the system
   */
  constructor(
    folder: string,
    private readonly kernel = true,
  ) {
    this.#root = openSync(folder, O_PATH | constants.O_DIRECTORY);
  }

  close(): void {
    closeSync(this.#root);
  }

  /**
   * A descriptor, to be closed, that stands for what lies at a path without opening it (O_PATH): a link for itself.
   * @param follow links on the way and at its end, as long as they stay below the folder
   * @throws CodedFault `file.missing`, `file.symlink`, `file.escape`, `file.kind`, `file.denied`
   */
  open(path: RelativePath, follow = false): number {
    const rules = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const flags = follow ? O_PATH : O_PATH | constants.O_NOFOLLOW;
    const way = path.parts.length === 0 ? Buffer.from(".") : joined(path.parts);
    const fd = this.kernel
      ? openat2(this.#root, way, flags, follow ? rules : rules | RESOLVE_NO_SYMLINKS)
      : undefined;
    return fd ?? about(path, () => this.#walk(path, follow));
  }

  /** As `open`, of a folder. */
  openFolder(path: RelativePath, follow = false): number {
    return folderOnly(this.open(path, follow), path);
  }

  /** Where what was opened lies now: below the folder, its own links gone. @throws CodedFault `file.escape` where it lies elsewhere */
  whereIs(fd: number, path: RelativePath): RelativePath {
    const [root, found] = [this.#root, fd].map((one) => readlinkSync(selfPath(one), { encoding: "buffer" }));
    if (found!.equals(root!)) return relative([]);
    const top = root!.toString("latin1") === "/" ? root! : Buffer.concat([root!, Buffer.from("/")]);
    if (!found!.subarray(0, top.length).equals(top))
      throw coded("file.escape", `${shownPath(path)} leads out of the working folder`);
    return relative(split(found!.subarray(top.length)));
  }

  #walk(path: RelativePath, follow: boolean): number {
    const left = [...path.parts];
    const folders = [openSync(`${selfPath(this.#root)}/.`, O_PATH | constants.O_DIRECTORY)];
    let links = 0;
    try {
      for (;;) {
        const name = left.shift();
        const folder = folders.at(-1)!;
        if (name === undefined) return folders.pop()!;
        if (name.equals(up)) {
          if (folders.length === 1) throw escaped(path);
          closeSync(folders.pop()!);
          continue;
        }
        const last = left.length === 0;
        const fd = openSync(at(folder, name), O_PATH | constants.O_NOFOLLOW);
        const stat = fstatSync(fd);
        if (!stat.isSymbolicLink() || (last && !follow)) {
          if (last && !stat.isDirectory()) return fd;
          folders.push(fd);
          continue;
        }
        closeSync(fd);
        if (!follow || ++links > linkLimit) throw Object.assign(new Error("link"), { code: "ELOOP" });
        // Between the two looks it may have become another link, or none: the target is gone name by name in any case.
        const target = readlinkSync(at(folder, name), { encoding: "buffer" });
        if (target[0] === 0x2f) throw escaped(path);
        left.unshift(...split(target).filter((part) => part.length > 0 && part.toString("latin1") !== "."));
      }
    } finally {
      for (const fd of folders) closeSync(fd);
    }
  }
}

const up = Buffer.from("..");

function escaped(path: RelativePath): Error {
  return coded("file.escape", `${shownPath(path)} leads out of the working folder`);
}

/** The path that stands for an open descriptor. */
export function selfPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** A name in an open folder. The name must be one: no `/`, no `..`. */
export function at(folder: number, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${selfPath(folder)}/`), name]);
}

export function withFd<T>(fd: number, work: (fd: number) => T): T {
  let later = false;
  try {
    const result = work(fd);
    if (!(result instanceof Promise)) return result;
    later = true;
    return result.finally(() => closeSync(fd)) as T;
  } finally {
    if (!later) closeSync(fd);
  }
}

/** The descriptor, if it is one of a folder; else it is closed. @throws CodedFault `file.symlink`, `file.kind` */
export function folderOnly(fd: number, path: RelativePath): number {
  const stat = fstatSync(fd);
  if (stat.isDirectory()) return fd;
  closeSync(fd);
  if (stat.isSymbolicLink())
    throw coded("file.symlink", `${shownPath(path)} is a link, and links are not followed`);
  throw coded("file.kind", `${shownPath(path)} is no folder`);
}
