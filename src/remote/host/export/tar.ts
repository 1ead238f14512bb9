/**
 * Tar archives (POSIX.1-2001, pax) that are the same for the same files: sorted, without times, owners and numbers of devices. Names that the old
 * header has no room for, or that are no UTF-8, are in a pax record.
 */
import type { FileEntry } from "../../protocol/files.ts";

const block = 512;
/** What the old header has room for. */
const nameBytes = 100;
const octalSize = 8 * 1024 ** 3 - 1;

export interface Member {
  /** Relative, without `.` and `..`. */
  name: Buffer;
  kind: FileEntry["kind"];
  mode: number;
  /** Of a file. */
  size: number;
  /** Of a link. */
  target?: Buffer;
}

/** All that stands before the content of a member. */
export function header(member: Member): Buffer {
  const { name, target = Buffer.alloc(0), size } = member;
  const path = member.kind === "dir" ? Buffer.concat([name, Buffer.from("/")]) : name;
  const records: Buffer[] = [];
  const odd = [path, target].some((bytes) => !Buffer.from(bytes.toString()).equals(bytes));
  // Without it, names are UTF-8 by definition.
  if (odd) records.push(record("hdrcharset", Buffer.from("BINARY")));
  if (path.length > nameBytes || !isPlain(path)) records.push(record("path", path));
  if (target.length > nameBytes || !isPlain(target)) records.push(record("linkpath", target));
  if (size > octalSize) records.push(record("size", Buffer.from(String(size))));
  const own = plain(member, path, target);
  if (records.length === 0) return own;
  const body = Buffer.concat(records);
  const about = { name, kind: "file" as const, mode: 0o644, size: body.length };
  return Buffer.concat([
    plain(about, Buffer.from("pax"), Buffer.alloc(0), "x"),
    body,
    padding(body.length),
    own,
  ]);
}

const types = { file: "0", link: "2", dir: "5", other: "0" } as const;

function plain(
  member: Omit<Member, "target">,
  path: Buffer,
  target: Buffer,
  type: string = types[member.kind],
): Buffer {
  const { kind, mode, size } = member;
  const bytes = Buffer.alloc(block);
  path.copy(bytes, 0, 0, nameBytes);
  octal(bytes, 100, 8, mode & 0o777);
  octal(bytes, 108, 8, 0);
  octal(bytes, 116, 8, 0);
  octal(bytes, 124, 12, kind === "file" && size <= octalSize ? size : 0);
  octal(bytes, 136, 12, 0);
  bytes.write("        ", 148, "latin1"); // the sum is taken with spaces in its place
  bytes.write(type, 156, "latin1");
  target.copy(bytes, 157, 0, nameBytes);
  bytes.write("ustar\0" + "00", 257, "latin1");
  const sum = bytes.reduce((all, byte) => all + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

function octal(bytes: Buffer, at: number, width: number, value: number): void {
  bytes.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "latin1");
}

/** ASCII, which every tar reads in the same way. */
function isPlain(bytes: Buffer): boolean {
  return bytes.every((byte) => byte >= 0x20 && byte < 0x7f);
}

/** `LENGTH KEY=VALUE` and a newline, the length counting itself. */
function record(key: string, value: Buffer): Buffer {
  const rest = key.length + value.length + 3;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from("\n")]);
}

/** Contents are filled up to whole blocks. */
export function padding(size: number): Buffer {
  return Buffer.alloc((block - (size % block)) % block);
}

/** How an archive ends. */
export const trailer = Buffer.alloc(2 * block);
