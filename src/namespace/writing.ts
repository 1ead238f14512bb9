/** Files that carry out what is written to them, before the write is answered. */
import { Fault } from "../fault.ts";
import type { CloseReason, OpenFile, Peer, Request } from "../ninep/file.ts";
import type { Content } from "./files.ts";

/** Bytes of one control request, over all messages that it took. */
const maxRequest = 1 << 20;

/**
 * Whether more of the same request may follow this message. A request ends where the write ends, with or without a newline, but a
 * client cuts one long write into messages: at the iounit of its connection, or before that at its own buffer (the pages of a mount,
 * the 1024 bytes of plan9port's `9p write`). So a message without a final newline that is exactly so long is held back until the rest
 * arrives or the fid is clunked.
 */
export function mayContinue(data: Uint8Array, { iounit }: Peer): boolean {
  if (data.length === 0 || data.at(-1) === newline) return false;
  return data.length % 1024 === 0 || (iounit !== undefined && data.length >= iounit);
}

export const newline = 10;

/** UTF-8 to text; bytes that are none are refused rather than replaced. */
export function decode(bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Fault("invalid", "the text is not UTF-8", { cause });
  }
  if (text.includes("\0")) throw new Fault("invalid", "the text contains a NUL byte");
  return text;
}

/** The one newline that ends a line or a text belongs to neither. */
export function withoutNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

/** A control file of verbs: every line is a request. The first that fails fails the write, and those after it are not carried out. */
export function lines<T>(run: (target: T, line: string) => Promise<void>): Content<T> {
  return requests(async (target: T, text) => {
    const all = text.split("\n").filter((line) => line !== "");
    if (all.length === 0) throw new Fault("invalid", "empty command");
    for (const line of all) await run(target, line);
  });
}

/** A control file where all that one write brings is one request, which succeeds or fails as a whole. */
export function requests<T>(run: (target: T, text: string) => Promise<void>): Content<T> {
  return {
    look: () => ({ length: 0, print: () => 0 }),
    open: (site) =>
      new RequestWriter((text) => {
        site.alive();
        return run(site.target, withoutNewline(text));
      }),
  };
}

/** Takes writes at any offset: a shell that appends sends the length that it believes the file to have. */
export class RequestWriter implements OpenFile {
  #held: Uint8Array[] = [];
  #heldBytes = 0;

  /** `run` gets the text of one request as it was written. */
  constructor(private readonly run: (text: string) => Promise<void>) {}

  async write(_offset: number, data: Uint8Array, request: Request): Promise<number> {
    const { length } = data;
    this.#hold(data.slice());
    if (!mayContinue(data, request.peer)) await this.run(this.#release());
    return length;
  }

  async close(reason: CloseReason): Promise<void> {
    if (this.#heldBytes > 0 && reason === "clunk") await this.run(this.#release());
  }

  #hold(data: Uint8Array): void {
    if (this.#heldBytes + data.length > maxRequest) {
      this.#drop();
      throw new Fault("invalid", `a request of more than ${maxRequest} bytes`);
    }
    this.#held.push(data);
    this.#heldBytes += data.length;
  }

  #release(): string {
    const bytes = Buffer.concat(this.#held);
    this.#drop();
    return decode(bytes);
  }

  #drop(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }
}
