/**
 * `prompt`: what is written collects until the fid is clunked and then is one prompt. One line that begins with `/` is a verb instead
 * and is carried out at its write; `//`, or a blank before the slash, sends a text that begins with a slash. Verbs are not for tools.
 */
import { Fault } from "../fault.ts";
import type { CloseReason, OpenFile, Request } from "../ninep/file.ts";
import type { LiveAgent } from "../session/live.ts";
import type { Site } from "./context.ts";
import type { Content } from "./files.ts";
import { Spool } from "./spool.ts";
import { isNewline, mayContinue, newline, withoutNewline } from "./writing.ts";

/** Bytes of one prompt. */
const maxPrompt = 64 << 20;
const slash = 0x2f;

export const prompt: Content<LiveAgent> = {
  look: () => ({ length: 0, print: () => 0 }),
  open: (site) => new PromptWriter(site),
};

class PromptWriter implements OpenFile {
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #spool?: Spool;
  /** Set once a part was refused: what is left must not be taken for the whole prompt. */
  #refused = false;
  /** The last write was a verb, without its newline. */
  #unended = false;

  constructor(private readonly site: Site<LiveAgent>) {}

  /** Offsets do not matter: a shell that appends sends whatever it believes the length to be. */
  async write(_offset: number, data: Uint8Array, { peer }: Request): Promise<number> {
    const { length } = data;
    const unended = this.#unended;
    this.#unended = false;
    // See RequestWriter: a newline that comes by itself belongs to the verb before it.
    if (unended && isNewline(data)) return length;
    try {
      const verb = this.#spool || mayContinue(data, peer) ? undefined : verbLine(data);
      if (verb === undefined) this.#collect(data);
      else {
        this.#unended = data.at(-1) !== newline;
        await this.#command(verb);
      }
      return length;
    } catch (error) {
      this.#refused = true;
      this.#discard();
      throw error;
    }
  }

  async close(reason: CloseReason): Promise<void> {
    if (!this.#spool) return;
    try {
      if (reason === "clunk") await this.#submit(this.#spool.read());
    } finally {
      this.#discard();
    }
  }

  #collect(data: Uint8Array): void {
    if (this.#refused)
      throw new Fault("invalid", "an earlier part of this prompt was refused; open prompt again");
    try {
      this.#utf8.decode(data, { stream: true });
    } catch (cause) {
      throw new Fault("invalid", "the prompt is not UTF-8", { cause });
    }
    if (data.includes(0)) throw new Fault("invalid", "the prompt holds a NUL, which no model takes");
    this.#spool ??= new Spool(this.site.context.spoolDir);
    const { length } = this.#spool;
    if (length + data.length > maxPrompt)
      throw new Fault("invalid", `a prompt of more than ${maxPrompt} bytes`);
    this.#spool.write(length, data);
  }

  async #submit(bytes: Uint8Array): Promise<void> {
    this.site.alive();
    const agent = this.site.target;
    const verb = verbLine(bytes);
    if (verb !== undefined) return await this.#command(verb);
    const text = withoutNewline(promptText(bytes));
    if (text.trim() === "") throw new Fault("invalid", "empty prompt");
    await agent.submit(text.replace(/^[/ ]\//, "/"));
  }

  async #command(verb: string): Promise<void> {
    if (this.site.context.view.agent)
      throw new Fault("denied", "a tool's prompt is no verb; write // to send a text that begins with /");
    await this.site.target.slash(verb);
  }

  #discard(): void {
    this.#spool?.close();
    this.#spool = undefined;
  }
}

/** One line that begins with exactly one slash, without its newline; undefined for any other text. */
function verbLine(bytes: Uint8Array): string | undefined {
  if (bytes[0] !== slash || bytes[1] === slash) return undefined;
  const first = bytes.indexOf(newline);
  if (first >= 0 && first < bytes.length - 1) return undefined;
  return withoutNewline(promptText(bytes));
}

/** Parts may end anywhere in a character; only the whole shows whether its last one is complete. */
function promptText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Fault("invalid", "the prompt is not UTF-8: it ends within a character", { cause });
  }
}
