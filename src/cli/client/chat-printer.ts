import type { Fid } from "../../ninep/client.ts";
import { writeOut } from "../stdio.ts";
import { MarkerFilter } from "./markers.ts";

const newline = 0x0a;

/** Prints what has come to a chat since the last time, without its markers. */
export class ChatPrinter {
  readonly #filter = new MarkerFilter();
  #offset = 0;
  #lineOpen = false;
  #printing = Promise.resolve();

  constructor(private readonly chat: Fid) {}

  /** Leaves out what is there already. */
  async skip(): Promise<void> {
    this.#offset = Number((await this.chat.stat()).length);
  }

  /** Calls that overlap print one after the other. */
  print(): Promise<void> {
    this.#printing = this.#printing.then(() => this.#printNew());
    return this.#printing;
  }

  /** Prints a line of its own among the chat. */
  note(text: string): Promise<void> {
    this.#printing = this.#printing.then(async () => {
      await writeOut(`${this.#lineOpen ? "\n" : ""}${text}\n`);
      this.#lineOpen = false;
    });
    return this.#printing;
  }

  async #printNew(): Promise<void> {
    for (;;) {
      const piece = await this.chat.read(this.#offset);
      if (piece.length === 0) return;
      this.#offset += piece.length;
      const text = this.#filter.pass(piece);
      await writeOut(text);
      if (text.length > 0) this.#lineOpen = text.at(-1) !== newline;
    }
  }
}
