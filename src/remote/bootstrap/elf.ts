/** What the head of a program (ELF64, little endian) says of where it runs. */
import { closeSync, openSync, readSync } from "node:fs";
import { coded } from "../protocol/errors.ts";

/** e_machine → what `uname -m` says. */
const machines: Record<number, string> = { 62: "x86_64", 183: "aarch64" };
const PT_INTERP = 3;
/** All program headers of programs that are linked as usual lie within. */
const headBytes = 8192;

/** `loader`: PT_INTERP; of a static program "/", which every host has. @throws CodedFault "boot.unsupported" */
export function elfHead(file: string): { machine: string; loader: string } {
  const bytes = Buffer.alloc(headBytes);
  const fd = openSync(file, "r");
  try {
    readSync(fd, bytes, 0, headBytes, 0);
  } finally {
    closeSync(fd);
  }
  const machine = bytes.toString("latin1", 0, 6) === "\x7fELF\x02\x01" && machines[bytes.readUInt16LE(18)];
  if (!machine) throw coded("boot.unsupported", `${file} is no program for Linux on x86-64 or arm64`);
  return { machine, loader: loaderOf(bytes) ?? "/" };
}

function loaderOf(bytes: Buffer): string | undefined {
  const table = Number(bytes.readBigUInt64LE(32)); // e_phoff
  const size = bytes.readUInt16LE(54); // e_phentsize
  const end = Math.min(table + size * bytes.readUInt16LE(56), headBytes - size); // e_phnum
  for (let at = table; at < end; at += size) {
    if (bytes.readUInt32LE(at) !== PT_INTERP) continue;
    const start = Number(bytes.readBigUInt64LE(at + 8)); // p_offset
    if (start < headBytes) return bytes.toString("latin1", start, bytes.indexOf(0, start));
  }
  return undefined;
}
