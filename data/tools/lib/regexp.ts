/**
 * A regular expression from a model, applied to lines of any length without getting lost. JavaScript's engine goes back and tries again
 * where a pattern is ambiguous: `(a+)+$` takes time that doubles with each character (the engine gives up after half a second and says
 * that nothing matches), `a.*b.*c` the third power of a line's length, without an end.
 */

/** Milliseconds of processor time that one attempt may take: a good pattern takes microseconds. */
const mostTime = 300;
/** Characters that are looked at together, by how many repetitions without an end the pattern has; one with none may take a line whole. */
const windows = [Number.POSITIVE_INFINITY, 4000, 1000, 400];

export class LineMatcher {
  /** Whether a line was so long that it was searched in overlapping parts: a match that is longer than half a part may be missed. */
  cut = false;
  readonly #pattern: RegExp;
  readonly #window: number;
  /** Whether it has `^` and `$`, which must not match where a part ends and the line goes on. */
  readonly #anchors: { start: boolean; end: boolean };

  /** @throws if it is no regular expression */
  constructor(source: string, ignoreCase: boolean) {
    // As grep -P and others write it; JavaScript has it as a flag only.
    const bare = source.replace(/^\(\?i\)/, "");
    try {
      this.#pattern = new RegExp(bare, ignoreCase || bare !== source ? "i" : "");
    } catch (error) {
      throw new Error(`"pattern" is no regular expression: ${(error as Error).message}`);
    }
    const outline = bare.replace(/\\.|\[(?:\\.|[^\]\\])*\]/gs, "x");
    this.#anchors = { start: outline.includes("^"), end: outline.includes("$") };
    const repetitions = outline.match(/[*+]|\{\d+,\}/g) ?? [];
    this.#window = windows[Math.min(repetitions.length, windows.length - 1)]!;
  }

  /**
   * Where the first match begins; undefined if there is none.
   * @throws if the pattern takes too long
   */
  find(line: string): number | undefined {
    if (line.length <= this.#window) return this.#exec(line)?.index;
    this.cut = true;
    for (let start = 0; start < line.length; start += this.#window / 2) {
      const end = Math.min(start + this.#window, line.length);
      const match = this.#exec(line.slice(start, end));
      if (!match) continue;
      const atStart = start > 0 && match.index === 0 && this.#anchors.start;
      const atEnd = end < line.length && start + match.index + match[0].length === end && this.#anchors.end;
      if (!atStart && !atEnd) return start + match.index;
    }
    return undefined;
  }

  #exec(text: string): RegExpExecArray | null {
    const begun = performance.now();
    const match = this.#pattern.exec(text);
    if (performance.now() - begun > mostTime) this.#check(text);
    return match;
  }

  /** Time may have passed because the machine has other things to do. */
  #check(text: string): void {
    const before = process.cpuUsage();
    this.#pattern.test(text);
    if (process.cpuUsage(before).user / 1000 < mostTime) return;
    throw new Error(
      '"pattern" takes too long: it can match the same text in too many ways. Leave out nested repetitions such as (a+)+, and .* where it is not needed',
    );
  }
}
