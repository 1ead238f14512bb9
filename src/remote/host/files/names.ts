/** Paths as they come from the other end: below the working folder, of bytes that need not be UTF-8. */
import { coded } from "../../protocol/errors.ts";

/** A path, or its bytes where they are no UTF-8. */
export type PathName = string | { b64: string };

export interface RelativePath {
  /** Without `.`; empty: the working folder itself. */
  parts: readonly Buffer[];
  /** For the policy and for people; what is no UTF-8 has replacement characters in it. */
  text: string;
}

/** NAME_MAX and PATH_MAX of Linux. */
const nameLimit = 255;
const pathLimit = 4095;

/** @throws CodedFault `file.escape`, `file.name` */
export function parsePath(name: PathName): RelativePath {
  const bytes = typeof name === "string" ? Buffer.from(name) : Buffer.from(name.b64, "base64");
  const shown = JSON.stringify(bytes.toString());
  const refuse = (code: string, why: string): never => {
    throw coded(code, `${shown} ${why}`);
  };
  if (bytes.length === 0) refuse("file.name", 'is no path: the working folder is "."');
  if (bytes.length > pathLimit) refuse("file.name", `is longer than ${pathLimit} bytes`);
  if (bytes.includes(0)) refuse("file.name", "holds a NUL, which no path can");
  if (bytes[0] === 0x2f) refuse("file.escape", "is absolute: paths are relative to the working folder");
  const parts = split(bytes).filter((part) => part.length > 0 && !part.equals(here));
  if (parts.some((part) => part.equals(up)))
    refuse("file.escape", "leads out of the working folder: .. is not allowed");
  if (parts.some((part) => part.length > nameLimit))
    refuse("file.name", `has a name of more than ${nameLimit} bytes`);
  return relative(parts);
}

const here = Buffer.from(".");
const up = Buffer.from("..");
const slash = Buffer.from("/");

export function relative(parts: readonly Buffer[]): RelativePath {
  return { parts, text: joined(parts).toString() };
}

export function child(folder: RelativePath, name: Buffer): RelativePath {
  return relative([...folder.parts, name]);
}

export function joined(parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [slash, part])));
}

/** As it goes to the other end. */
export function nameOf(bytes: Buffer): PathName {
  const text = bytes.toString();
  return Buffer.from(text).equals(bytes) ? text : { b64: bytes.toString("base64") };
}

export function pathOf({ parts }: RelativePath): PathName {
  return parts.length === 0 ? "." : nameOf(joined(parts));
}

/** For sentences. */
export function shownPath({ text }: RelativePath): string {
  return text === "" ? "the working folder" : text;
}

export function split(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let start = 0;
  for (let at = bytes.indexOf(0x2f); at >= 0; at = bytes.indexOf(0x2f, start)) {
    parts.push(bytes.subarray(start, at));
    start = at + 1;
  }
  return [...parts, bytes.subarray(start)];
}
