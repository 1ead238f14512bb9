/** Reading some lines of a file in one pass, in memory that depends on what is shown and not on the file. */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { copyLimit } from "./ledger.ts";

export interface Window {
  /** First line, from 1. */
  offset: number;
  /** Lines at most. */
  limit: number;
  /** First character of each line, from 1. */
  column: number;
  /** Characters of each line. */
  width: number;
  /** Bytes of all lines together. */
  bytes: number;
}

export interface Page {
  lines: string[];
  /** Lines in the file; undefined where it was not read to its end. */
  total?: number;
  /** Of the whole file, if it was read to its end. */
  sha256?: string;
  /** The whole file, if it is short. */
  content?: Uint8Array;
  crlf: boolean;
  endsWithNewline: boolean;
  /** Some line went on behind the window. */
  cut: boolean;
}

/** @param whole read on to the end of the file, to be able to say its length and hash */
export function readPage(path: string, window: Window, whole: boolean): Page {
  // Should a link or pipe have taken the file's place since its path was resolved, it is neither followed nor waited for.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return new Pager(window).read(fd, whole);
  } finally {
    closeSync(fd);
  }
}

class Pager {
  private readonly page: Page = { lines: [], crlf: false, endsWithNewline: true, cut: false };
  private line = 1;
  private shown = 0;
  private full = false;
  /** Of the current line: its first bytes, and how many it has. */
  private parts: Buffer[] = [];
  private kept = 0;
  private length = 0;
  /** Bytes of a line that may be shown: a character has at most four. */
  private readonly reach: number;

  constructor(private readonly window: Window) {
    this.reach = 4 * (window.column + window.width);
  }

  read(fd: number, whole: boolean): Page {
    const hash = new Bun.CryptoHasher("sha256");
    const content: Buffer[] = [];
    let size = 0;
    // A MiB of zeros would take longer to be made than most files to be read.
    const buffer = Buffer.allocUnsafe(64 * 1024);
    for (let count = readSync(fd, buffer); count > 0; count = readSync(fd, buffer)) {
      const chunk = buffer.subarray(0, count);
      if (whole) hash.update(chunk);
      size += count;
      if (size <= copyLimit) content.push(Buffer.from(chunk));
      this.take(chunk);
      if (this.full && !whole) return this.page;
    }
    if (this.length > 0) {
      this.page.endsWithNewline = false;
      this.endLine();
    }
    this.page.total = this.line - 1;
    if (whole) this.page.sha256 = hash.digest("hex");
    if (whole && size <= copyLimit) this.page.content = Buffer.concat(content);
    return this.page;
  }

  private take(chunk: Buffer): void {
    let at = 0;
    for (let newline = chunk.indexOf(10); newline >= 0; newline = chunk.indexOf(10, at)) {
      this.add(chunk.subarray(at, newline));
      this.endLine();
      at = newline + 1;
    }
    this.add(chunk.subarray(at));
  }

  private get wanted(): boolean {
    return !this.full && this.line >= this.window.offset;
  }

  private add(part: Buffer): void {
    this.length += part.length;
    if (!this.wanted || this.kept >= this.reach || part.length === 0) return;
    const piece = Buffer.from(part.subarray(0, this.reach - this.kept));
    this.parts.push(piece);
    this.kept += piece.length;
  }

  private endLine(): void {
    if (this.wanted) this.show(Buffer.concat(this.parts).toString("utf8"), this.length - this.kept);
    this.line++;
    this.parts = [];
    this.kept = 0;
    this.length = 0;
  }

  private show(line: string, beyond: number): void {
    const returned = beyond === 0 && line.endsWith("\r");
    if (returned) this.page.crlf = true;
    const { column, width, limit, bytes } = this.window;
    const text = returned ? line.slice(0, -1) : line;
    const part = text.slice(column - 1, column - 1 + width).toWellFormed();
    const rest = text.length - (column - 1) - part.length;
    const shown = visible(
      rest > 0 || beyond > 0 ? `${part}… [+${beyond > 0 ? `more than ${rest}` : rest} characters]` : part,
    );
    const size = Buffer.byteLength(shown) + 8; // the line's number and its newline
    if (this.page.lines.length > 0 && this.shown + size > bytes) {
      this.full = true;
      return;
    }
    if (rest > 0 || beyond > 0) this.page.cut = true;
    this.shown += size;
    this.page.lines.push(shown);
    if (this.page.lines.length >= limit) this.full = true;
  }
}

/** Control characters as their pictures (␛): in a tool's output they would be taken for the terminal's and vanish. */
function visible(text: string): string {
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f]/g, (char) =>
    char === "\x7f" ? "\u2421" : String.fromCharCode(0x2400 + char.charCodeAt(0)),
  );
}
