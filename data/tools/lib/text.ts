/**
 * File content as a string of bytes (one character a byte), so that whatever is not touched stays the same, valid UTF-8 or not;
 * and a view of it in which every line ends in LF.
 */

const bom = "\xef\xbb\xbf";

/** From the text a model wrote: LF line ends, no byte order mark. */
export function fromModel(text: string): string {
  return Buffer.from(text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n")).toString("latin1");
}

export function fromFile(content: Uint8Array): string {
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength).toString("latin1");
}

export function toFile(bytes: string): Buffer {
  return Buffer.from(bytes, "latin1");
}

/** For people: decoded, what is not UTF-8 as U+FFFD. */
export function forDisplay(bytes: string): string {
  return toFile(bytes).toString("utf8");
}

export function isBinary(bytes: string): boolean {
  return bytes.slice(0, 8192).includes("\0");
}

/** A file's text without byte order mark and with LF line ends, and the way back. */
export class FlatText {
  readonly text: string;
  /** Offsets in `text` of the newlines that are CRLF in the file. */
  private readonly crlf: number[] = [];
  private readonly start: number;

  constructor(readonly file: string) {
    this.start = file.startsWith(bom) ? bom.length : 0;
    let removed = this.start;
    for (let at = file.indexOf("\r\n"); at >= 0; at = file.indexOf("\r\n", at + 2)) {
      this.crlf.push(at - removed);
      removed++;
    }
    this.text = file.slice(this.start).replaceAll("\r\n", "\n");
  }

  /** What the file is after each `[start, end)` of `text`, in ascending order, has been replaced. */
  splice(edits: readonly { start: number; end: number; by: string }[]): string {
    const parts: string[] = [];
    let at = 0;
    for (const { start, end, by } of edits) {
      const from = this.toFile(start);
      const to = end > start ? this.afterInFile(end - 1) : from;
      parts.push(this.file.slice(at, from), by.replaceAll("\n", this.lineEnd(start, end)));
      at = to;
    }
    parts.push(this.file.slice(at));
    return parts.join("");
  }

  /** 1 for the first line. */
  lineOf(offset: number): number {
    let line = 1;
    for (let at = this.text.indexOf("\n"); at >= 0 && at < offset; at = this.text.indexOf("\n", at + 1))
      line++;
    return line;
  }

  /** Where the character at `offset` begins in the file: a CRLF with its CR. */
  private toFile(offset: number): number {
    return this.start + offset + this.crlfBefore(offset);
  }

  /** Where the character at `offset` ends in the file. */
  private afterInFile(offset: number): number {
    return this.start + offset + this.crlfBefore(offset + 1) + 1;
  }

  private crlfBefore(offset: number): number {
    let [low, high] = [0, this.crlf.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.crlf[middle]! < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** How lines end in the range, else at its next line end, else at the one before. */
  private lineEnd(start: number, end: number): string {
    let newline = this.text.indexOf("\n", start);
    if (newline < 0 || newline >= end) newline = this.text.indexOf("\n", end);
    if (newline < 0) newline = this.text.lastIndexOf("\n", start);
    return newline >= 0 && this.crlfBefore(newline + 1) > this.crlfBefore(newline) ? "\r\n" : "\n";
  }
}
