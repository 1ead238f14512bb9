/** Reads the blocks of a chat as it grows. The format is that of `store/blocks.ts`. */

export interface Block {
  type: string;
  /** An injected text belongs to the turn that runs; any other `user` block begins one. */
  injected: boolean;
  /** As it stands in the chat: lines that begin with `[[[` have a blank in front. */
  text: string;
}

/** May begin anywhere in a chat: what is left of a block there is passed over. */
export class BlockReader {
  readonly #utf8 = new TextDecoder();
  /** The last line, as far as it has come. */
  #line = "";
  #open?: { type: string; injected: boolean; lines: string[] };

  /** Returns the blocks that end in `bytes`. */
  push(bytes: Uint8Array): Block[] {
    const lines = (this.#line + this.#utf8.decode(bytes, { stream: true })).split("\n");
    this.#line = lines.pop()!;
    return lines.flatMap((line) => this.#next(line) ?? []);
  }

  #next(line: string): Block | undefined {
    if (!line.startsWith("[[[")) {
      this.#open?.lines.push(`${line}\n`);
      return undefined;
    }
    const ended = this.#open;
    this.#open = undefined;
    if (ended) return { type: ended.type, injected: ended.injected, text: ended.lines.join("") };
    const [, type = "", attrs = ""] = /^\[{3}(\w*)(.*)$/.exec(line)!;
    // The end of a block whose beginning lay before what was read.
    if (type !== "end") this.#open = { type, injected: /^ injected=yes /.test(attrs), lines: [] };
    return undefined;
  }
}

/** A block's text without the blanks that keep its lines from being markers. */
export function plain(text: string): string {
  return text.replace(/^ (?=\[\[\[)/gm, "");
}
