/**
 * What must be appended to a chat that a crash has cut anywhere, so that its blocks are whole again and the byte offsets in the
 * journal are true. Nothing is ever cut off: a reader may have seen it.
 */
import { type BlockType, endMarker, openingLine } from "./blocks.ts";
import type { LogFile } from "./log-file.ts";
import { markerRest } from "./marker-repair.ts";

/** The user block of the newest turn as the journal has it. */
export interface ExpectedBlock {
  chatAt: number;
  offset: number;
  /** Asked only where it is needed. */
  bytes(): Uint8Array;
}

/** A gap greater than this is no crash's doing, and is not filled. */
const maxGap = 64 * 1024 * 1024;
const windowBytes = 64 * 1024;
const newline = 10;
const marker = Buffer.from("\n[[[");
const endLine = `${endMarker}\n`;

/** Returns what to append (nothing to a whole chat), and a sentence for each thing that was wrong. */
export function repairOf(
  chat: LogFile,
  expected: ExpectedBlock | undefined,
): { patch: Uint8Array; report: string[] } {
  const missing = expected ? expected.offset - chat.length : 0;
  const closing = closingOf(chat);
  if (expected && missing > 0 && missing < maxGap) {
    const gap = Math.max(0, expected.chatAt - chat.length);
    const block = fitted(expected).subarray(Math.max(0, chat.length - expected.chatAt));
    return {
      patch: Buffer.concat([filler(gap, closing), block]),
      report: [
        `${chat.path}: ${missing} bytes up to the end of the last prompt were missing and are written again`,
      ],
    };
  }
  const report = closing ? [`${chat.path}: a block that was left open is closed`] : [];
  if (missing >= maxGap) report.push(`${chat.path}: ${missing} bytes are missing and cannot be replaced`);
  return { patch: Buffer.from(closing), report };
}

/** The block in exactly the room that the journal has reserved, should it have been rendered with other attributes. */
function fitted({ chatAt, offset, bytes: render }: ExpectedBlock): Uint8Array {
  const room = offset - chatAt;
  const bytes = render();
  if (bytes.length === room) return bytes;
  const end = Buffer.from(`\n${endLine}`);
  const block = Buffer.alloc(Math.max(0, room), newline);
  block.set(bytes.subarray(0, Math.min(room, bytes.length - end.length)));
  if (room > end.length) block.set(end, room - end.length);
  return block;
}

/** Stands in for `size` bytes that are lost: an info block that says so, where it fits; empty lines in the block that was cut, where not. */
function filler(size: number, closing: string): Uint8Array {
  const infoLine = openingLine("info", {});
  const room = size - closing.length - infoLine.length - endLine.length;
  if (room >= 0) {
    const note = `${size} bytes of this chat were lost.`.slice(0, Math.max(0, room - 1));
    return Buffer.from(`${closing}${infoLine}${note.padEnd(room, "\n")}${endLine}`);
  }
  const padding = "\n".repeat(Math.max(0, size - closing.length));
  if (closing.length <= size && closing.endsWith(endLine))
    return Buffer.from(`${closing.slice(0, -endLine.length)}${padding}${endLine}`);
  return Buffer.alloc(size, newline);
}

/** What closes the block, and completes the marker, that the chat ends in; "" where it ends between two blocks. */
function closingOf(chat: LogFile): string {
  const lastLine = lastIndexOf(chat, marker.subarray(0, 1), chat.length) + 1;
  const open = blockIsOpen(chat, lastLine);
  const ended = lastLine === chat.length;
  if (ended) return open ? endLine : "";
  const tail = Buffer.from(chat.read(lastLine, windowBytes)).toString();
  if (open) return endLine.startsWith(tail) ? endLine.slice(tail.length) : `\n${endLine}`;
  if (tail === endMarker) return "\n";
  return /^(\[{1,2}$|\[\[\[)/.test(tail) ? `${markerRest(tail, new Date().toISOString())}\n${endLine}` : "\n";
}

/** Whether the last block of a whole chat is of this type and begins at byte `from` or later. */
export function endsIn(type: BlockType, chat: LogFile, from: number): boolean {
  const end = lastIndexOf(chat, marker, chat.length);
  const at = lastIndexOf(chat, marker, end) + 1;
  const opening = `[[[${type} `;
  return end >= 0 && at >= from && Buffer.from(chat.read(at, opening.length)).toString() === opening;
}

/** Whether a block of this type begins at byte `from` of a whole chat or later. */
export function beginsIn(type: BlockType, chat: LogFile, from: number): boolean {
  const opening = `[[[${type} `;
  const found = lastIndexOf(chat, Buffer.from(`\n${opening}`), chat.length);
  if (found >= 0) return found + 1 >= from;
  return from === 0 && Buffer.from(chat.read(0, opening.length)).toString() === opening;
}

/** Whether the last marker line before byte `to`, which begins a line, opens a block. */
function blockIsOpen(chat: LogFile, to: number): boolean {
  const found = lastIndexOf(chat, marker, to);
  const at = found < 0 ? 0 : found + 1;
  const line = Buffer.from(chat.read(at, Math.min(to - at, endLine.length))).toString();
  return line.startsWith("[[[") && line !== endLine;
}

/** Where `needle` was found last in the bytes before `to`, or -1. Reads backwards, since a chat may be long. */
function lastIndexOf(chat: LogFile, needle: Uint8Array, to: number): number {
  for (let end = to; end > 0; ) {
    const start = Math.max(0, end - windowBytes);
    const found = Buffer.from(chat.read(start, end - start)).lastIndexOf(needle);
    if (found >= 0) return start + found;
    if (start === 0) break;
    end = start + needle.length - 1;
  }
  return -1;
}
