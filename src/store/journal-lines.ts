/**
 * Reading the lines of a journal, whole ones and damaged ones. A crash of the machine can leave a line torn, padded with NULs or glued
 * to the next; what can be read is read, and the rest is reported.
 */
import { readSync } from "node:fs";
import { type JournalRecord, recordSchema } from "./records.ts";

/** Where something stands in a file, in bytes. */
export interface Place {
  at: number;
  bytes: number;
}

/** One JSON object of a line. Without a record it is something that only another version of ollie understands. */
export interface Piece {
  text: string;
  type: string;
  record?: JournalRecord;
}

export interface Reading {
  pieces: Piece[];
  /** Bytes of the line that belong to no piece, blanks and NULs not counted. */
  lost: number;
  /** Whether the line is anything but one piece or blank. */
  damaged: boolean;
}

const chunkBytes = 256 * 1024;
const newline = 10;
const decoder = new TextDecoder();

export type LineVisitor = (line: Uint8Array, place: Place, ended: boolean) => void;

/**
 * Calls back with every line from byte `from` to byte `to` of an open file, without its newline; `ended` is false for a last line
 * that has none. The bytes are valid during the call only. Gives others a turn between chunks of 256 KiB.
 */
export async function scanLines(fd: number, from: number, to: number, visit: LineVisitor): Promise<void> {
  const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(0, to - from)));
  let begun: Uint8Array[] = [];
  let start = from;
  for (let at = from; at < to; ) {
    const got = readSync(fd, chunk, 0, Math.min(chunk.length, to - at), at);
    if (got === 0) break;
    let next = 0;
    for (let end = chunk.indexOf(newline); end >= 0 && end < got; end = chunk.indexOf(newline, next)) {
      const piece = chunk.subarray(next, end);
      visit(
        begun.length > 0 ? Buffer.concat([...begun, piece]) : piece,
        { at: start, bytes: at + end - start },
        true,
      );
      begun = [];
      next = end + 1;
      start = at + next;
    }
    if (next < got) begun.push(Buffer.from(chunk.subarray(next, got)));
    at += got;
    if (at < to) await new Promise(setImmediate);
  }
  const rest = Buffer.concat(begun);
  if (rest.length > 0) visit(rest, { at: start, bytes: rest.length }, false);
}

export function readLine(line: Uint8Array): Reading {
  const text = decoder.decode(line);
  const whole = piece(text);
  if (whole) return { pieces: [whole], lost: 0, damaged: false };
  const pieces: Piece[] = [];
  let lost = 0;
  let at = 0;
  // A NUL is never part of JSON text: inside a string it is written as an escape.
  const bare = text.replaceAll("\0", "");
  for (
    let begin = bare.indexOf(opening);
    begin >= 0;
    begin = bare.indexOf(opening, Math.max(at, begin + 1))
  ) {
    const end = objectEnd(bare, begin);
    const found = end > 0 && piece(bare.slice(begin, end));
    if (!found) continue;
    pieces.push(found);
    lost += weight(bare.slice(at, begin));
    at = end;
  }
  lost += weight(bare.slice(at));
  return { pieces, lost, damaged: pieces.length > 1 || lost > 0 || bare.length !== text.length };
}

/** How every record begins. Inside a JSON string it cannot stand: quotes are escaped there. */
const opening = '{"t":"';

function piece(text: string): Piece | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const type = (value as { t?: unknown } | null)?.t;
  if (typeof type !== "string") return undefined;
  return { text, type, record: recordSchema.safeParse(value).data };
}

/** Index behind the object that begins at `from`, or -1 where it does not end. */
function objectEnd(text: string, from: number): number {
  let depth = 0;
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return at + 1;
  }
  return -1;
}

function weight(text: string): number {
  return Buffer.byteLength(text.trim());
}
