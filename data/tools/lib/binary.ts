/** Saying what a file is that is not text. */
import { closeSync, openSync, readSync } from "node:fs";

const signatures: [start: string, kind: string][] = [
  ["\x7fELF", "ELF program or library"],
  ["\x89PNG\r\n\x1a\n", "PNG image"],
  ["\xff\xd8\xff", "JPEG image"],
  ["GIF8", "GIF image"],
  ["%PDF-", "PDF document"],
  ["PK\x03\x04", "ZIP archive (also jar, docx, xlsx)"],
  ["\x1f\x8b", "gzip data"],
  ["\x28\xb5\x2f\xfd", "zstd data"],
  ["\xfd7zXZ\0", "xz data"],
  ["BZh", "bzip2 data"],
  ["SQLite format 3\0", "SQLite database"],
  ["\0asm", "WebAssembly module"],
  ["\xca\xfe\xba\xbe", "Java class or Mach-O program"],
  ["\xff\xfe", "text in UTF-16; iconv -f UTF-16 makes it readable"],
  ["\xfe\xff", "text in UTF-16; iconv -f UTF-16 makes it readable"],
];

/** Undefined if the file is text: no NUL in its first 8 KiB. */
export function describeBinary(path: string, size: number): string | undefined {
  const start = firstBytes(path);
  if (!start.includes(0)) return undefined;
  const text = start.toString("latin1");
  const kind = signatures.find(([signature]) => text.startsWith(signature))?.[1] ?? "of no known kind";
  const hex = start
    .subarray(0, 64)
    .toString("hex")
    .replace(/(.{32})(?=.)/g, "$1\n")
    .replace(/(..)(?=.)/g, "$1 ");
  return `Binary file, ${size} bytes, ${kind}. It begins with:\n${hex}`;
}

function firstBytes(path: string): Buffer {
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(8192);
    return buffer.subarray(0, readSync(fd, buffer));
  } finally {
    closeSync(fd);
  }
}
