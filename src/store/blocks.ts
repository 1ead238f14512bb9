/** The text format of `chat`: blocks between marker lines `[[[TYPE key=value …]]]` and `[[[end]]]`. */

export const blockTypes = [
  "user",
  "assistant",
  "reasoning",
  "call",
  "tool",
  "info",
  "error",
  "retry",
] as const;
export type BlockType = (typeof blockTypes)[number];

export type Attrs = Record<string, string>;

export const endMarker = "[[[end]]]";

/** A value is quoted (as a JSON string) where a blank, a quote, a backslash, a bracket or a control character would end or split the word. */
function quoted(value: string): string {
  return value === "" || /[\s"'\\\]\u0000-\u001f\u007f]/.test(value) ? JSON.stringify(value) : value;
}

/** The opening line. Every block says when it began: `time` in UTC (RFC 3339) is added where `attrs` has none. */
export function openingLine(type: BlockType, attrs: Attrs): string {
  const all = { ...attrs, time: attrs.time ?? new Date().toISOString() };
  const words = Object.entries(all).map(([key, value]) => ` ${key}=${quoted(value)}`);
  return `[[[${type}${words.join("")}]]]\n`;
}

/**
 * The content of one block, piece by piece. A line that begins with `[[[` gets a blank in front, so what could still become one is
 * held back, and so is the first half of a surrogate pair, which is no character alone.
 */
export class Content {
  #lineStart = true;
  #held = "";

  /** Takes the next piece of text and returns what can be written. */
  push(text: string): string {
    const all = this.#held + text;
    const ready = all.slice(0, all.length - this.#undecided(all));
    this.#held = all.slice(ready.length);
    return this.#escape(ready);
  }

  /** What is left to write when the text is over: the rest, a newline where the last line has none, and the end marker. */
  end(): string {
    const rest = this.#escape(this.#held);
    this.#held = "";
    return `${rest}${this.#lineStart ? "" : "\n"}${endMarker}\n`;
  }

  /** Something else has been written, up to the end of a line. */
  interrupted(): void {
    this.#lineStart = true;
  }

  /** How many characters at the end must wait for the next piece. */
  #undecided(text: string): number {
    const last = text.charCodeAt(text.length - 1);
    if (last >= 0xd800 && last < 0xdc00) return 1;
    const brackets = /\[{1,2}$/.exec(text)?.[0].length ?? 0;
    const before = text.length - brackets;
    const atStart = before === 0 ? this.#lineStart : text[before - 1] === "\n";
    return atStart ? brackets : 0;
  }

  #escape(text: string): string {
    if (text === "") return "";
    const first = this.#lineStart && text.startsWith("[[[") ? " " : "";
    this.#lineStart = text.endsWith("\n");
    return first + text.replaceAll("\n[[[", "\n [[[");
  }
}

/** A whole block. */
export function renderBlock(type: BlockType, attrs: Attrs, text: string): string {
  const content = new Content();
  return openingLine(type, attrs) + content.push(text) + content.end();
}
