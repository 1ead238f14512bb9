/**
 * Places in a text as people count them (lines and columns from 1, a column for each character one sees, a tab being one) and as the
 * protocol does (from 0, UTF-16 code units).
 */
import type { Position } from "./protocol.ts";

export interface Place {
  line: number;
  column: number;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** Of these every character is one code unit. */
const plain = /^[\t\x20-\x7e]*$/;

export class Lines {
  private readonly lines: string[];

  constructor(readonly text: string) {
    this.lines = text.split(/\r\n|\n|\r/);
  }

  /** Without its end; "" where there is no such line. */
  line(number: number): string {
    return this.lines[number - 1] ?? "";
  }

  /** @throws Error that says how many lines or characters there are */
  toProtocol({ line, column }: Place): Position {
    this.mustHave(line);
    const text = this.line(line);
    const offsets = offsetsOf(text);
    if (column > offsets.length)
      throw new Error(
        `line ${line} has ${offsets.length - 1} characters; column ${column} is beyond its end`,
      );
    return { line: line - 1, character: offsets[column - 1]! };
  }

  fromProtocol({ line, character }: Position): Place {
    const text = this.line(line + 1);
    const before = text.slice(0, character);
    const column = plain.test(before) ? before.length : [...graphemes.segment(before)].length;
    return { line: line + 1, column: column + 1 };
  }

  /** Where a name stands in a line: as a whole word, else anywhere. @throws Error that shows the line */
  find(line: number, name: string): Position {
    this.mustHave(line);
    const text = this.line(line);
    const at = wholeWord(text, name) ?? text.indexOf(name);
    if (at < 0 || name === "") throw new Error(`"${name}" is not in line ${line}, which is: ${text.trim()}`);
    return { line: line - 1, character: at };
  }

  private mustHave(line: number): void {
    // A final newline begins a line that nobody counts.
    const count = this.lines.length - (this.lines.at(-1) === "" && this.lines.length > 1 ? 1 : 0);
    if (line > count) throw new Error(`the file has only ${count} lines; there is no line ${line}`);
  }
}

/** Where each character of a line begins, and where the last one ends. */
function offsetsOf(line: string): number[] {
  if (plain.test(line)) return Array.from({ length: line.length + 1 }, (_, i) => i);
  return [...[...graphemes.segment(line)].map(({ index }) => index), line.length];
}

function wholeWord(text: string, name: string): number | undefined {
  const word = /[\p{L}\p{N}_$]/u;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const before = text.slice(0, at).match(/.$/u)?.[0] ?? "";
    const after = text.slice(at + name.length).match(/^./u)?.[0] ?? "";
    if (!word.test(before) && !word.test(after)) return at;
    if (name === "") return undefined;
  }
  return undefined;
}
