/**
 * The notation of `new`, `cfg`, `tools` and `env`: words separated by blanks or newlines, with quotes.
 *
 * `'…'` keeps everything as it is; in `"…"` a backslash makes `\n`, `\t` and otherwise the character after it; outside of quotes it
 * takes the character after it literally. Quoted and bare parts join into one word, as in a shell. A `#` where a word would begin
 * starts a comment that runs to the end of the line, so that what a template file reads as can be edited and written back.
 */
import { Fault } from "../fault.ts";
import type { Keys } from "../session/live.ts";

const blank = /[ \t\r\n]/;
const keyName = /^[A-Za-z][\w.-]*$/;
const variableName = /^[A-Za-z_]\w*$/;

class Scanner {
  at = 0;

  constructor(readonly text: string) {}

  get done(): boolean {
    return this.at >= this.text.length;
  }

  get next(): string {
    return this.text.charAt(this.at);
  }

  /** Moves to the next word; false when there is none. */
  seek(): boolean {
    while (!this.done) {
      if (this.next === "#") this.restOfLine();
      else if (blank.test(this.next)) this.at++;
      else return true;
    }
    return false;
  }

  /** Up to the newline, which is not taken. */
  restOfLine(): string {
    const end = this.text.indexOf("\n", this.at);
    const rest = this.text.slice(this.at, end < 0 ? undefined : end);
    this.at += rest.length;
    return rest;
  }

  word(): string {
    let word = "";
    while (!this.done && !blank.test(this.next)) {
      if (this.next === '"' || this.next === "'") word += this.quoted();
      else if (this.next === "\\") word += this.escaped();
      else word += this.text[this.at++];
    }
    return word;
  }

  quoted(): string {
    const start = this.at;
    const quote = this.text[this.at++];
    let inside = "";
    while (!this.done && this.next !== quote) {
      if (quote === '"' && this.next === "\\") inside += this.escaped({ n: "\n", t: "\t" });
      else inside += this.text[this.at++];
    }
    if (this.done) throw new Fault("invalid", `no closing quote for ${this.text.slice(start, start + 20)}`);
    this.at++;
    return inside;
  }

  private escaped(named: Record<string, string> = {}): string {
    const char = this.text.charAt(this.at + 1);
    this.at += 2;
    return char === "\n" ? "" : (named[char] ?? char);
  }
}

/** The words of a text. */
export function parseWords(text: string): string[] {
  const scanner = new Scanner(text);
  const words: string[] = [];
  while (scanner.seek()) words.push(scanner.word());
  return words;
}

/** `key=value` words. A key that comes twice has its later value. Throws a Fault at a word that is none. */
export function parseKeys(text: string): Keys {
  const keys: Keys = new Map();
  for (const word of parseWords(text)) {
    const equals = word.indexOf("=");
    const key = word.slice(0, Math.max(equals, 0));
    if (!keyName.test(key))
      throw new Fault("invalid", `"${word}" is not key=value; a value with blanks needs quotes: key="a b"`);
    keys.set(key, word.slice(equals + 1));
  }
  return keys;
}

/**
 * `KEY=VALUE` lines as `env(1)` prints them: the value is the rest of the line as it is, unless it begins with a quote, which then must
 * end the line. Empty lines and lines that begin with `#` say nothing.
 */
export function parseEnv(text: string): Keys {
  const scanner = new Scanner(text);
  const keys: Keys = new Map();
  while (scanner.seek()) {
    const start = scanner.at;
    const equals = text.indexOf("=", start);
    const line = scanner.restOfLine();
    const key = text.slice(start, Math.max(equals, start));
    if (!variableName.test(key))
      throw new Fault("invalid", `"${line}" is not KEY=VALUE; KEY is letters, digits and _`);
    scanner.at = equals + 1;
    keys.set(key, variableValue(scanner));
  }
  return keys;
}

function variableValue(scanner: Scanner): string {
  if (scanner.next !== '"' && scanner.next !== "'") return scanner.restOfLine();
  const value = scanner.quoted();
  const rest = scanner.restOfLine();
  if (rest.trim() !== "") throw new Fault("invalid", `"${rest}" follows a closing quote`);
  return value;
}
