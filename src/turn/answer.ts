/** Writes one streamed answer into chat as it comes, and keeps what was shown for when the stream breaks. */
import type { BlockHandle, ChatLog } from "../store/chat.ts";

type Kind = "assistant" | "reasoning";

/** What chat holds of an answer. */
export interface Shown {
  text: string;
  reasoning: string;
}

export const nothingShown: Shown = { text: "", reasoning: "" };

/** One kind of text of an answer that may be streamed more than once: what an earlier, broken try has shown already is not shown again. */
class Strand {
  text = "";
  /** What earlier tries have shown, while it is still open whether this try repeats it. */
  #skip: string;

  constructor(shown: string) {
    this.#skip = shown;
  }

  /** Takes a delta and returns what of it is to be shown. */
  take(delta: string): string {
    this.text += delta;
    if (this.#skip === "") return delta;
    if (this.text.length < this.#skip.length && this.#skip.startsWith(this.text)) return "";
    // Either the old text is repeated whole and only the rest is new, or this is another answer and all of it is.
    const show = this.text.startsWith(this.#skip) ? this.text.slice(this.#skip.length) : this.text;
    this.#skip = "";
    return show;
  }
}

export class AnswerWriter {
  readonly #strands: Record<Kind, Strand>;
  #open?: { kind: Kind; block: BlockHandle };

  /**
   * @param onShow called whenever chat has grown
   * @param shown what earlier tries of the same request have put into chat
   */
  constructor(
    readonly chat: ChatLog,
    readonly onShow: () => void,
    shown: Shown = nothingShown,
  ) {
    this.#strands = { assistant: new Strand(shown.text), reasoning: new Strand(shown.reasoning) };
  }

  get text(): string {
    return this.#strands.assistant.text;
  }

  get reasoning(): string {
    return this.#strands.reasoning.text;
  }

  write(kind: Kind, delta: string): void {
    // What a provider would refuse in the next request must not get into the history.
    const show = this.#strands[kind].take(delta.replaceAll("\0", "\uFFFD"));
    if (show === "") return;
    if (this.#open?.kind !== kind) {
      this.close();
      this.#open = { kind, block: this.chat.open(kind, {}) };
    }
    this.#open.block.append(show);
    this.onShow();
  }

  close(): void {
    this.#open?.block.close();
    this.#open = undefined;
  }
}
