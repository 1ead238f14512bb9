/**
 * The calls for files that Bun has no function for. None of them says why it failed: by the time JavaScript runs again, another call of this
 * thread may have changed errno. Whoever wants to know does the same thing again with node:fs.
 */
import { ptr } from "bun:ffi";
import { constants } from "node:fs";
import { fromLibc } from "../../../exec/libc.ts";

/** `open(2)`, `openat2(2)`; the same on x64 and arm64. */
export const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
export const RESOLVE_NO_MAGICLINKS = 2;
export const RESOLVE_NO_SYMLINKS = 4;
export const RESOLVE_BENEATH = 8;
const RENAME_NOREPLACE = 1;

const numbers = {
  x64: { openat2: 437n, renameat2: 316n },
  arm64: { openat2: 437n, renameat2: 276n },
} as const;

function load() {
  return fromLibc({
    // A pointer is passed as a number is.
    syscall: { args: ["i64", "i64", "i64", "i64", "i64", "i64"], returns: "i64" },
    flistxattr: { args: ["i32", "ptr", "u64"], returns: "i64" },
    fgetxattr: { args: ["i32", "ptr", "ptr", "u64"], returns: "i64" },
    fsetxattr: { args: ["i32", "ptr", "ptr", "u64", "i32"], returns: "i32" },
  });
}

let loaded: ReturnType<typeof load> | undefined;

function libc(): ReturnType<typeof load> {
  loaded ??= load();
  return loaded;
}

function numberOf(call: "openat2" | "renameat2"): bigint | undefined {
  return process.arch === "x64" || process.arch === "arm64" ? numbers[process.arch][call] : undefined;
}

function cString(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.of(0)]);
}

/** `openat2(2)`: a descriptor, or undefined where it failed or the kernel has no such call. */
export function openat2(
  folder: number,
  path: Uint8Array,
  flags: number,
  resolve: number,
): number | undefined {
  const number = numberOf("openat2");
  if (number === undefined) return undefined;
  const name = cString(path);
  const how = BigUint64Array.of(BigInt(flags | O_CLOEXEC), 0n, BigInt(resolve));
  const fd = libc().syscall(number, BigInt(folder), address(name), address(how), BigInt(how.byteLength), 0n);
  return fd < 0n ? undefined : Number(fd);
}

/** `renameat2(2)` onto a name that must not be there; false where it failed, for whatever reason. */
export function renameNew(from: number, old: Uint8Array, to: number, name: Uint8Array): boolean {
  const number = numberOf("renameat2");
  if (number === undefined) return false;
  const [source, target] = [cString(old), cString(name)];
  const flags = BigInt(RENAME_NOREPLACE);
  return libc().syscall(number, BigInt(from), address(source), BigInt(to), address(target), flags) === 0n;
}

function address(bytes: NodeJS.TypedArray): bigint {
  return BigInt(ptr(bytes));
}

/** Bytes that an attribute, or the list of their names, may have: `XATTR_SIZE_MAX`, `XATTR_LIST_MAX`. */
const attributeBytes = 65536;

/** The extended attributes of an open file, access control lists among them. */
export function attributesOf(fd: number): Map<string, Buffer> {
  const names = Buffer.alloc(attributeBytes);
  const length = Number(libc().flistxattr(fd, ptr(names), BigInt(names.length)));
  const found = new Map<string, Buffer>();
  if (length <= 0) return found; // none, or a file system that has none
  const value = Buffer.alloc(attributeBytes);
  for (const name of names.toString("latin1", 0, length).split("\0").filter(Boolean)) {
    const size = Number(
      libc().fgetxattr(fd, ptr(cString(Buffer.from(name, "latin1"))), ptr(value), BigInt(value.length)),
    );
    if (size >= 0) found.set(name, Buffer.from(value.subarray(0, size)));
  }
  return found;
}

export function setAttribute(fd: number, name: string, value: Buffer): boolean {
  const data = value.length > 0 ? value : Buffer.of(0);
  const key = cString(Buffer.from(name, "latin1"));
  return libc().fsetxattr(fd, ptr(key), ptr(data), BigInt(value.length), 0) === 0;
}

/** For opening what is there, whatever it is: a FIFO would otherwise wait, a terminal become ours. */
export const openQuietly = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
