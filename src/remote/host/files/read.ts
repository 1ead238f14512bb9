/** `file.stat`, `file.read`, `file.list`, `blob.get`. */
import { createHash } from "node:crypto";
import { fstatSync, lstatSync, read, readdirSync, readlinkSync, type Stats } from "node:fs";
import { promisify } from "node:util";
import type { z } from "zod";
import { CodedFault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import type * as wire from "../../protocol/files.ts";
import { at, selfPath, withFd } from "./beneath.ts";
import { child, nameOf, type PathName, parsePath, type RelativePath, relative, shownPath } from "./names.ts";
import { about } from "./problem.ts";
import { Pauses, type Workspace } from "./workspace.ts";

const readAt = promisify(read) as unknown as (
  fd: number,
  into: Buffer,
  start: number,
  length: number,
  position: number,
) => Promise<{ bytesRead: number }>;

export function kindOf(stat: Stats): wire.FileEntry["kind"] {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "dir";
  return stat.isSymbolicLink() ? "link" : "other";
}

export async function stat(
  workspace: Workspace,
  params: z.infer<typeof wire.fileStat>,
): Promise<wire.FileStated> {
  const path = parsePath(params.path);
  let found: number;
  try {
    found = workspace.open(path);
  } catch (error) {
    if (error instanceof CodedFault && error.code === "file.missing") return { exists: false };
    throw error;
  }
  return withFd(found, async (fd) => {
    const stat = fstatSync(fd);
    const kind = kindOf(stat);
    return {
      exists: true,
      kind,
      size: stat.size,
      mode: stat.mode & 0o7777,
      mtime: stat.mtimeMs,
      ...(params.hash && kind === "file" && { sha256: await hashAt(workspace, path) }),
      ...(kind === "link" && { target: nameOf(targetOf(workspace, path)) }),
    };
  });
}

/** By folder and name: if it is another link by now, it is one of this folder all the same. */
function targetOf(workspace: Workspace, path: RelativePath): Buffer {
  const folder = workspace.tree.openFolder(relative(path.parts.slice(0, -1)));
  return withFd(folder, () =>
    about(path, () => readlinkSync(at(folder, path.parts.at(-1)!), { encoding: "buffer" })),
  );
}

async function hashAt(workspace: Workspace, path: RelativePath): Promise<string> {
  const { fd } = workspace.openFile(path);
  return withFd(fd, (file) => hashOf(file));
}

/** SHA-256 of an open file from its beginning. */
export async function hashOf(fd: number, each: (bytes: number) => void = () => {}): Promise<string> {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(256 * 1024);
  const pauses = new Pauses();
  for (let off = 0; ; ) {
    const { bytesRead } = await readAt(fd, piece, 0, piece.length, off);
    if (bytesRead === 0) return hash.digest("hex");
    hash.update(piece.subarray(0, bytesRead));
    off += bytesRead;
    each(bytesRead);
    await pauses.take();
  }
}

/** Up to `length` bytes from `off` on; fewer only at the end of the file. */
async function bytesAt(fd: number, off: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let have = 0;
  while (have < length) {
    const { bytesRead } = await readAt(fd, bytes, have, length - have, off + have);
    if (bytesRead === 0) break;
    have += bytesRead;
  }
  return bytes.subarray(0, have);
}

export async function readText(
  workspace: Workspace,
  params: z.infer<typeof wire.fileRead>,
): Promise<wire.FileText> {
  const path = parsePath(params.path);
  const { off } = params;
  const wanted = Math.min(params.bytes ?? Number.POSITIVE_INFINITY, workspace.policy.policy.max_read_bytes);
  const { fd, stat } = workspace.openFile(path);
  return withFd(fd, async () => {
    // With a character's worth of bytes more, to know whether the file ends there.
    const bytes = await bytesAt(fd, off, wanted + 1);
    const eof = bytes.length <= wanted;
    const kept = eof ? bytes : wholeCharacters(bytes.subarray(0, wanted));
    const text = decode(kept, path, off);
    const next = off + kept.length;
    const whole = off === 0 && eof;
    return {
      encoding: "utf8" as const,
      text,
      off,
      next,
      size: Math.max(stat.size, next),
      eof,
      ...(whole && { sha256: createHash("sha256").update(kept).digest("hex") }),
    };
  });
}

/** Without the first bytes of a character at the end whose last ones are not there. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return bytes;
    if (byte < 0xc0) continue; // not the first of its character
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function decode(bytes: Buffer, path: RelativePath, off: number): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw coded(
      "file.not_utf8",
      `${shownPath(path)} is no UTF-8 ${off === 0 ? "text" : `text from byte ${off} on`}`,
      { hint: "blob.get reads its bytes" },
      { cause: error },
    );
  }
}

export async function readBytes(
  workspace: Workspace,
  params: z.infer<typeof wire.blobGet>,
): Promise<wire.BlobPiece> {
  const { fd, stat } = workspace.openFile(parsePath(params.path));
  return withFd(fd, async () => {
    const bytes = await bytesAt(fd, params.off, params.bytes);
    const end = params.off + bytes.length;
    return {
      data: bytes.toString("base64"),
      off: params.off,
      size: Math.max(stat.size, end),
      eof: bytes.length < params.bytes || end === stat.size,
    };
  });
}

/** Names in an open folder, sorted by their bytes. */
export function namesIn(fd: number, path: RelativePath): Buffer[] {
  const names = about(path, () => readdirSync(`${selfPath(fd)}/`, { encoding: "buffer" }));
  return names.sort(Buffer.compare);
}

export async function list(
  workspace: Workspace,
  params: z.infer<typeof wire.fileList>,
): Promise<wire.FileEntries> {
  const path = parsePath(params.path);
  const limit = entryLimit(workspace, params.limit);
  const after = params.after === undefined ? undefined : parsePath(params.after).parts[0];
  return withFd(workspace.openFolder(path), async (folder) => {
    const entries: wire.FileEntry[] = [];
    let left = 0;
    const pauses = new Pauses();
    for (const name of namesIn(folder, path)) {
      if (after && Buffer.compare(name, after) <= 0) continue;
      if (entries.length === limit) return { entries, left, next: entries.at(-1)!.path };
      const stat = workspace.policy.allowsPath(child(path, name).text, "read")
        ? look(folder, name)
        : undefined;
      if (stat) entries.push(entryOf(nameOf(name), stat));
      else left++;
      await pauses.take();
    }
    return { entries, left };
  });
}

export function entryLimit(workspace: Workspace, asked: number | undefined): number {
  return Math.min(asked ?? Number.POSITIVE_INFINITY, workspace.policy.policy.max_list_entries);
}

/** Undefined for what went while it was listed: no list fails as a whole because of one name. */
export function look(folder: number, name: Buffer): Stats | undefined {
  try {
    return lstatSync(at(folder, name));
  } catch {
    return undefined;
  }
}

export function entryOf(path: PathName, stat: Stats): wire.FileEntry {
  return { path, kind: kindOf(stat), size: stat.size, mode: stat.mode & 0o7777, mtime: stat.mtimeMs };
}
