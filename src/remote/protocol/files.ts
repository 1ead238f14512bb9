/**
 * `file.*` and `blob.get`: the files of a session's working folder. Every path is relative to that folder, with `/` between names; the folder
 * itself is `.`. Lists are sorted by the bytes of their names, and go on behind the `after` that the last answer's `next` has given.
 */
import { z } from "zod";
import { pieceBytes } from "./limits.ts";
import { base64, pathName, sha256 } from "./values.ts";

const offset = z.int().min(0);
const limit = z.int().positive().optional();
const mode = z.int().min(0).max(0o777).optional();
const kind = z.enum(["file", "dir", "link", "other"]);

/** `hash`: of a file, the SHA-256 of what is in it. */
export const fileStat = z.strictObject({ path: pathName, hash: z.boolean().default(false) });
export const fileStated = z.object({
  /** False: nothing is there, and all that follows is missing. */
  exists: z.boolean(),
  kind: kind.optional(),
  size: z.int().optional(),
  /** Permissions. */
  mode: z.int().optional(),
  /** Milliseconds since 1970. */
  mtime: z.number().optional(),
  sha256: sha256.optional(),
  /** Of a link. */
  target: pathName.optional(),
});
export type FileStated = z.infer<typeof fileStated>;

/** Text from the byte `off` on; as many bytes as asked for, less those of a character that would be cut. */
export const fileRead = z.strictObject({ path: pathName, off: offset.default(0), bytes: limit });
export const fileText = z.object({
  encoding: z.literal("utf8"),
  text: z.string(),
  off: offset,
  /** Where the next read goes on. */
  next: offset,
  /** Of the whole file. */
  size: offset,
  eof: z.boolean(),
  /** Of the whole file, where this is all of it. */
  sha256: sha256.optional(),
});
export type FileText = z.infer<typeof fileText>;

/** The bytes of a file as they are. */
export const blobGet = z.strictObject({
  path: pathName,
  off: offset.default(0),
  bytes: z.int().positive().max(pieceBytes).default(pieceBytes),
});
export const blobPiece = z.object({ data: base64, off: offset, size: offset, eof: z.boolean() });
export type BlobPiece = z.infer<typeof blobPiece>;

const content = { text: z.string().optional(), data: base64.optional() };
const oneContent = ({ text, data }: { text?: string; data?: string }) =>
  (text === undefined) !== (data === undefined);
const eitherContent = { error: "send either `text` or `data`, base64" };

/** The whole file, at once or not at all. `expect`: what must be there now. `mode` is that of a new file. */
export const fileWrite = z
  .strictObject({
    path: pathName,
    ...content,
    expect: z.union([z.enum(["any", "absent"]), z.strictObject({ sha256 })]).default("any"),
    mode,
  })
  .refine(oneContent, eitherContent);
/** `file.write` over a file whose content must be known. */
export const fileCas = z
  .strictObject({ path: pathName, ...content, sha256 })
  .refine(oneContent, eitherContent);
export const fileWritten = z.object({ sha256, size: offset, created: z.boolean() });
export type FileWritten = z.infer<typeof fileWritten>;

export const fileEntry = z.object({
  /** `file.list`: a name in the folder; else the path below the working folder. */
  path: pathName,
  kind,
  size: offset,
  mode: z.int(),
  mtime: z.number(),
});
export type FileEntry = z.infer<typeof fileEntry>;

export const fileList = z.strictObject({ path: pathName.default("."), after: pathName.optional(), limit });
/** A folder and all that is below it: each folder before what is in it. */
export const fileWalk = fileList;
export const fileEntries = z.object({
  entries: z.array(fileEntry),
  /** There is more behind it. */
  next: pathName.optional(),
  /** Entries that the policy hides, or that could not be looked at. */
  left: z.int(),
});
export type FileEntries = z.infer<typeof fileEntries>;

/** A text, literally, in all files below a folder; lines are searched one by one. */
export const fileSearch = z.strictObject({
  path: pathName.default("."),
  text: z
    .string()
    .min(1)
    .max(4096)
    .refine((text) => !text.includes("\n"), "is searched in lines: it cannot hold a newline"),
  ignoreCase: z.boolean().default(false),
  /** Of paths below the working folder. */
  glob: z.string().min(1).max(1024).optional(),
  after: pathName.optional(),
  limit,
});
export const fileMatches = z.object({
  /** `line` from 1, `column` in UTF-16 units from 1; a long line is cut around the match. */
  matches: z.array(z.object({ path: pathName, line: z.int(), column: z.int(), text: z.string() })),
  next: pathName.optional(),
  /** Files that were not searched: binary, too large, hidden by the policy, or not readable. */
  left: z.int(),
});
export type FileMatches = z.infer<typeof fileMatches>;

/** The same files have the same `root`, whenever and wherever it is asked for. */
export const fileSnapshot = z.strictObject({
  path: pathName.default("."),
  /** With the entries, not only their root. */
  entries: z.boolean().default(false),
  after: pathName.optional(),
  limit,
});
export const fileSnapshotted = z.object({
  /** Merkle root (doc/REMOTE_PROTOCOL.md). */
  root: sha256,
  files: z.int(),
  bytes: z.int(),
  entries: z
    .array(
      z.object({
        path: pathName,
        kind,
        mode: z.int(),
        size: offset,
        sha256: sha256.optional(),
        target: pathName.optional(),
      }),
    )
    .optional(),
  next: pathName.optional(),
  /** Entries that the policy hides. */
  left: z.int(),
});
export type FileSnapshotted = z.infer<typeof fileSnapshotted>;

export const fileRemove = z.strictObject({ path: pathName, recursive: z.boolean().default(false) });
export const fileMkdir = z.strictObject({ path: pathName, parents: z.boolean().default(false), mode });
/** `replace`: a file may be there already. */
export const fileRename = z.strictObject({
  from: pathName,
  to: pathName,
  replace: z.boolean().default(false),
});
