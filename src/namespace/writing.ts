/** Files that carry out what is written to them, before the write is answered. */
import { Fault } from "../fault.ts";
import type { CloseReason, OpenFile, Peer, Request } from "../ninep/file.ts";
import type { Context } from "./context.ts";
import type { Content } from "./files.ts";

/** Bytes of one control request, over all messages that it took. */
const maxRequest = 1 << 20;

/**
 * Whether more of the same request may follow this message. A request ends where the write ends, with or without a newline, but a
 * long write reaches the server in several messages: cut at the iounit of the connection, or before that at a buffer (the pages of a
 * mount, the 8192 bytes of a shell, the 1024 of plan9port's `9p write`). So a message without a final newline that is exactly so long,
 * or that ends within a character, is held back until the rest arrives or the fid is clunked.
 */
export function mayContinue(data: Uint8Array, { iounit }: Peer): boolean {
  if (data.length === 0 || data.at(-1) === newline) return false;
  return data.length % 1024 === 0 || (iounit !== undefined && data.length >= iounit) || cutsCharacter(data);
}

/** Whether the last character of a UTF-8 text lacks bytes. */
function cutsCharacter(data: Uint8Array): boolean {
  for (let have = 1; have <= Math.min(3, data.length); have++) {
    const byte = data[data.length - have]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf8 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > have;
  }
  return false;
}

export const newline = 10;

/** A message that is a newline and nothing else. */
export function isNewline(data: Uint8Array): boolean {
  return data.length === 1 && data[0] === newline;
}

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

/** The verb of a line. */
const firstWord = (line: string) => /^\s*(\S*)/.exec(line)![1]!;

/**
 * A control file of verbs: every line is one. `check` refuses what could never be carried out, before the first line is; the first line
 * that fails all the same fails the write, and those after it are not carried out. Of `forTools` are those that tools may write.
 */
export function verbs<T>(
  check: (target: T, line: string) => void,
  run: (target: T, line: string) => Promise<void>,
  forTools: readonly string[] = [],
): Content<T> {
  return requests(async (target: T, text, { view }) => {
    const lines = text.split("\n").filter((line) => line !== "");
    if (lines.length === 0) throw new Fault("invalid", "empty command");
    const refused = view.agent && lines.find((line) => !forTools.includes(firstWord(line)));
    if (refused !== undefined)
      throw new Fault("denied", `${firstWord(refused)}: a tool may write here only ${forTools.join(" ")}`);
    for (const line of lines) check(target, line);
    for (const line of lines) await run(target, line);
  });
}

/** A control file where all that one write brings is one request, which succeeds or fails as a whole. */
export function requests<T>(run: (target: T, text: string, context: Context) => Promise<void>): Content<T> {
  return {
    look: () => ({ length: 0, print: () => 0 }),
    open: (site) =>
      new RequestWriter((text) => {
        site.alive();
        return run(site.target, withoutNewline(text), site.context);
      }),
  };
}

/** Takes writes at any offset: a shell that appends sends the length that it believes the file to have. */
export class RequestWriter implements OpenFile {
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** The last request had no newline. */
  #unended = false;

  /** `run` gets the text of one request as it was written. */
  constructor(private readonly run: (text: string) => Promise<void>) {}

  async write(_offset: number, data: Uint8Array, request: Request): Promise<number> {
    const { length } = data;
    const unended = this.#unended;
    this.#unended = data.at(-1) !== newline;
    // dash writes the newline of a long line by itself: it belongs to the request that it follows, and is none.
    if (unended && isNewline(data) && this.#heldBytes === 0) return length;
    this.#hold(data.slice());
    if (!mayContinue(data, request.peer)) await this.finish();
    return length;
  }

  async close(reason: CloseReason): Promise<void> {
    if (reason === "clunk") await this.finish();
  }

  /** Whether something is held back that the close will carry out. */
  get waits(): boolean {
    return this.#heldBytes > 0;
  }

  /** Carries out what is held back: nothing more of it will come. */
  async finish(): Promise<void> {
    if (this.waits) await this.run(this.#release());
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
