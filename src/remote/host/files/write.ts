/**
 * `file.write`, `file.cas`: a whole file, at once or not at all. The new file is made beside the old one and takes its name when it is on the disk.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  linkSync,
  openSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";
import type { z } from "zod";
import { coded } from "../../protocol/errors.ts";
import type * as wire from "../../protocol/files.ts";
import { at, selfPath, withFd } from "./beneath.ts";
import { parsePath, type RelativePath, shownPath } from "./names.ts";
import { attributesOf, openQuietly, renameNew, setAttribute } from "./native.ts";
import { problem } from "./problem.ts";
import { hashOf, look } from "./read.ts";
import { folderFlags, type Workspace } from "./workspace.ts";

const synced = promisify(fsync);

export function write(
  workspace: Workspace,
  params: z.infer<typeof wire.fileWrite>,
): Promise<wire.FileWritten> {
  const path = parsePath(params.path);
  const bytes = params.text === undefined ? Buffer.from(params.data!, "base64") : Buffer.from(params.text);
  const most = workspace.policy.policy.max_write_bytes;
  if (bytes.length > most)
    throw coded(
      "file.too_large",
      `${bytes.length} bytes are more than the ${most} that may be written at once`,
    );
  return workspace.change(async () => {
    const { folder, name } = workspace.openParent(path);
    return withFd(folder, () =>
      replace({ folder, name, path, bytes, expect: params.expect, mode: params.mode }),
    );
  });
}

export function cas(workspace: Workspace, params: z.infer<typeof wire.fileCas>): Promise<wire.FileWritten> {
  const { sha256, ...rest } = params;
  return write(workspace, { ...rest, expect: { sha256 } });
}

interface Replacement {
  folder: number;
  name: Buffer;
  path: RelativePath;
  bytes: Buffer;
  expect: "any" | "absent" | { sha256: string };
  mode?: number;
}

async function replace({ folder, name, path, bytes, expect, mode }: Replacement): Promise<wire.FileWritten> {
  const old = openOld(folder, name, path);
  const temporary = Buffer.from(`.ollie-${randomBytes(8).toString("hex")}.tmp`);
  try {
    if (expect === "absent" && old) throw conflict(path, "exists already");
    if (typeof expect === "object") {
      if (!old) throw conflict(path, "does not exist");
      const found = await hashOf(old.fd);
      if (found !== expect.sha256) throw conflict(path, `has changed: its SHA-256 is ${found}`);
    }
    await make(folder, temporary, bytes, old, mode);
    if (old && !same(old.stat, look(folder, name)))
      throw conflict(path, "was changed by somebody else just now");
    if (expect === "any" || old) renameSync(at(folder, temporary), at(folder, name));
    else renameOnto(folder, temporary, name);
    await syncFolder(folder);
    return { sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length, created: !old };
  } catch (error) {
    throw problem(error, path);
  } finally {
    if (old) closeSync(old.fd);
    discard(folder, temporary);
  }
}

function conflict(path: RelativePath, why: string): Error {
  return coded("file.conflict", `${shownPath(path)} ${why}`, { hint: "read it again" });
}

interface Old {
  fd: number;
  stat: Stats;
}

/** Undefined where nothing has the name. */
function openOld(folder: number, name: Buffer, path: RelativePath): Old | undefined {
  const stat = look(folder, name);
  if (!stat) return undefined;
  if (stat.isSymbolicLink())
    throw coded("file.symlink", `${shownPath(path)} is a link, and links are not followed`, {
      hint: "write to its target",
    });
  if (!stat.isFile())
    throw coded("file.kind", `${shownPath(path)} is ${stat.isDirectory() ? "a folder" : "no regular file"}`);
  let fd: number | undefined;
  try {
    fd = openSync(at(folder, name), openQuietly | constants.O_NOFOLLOW);
    const opened = fstatSync(fd);
    if (!opened.isFile())
      throw coded("file.conflict", `${shownPath(path)} was changed by somebody else just now`);
    return { fd, stat: opened };
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    throw problem(error, path);
  }
}

/** Whether nobody has touched it: ctime changes with everything that is done to a file, and nobody can set it. */
function same(before: Stats, now: Stats | undefined): boolean {
  if (!now) return false;
  const keys = ["dev", "ino", "size", "mtimeMs", "ctimeMs"] as const;
  return keys.every((key) => before[key] === now[key]);
}

async function make(
  folder: number,
  name: Buffer,
  bytes: Buffer,
  old: Old | undefined,
  mode?: number,
): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await withFd(openSync(at(folder, name), flags, 0o600), async (fd) => {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    if (old) keep(fd, old);
    else fchmodSync(fd, mode ?? 0o666 & ~process.umask());
    await synced(fd);
  });
}

/** Owner, attributes and permissions of the old file; in this order, since a new owner takes bits of the permissions away. */
function keep(fd: number, old: Old): void {
  const { uid, gid, mode } = old.stat;
  const made = fstatSync(fd);
  if (made.uid !== uid || made.gid !== gid) {
    try {
      fchownSync(fd, uid, gid);
    } catch {
      // Who may write a file need not be allowed to give one away.
    }
  }
  for (const [name, value] of attributesOf(old.fd)) {
    // What a security module has put there it puts on the new file as well, or nobody may.
    if (!setAttribute(fd, name, value) && !/^(?:security|trusted)\./.test(name))
      throw coded("file.io", `the attribute ${name} of the file cannot be kept`);
  }
  const kept = fstatSync(fd);
  const given = kept.uid === uid && kept.gid === gid;
  // Bits that lend the owner's rights are not to lend another's.
  fchmodSync(fd, mode & (given ? 0o7777 : 0o777));
}

/** @throws Error EEXIST */
function renameOnto(folder: number, temporary: Buffer, name: Buffer): void {
  if (renameNew(folder, temporary, folder, name)) return;
  linkSync(at(folder, temporary), at(folder, name));
}

export async function syncFolder(folder: number): Promise<void> {
  await withFd(openSync(`${selfPath(folder)}/.`, folderFlags), (fd) => synced(fd));
}

function discard(folder: number, name: Buffer): void {
  try {
    unlinkSync(at(folder, name));
  } catch {
    // It has the file's name now, or was never made.
  }
}
