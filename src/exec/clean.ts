/** Makes what a program prints readable as plain text: see `Cleaner`. */

/** Characters of one line that are shown. */
export const lineLimit = 2000;

/** Everything below U+0020 but tab, DEL and the C1 controls. */
const control = /[\x00-\x08\x0a-\x1f\x7f-\x9f]/g;
/** The same without the newline: text in which nothing needs work. */
const awkward = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

/** Where in an escape sequence (ECMA-48) the text stands. */
type Place = "text" | "escape" | "csi" | "string" | "string-escape";

/**
 * Turns decoded output into lines: escape sequences (CSI, OSC, DCS and the rest) and control characters go, but a NUL, which
 * separates, is shown as ␀; `\r` starts the line over so that a progress bar leaves its last state, CRLF becomes LF, and a line keeps
 * its first 2,000 characters and the number of those cut off. Works on a stream: sequences and lines may be split anywhere, and memory does not grow with the line.
 */
export class Cleaner {
  /** True once a line was cut. */
  clamped = false;
  private line = "";
  private cut = 0;
  /** A `\r` was seen; whether it ends the line or starts it over shows with the next character. */
  private returned = false;
  private place: Place = "text";
  private parameters = "";
  private out: string[] = [];

  /** The complete lines, each with its newline; an incomplete one waits. */
  push(text: string): string {
    if (this.place === "text" && !this.returned && !awkward.test(text)) this.plain(text);
    else this.walk(text);
    return this.take();
  }

  /** What is left: the line without a newline. */
  end(): string {
    const rest = this.finished();
    this.line = "";
    this.cut = 0;
    return rest;
  }

  private take(): string {
    const text = this.out.length === 1 ? this.out[0]! : this.out.join("");
    this.out = [];
    return text;
  }

  private plain(text: string): void {
    const last = text.lastIndexOf("\n");
    if (last < 0) {
      this.append(text);
      return;
    }
    const first = text.indexOf("\n");
    this.append(text.slice(0, first));
    this.newline();
    const middle = text.slice(first + 1, last + 1);
    if (hasLongLine(middle)) for (const line of middle.slice(0, -1).split("\n")) this.whole(line);
    else if (middle) this.out.push(middle);
    this.append(text.slice(last + 1));
  }

  private whole(line: string): void {
    this.append(line);
    this.newline();
  }

  private walk(text: string): void {
    let at = 0;
    while (at < text.length) {
      if (this.place !== "text") {
        at = this.sequence(text, at);
        continue;
      }
      control.lastIndex = at;
      const next = control.exec(text)?.index ?? text.length;
      if (next > at) this.print(text.slice(at, next));
      if (next < text.length) this.control(text[next]!);
      at = next + 1;
    }
  }

  private control(char: string): void {
    if (char === "\n") this.newline();
    else if (char === "\0") this.print("␀");
    else if (char === "\r") this.returned = true;
    else if (char === "\x1b") this.place = "escape";
    else if (char === "\x9b") this.beginCsi();
    else if (char === "\b" && this.cut === 0) this.line = this.line.slice(0, -1);
  }

  private beginCsi(): void {
    this.place = "csi";
    this.parameters = "";
  }

  /** Takes one character of an escape sequence; returns where to go on. */
  private sequence(text: string, at: number): number {
    const char = text[at]!;
    // A newline inside a sequence means that the sequence was never finished: without this rule one stray ESC ] eats everything.
    if (char === "\n" || char === "\x18" || char === "\x1a") {
      this.place = "text";
      return char === "\n" ? at : at + 1;
    }
    switch (this.place) {
      case "escape":
        if (char === "[") this.beginCsi();
        else if ("]PX^_".includes(char)) this.place = "string";
        else if (char < " " || char > "/") this.place = "text"; // "/" and below are intermediates: one more follows
        return at + 1;
      case "csi":
        if (char >= "@" && char <= "~") this.endCsi(char);
        else if (this.parameters.length < 16) this.parameters += char;
        return at + 1;
      case "string":
        if (char === "\x1b") this.place = "string-escape";
        else if (char === "\x07" || char === "\x9c") this.place = "text";
        return at + 1;
      default: // ESC \ ends the string; ESC and anything else is the start of another sequence
        this.place = char === "\\" ? "text" : "escape";
        return char === "\\" ? at + 1 : at;
    }
  }

  /** "Erase line" and "to column 1" are how some programs write `\r`. */
  private endCsi(final: string): void {
    this.place = "text";
    if ((final === "K" && this.parameters === "2") || (final === "G" && /^[01]?$/.test(this.parameters)))
      this.returned = true;
  }

  private print(text: string): void {
    if (this.returned) {
      this.line = "";
      this.cut = 0;
      this.returned = false;
    }
    this.append(text);
  }

  private append(text: string): void {
    const room = lineLimit - this.line.length;
    if (text.length <= room && this.cut === 0) {
      this.line += text;
      return;
    }
    const taken = this.cut > 0 ? 0 : wholeCharacters(text, room);
    this.line += text.slice(0, taken);
    this.cut += text.length - taken;
  }

  private newline(): void {
    this.out.push(`${this.finished()}\n`);
    this.line = "";
    this.cut = 0;
    this.returned = false;
  }

  private finished(): string {
    if (this.cut === 0) return this.line;
    this.clamped = true;
    return `${this.line}… [+${this.cut.toLocaleString("en")} characters]`;
  }
}

/** The largest count of UTF-16 units within `room` that does not split a surrogate pair. */
function wholeCharacters(text: string, room: number): number {
  const last = text.charCodeAt(room - 1);
  return room > 0 && last >= 0xd800 && last < 0xdc00 ? room - 1 : room;
}

/** Whether any line is longer than the limit: strides from newline to newline instead of looking at each line. */
function hasLongLine(text: string): boolean {
  for (let start = 0; start + lineLimit < text.length; ) {
    const newline = text.lastIndexOf("\n", start + lineLimit);
    if (newline < start) return true;
    start = newline + 1;
  }
  return false;
}
