/** Head and tail of a long text, in memory that does not grow with it. */

const bytesOf = (text: string) => Buffer.byteLength(text);

/** Keeps the first and the last `limit` bytes (UTF-8) of what is added. */
export class Excerpt {
  /** Bytes added in all. */
  bytes = 0;
  private head = "";
  private headBytes = 0;
  private full = false;
  private tail: string[] = [];
  private tailBytes = 0;

  constructor(private readonly limit: number) {}

  add(text: string): void {
    if (!text) return;
    this.bytes += bytesOf(text);
    const rest = this.full ? text : this.fillHead(text);
    if (!rest) return;
    const kept = rest.length > 2 * this.limit ? lastBytes(rest, this.limit) : rest;
    this.tail.push(kept);
    this.tailBytes += bytesOf(kept);
    while (this.tail.length > 1 && this.tailBytes - bytesOf(this.tail[0]!) >= this.limit) {
      this.tailBytes -= bytesOf(this.tail.shift()!);
    }
  }

  /** The text within `share` bytes (at most `limit`), `gap(n)` standing for the n bytes left out; its own length is on top. */
  render(share: number, gap: (missing: number) => string): string {
    const tail = this.tail.join("");
    if (this.bytes <= share) return this.head + tail;
    const start = cutAfterLine(firstBytes(this.head + tail, Math.floor(share / 2)));
    const end = cutBeforeLine(lastBytes(this.head + tail, Math.ceil(share / 2)));
    const missing = this.bytes - bytesOf(start) - bytesOf(end);
    return `${start}${start.endsWith("\n") || !start ? "" : "\n"}${gap(missing)}\n${end}`;
  }

  /** Returns what did not fit; once something did not, nothing more goes in, or the head would have holes. */
  private fillHead(text: string): string {
    const part = firstBytes(text, this.limit - this.headBytes);
    this.head += part;
    this.headBytes += bytesOf(part);
    this.full = part.length < text.length;
    return text.slice(part.length);
  }
}

/** At most `count` bytes from the start, never half a character. */
function firstBytes(text: string, count: number): string {
  const bytes = Buffer.from(text.slice(0, count));
  if (bytes.length <= count) return text.slice(0, count);
  let end = count;
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

/** At most `count` bytes from the end, never half a character. */
function lastBytes(text: string, count: number): string {
  // A slice may begin inside a surrogate pair; then its half encodes as three bytes, which the loop below cannot see.
  const from = Math.max(0, text.length - count);
  const low = text.charCodeAt(from);
  const bytes = Buffer.from(text.slice(low >= 0xdc00 && low < 0xe000 ? from + 1 : from));
  let start = Math.max(0, bytes.length - count);
  while (start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start++;
  return bytes.toString("utf8", start);
}

/** Ends at a line's end where one is near. */
function cutAfterLine(text: string): string {
  const newline = text.lastIndexOf("\n");
  return newline >= text.length / 2 ? text.slice(0, newline + 1) : text;
}

/** Begins at a line's start where one is near. */
function cutBeforeLine(text: string): string {
  const newline = text.indexOf("\n");
  return newline >= 0 && newline < text.length / 2 ? text.slice(newline + 1) : text;
}
