/** Puts blocks of text below one another as Markdown: with the marks of the lists and quotes that they stand in, and the right gaps. */

/** Nobody nests deeper on purpose; the marks of a line would be longer than its text. */
const deepest = 30;
/** Characters after which a line of running text is broken: a tool's result shows lines of up to 2,000. */
const lineLimit = 1500;

interface Frame {
  kind: "item" | "quote" | "definition";
  /** Before its first line, and before all others. */
  first: string;
  rest: string;
  begun: boolean;
}

/** Between two blocks: no more than a line end, or an empty line. */
export type Gap = "line" | "blank";

export class Blocks {
  readonly #lines: string[] = [];
  readonly #frames: Frame[] = [];
  #gap: Gap = "line";

  /** At least that gap before what comes next. Behind the mark of a list item or quote there is none. */
  want(gap: Gap): void {
    if (gap === "blank" && this.#frames.at(-1)?.begun !== false) this.#gap = gap;
  }

  /** A list item stands directly below the one before, whatever that ended with. */
  join(): void {
    this.#gap = "line";
  }

  open(kind: Frame["kind"], first: string, rest: string): void {
    if (this.#frames.length < deepest) this.#frames.push({ kind, first, rest, begun: false });
  }

  /** Closes the innermost of that kind, and what is open inside of it. */
  close(kind: Frame["kind"]): void {
    const at = this.#frames.findLastIndex((frame) => frame.kind === kind);
    if (at >= 0) this.#frames.length = at;
  }

  depth(kind: Frame["kind"]): number {
    return this.#frames.filter((frame) => frame.kind === kind).length;
  }

  /** Running text; a newline in it is kept. */
  text(text: string): void {
    this.add(text.split("\n").flatMap(broken));
  }

  /** Lines as they are. */
  add(lines: readonly string[]): void {
    if (this.#lines.length > 0 && this.#gap === "blank")
      this.#lines.push(
        this.#frames
          .map((frame) => (frame.begun ? frame.rest : ""))
          .join("")
          .trimEnd(),
      );
    this.#gap = "line";
    for (const line of lines) {
      const marks = this.#frames.map((frame) => (frame.begun ? frame.rest : frame.first)).join("");
      for (const frame of this.#frames) frame.begun = true;
      this.#lines.push(`${marks}${line}`.trimEnd());
    }
  }

  toString(): string {
    return this.#lines.join("\n");
  }
}

/** At blanks. */
function broken(line: string): string[] {
  const parts: string[] = [];
  let rest = line;
  while (rest.length > lineLimit) {
    const blank = rest.lastIndexOf(" ", lineLimit);
    const end = blank > lineLimit / 2 ? blank : lineLimit;
    parts.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...parts, rest];
}
