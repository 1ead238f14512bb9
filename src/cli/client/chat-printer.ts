import type { Fid } from "../../ninep/client.ts";
import { MarkerFilter } from "./markers.ts";

/** Prints what has come to a chat since the last time, without its markers. */
export class ChatPrinter {
  readonly #filter = new MarkerFilter();
  #offset = 0;
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

  async #printNew(): Promise<void> {
    for (;;) {
      const piece = await this.chat.read(this.#offset);
      if (piece.length === 0) return;
      this.#offset += piece.length;
      process.stdout.write(this.#filter.pass(piece));
    }
  }
}
