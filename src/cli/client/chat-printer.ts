import type { Fid } from "../../ninep/client.ts";
import { MarkerFilter } from "./markers.ts";
import { Visible } from "./visible.ts";

const newline = 0x0a;

/** Shows on a terminal what has come to a chat since the last time, without its markers and in whole lines. */
export class ChatPrinter {
  readonly #filter: MarkerFilter;
  readonly #visible = new Visible();
  #offset = 0;
  #rest: Uint8Array = new Uint8Array();
  #own = 0;

  constructor(
    private readonly chat: Fid,
    private readonly show: (text: Uint8Array) => void,
    style?: (type: string) => string,
  ) {
    this.#filter = new MarkerFilter(style, (type) => type === "user" && this.#own-- > 0);
  }

  /** Leaves out what is there already. */
  async skip(): Promise<void> {
    this.#offset = Number((await this.chat.stat()).length);
  }

  /** Leaves out one of the prompts that come: who has typed it sees it already. Negative: does not. */
  expectOwn(count: 1 | -1): void {
    this.#own = Math.max(this.#own, 0) + count;
  }

  async print(): Promise<void> {
    for (;;) {
      const piece = await this.chat.read(this.#offset);
      if (piece.length === 0) return;
      this.#offset += piece.length;
      const text = Buffer.concat([this.#rest, this.#filter.pass(this.#visible.pass(piece))]);
      const end = text.lastIndexOf(newline) + 1;
      this.#rest = text.subarray(end);
      if (end > 0) this.show(text.subarray(0, end));
    }
  }
}
