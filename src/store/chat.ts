/** The chat of an agent: an append-only text of blocks of which one is open at a time. */
import { type Masker, Secrets } from "../config/secrets.ts";
import { type Fault, toFault } from "../fault.ts";
import { type Attrs, type BlockType, Content, openingLine, renderBlock } from "./blocks.ts";
import type { LogFile } from "./log-file.ts";
import type { TextLog } from "./text-log.ts";

/** Of content that the disk refuses, how many bytes wait for room; markers wait in any case, so that the blocks stay whole. */
const backlogLimit = 1024 * 1024;

/** The block that a turn begins with. Rendered ahead of being written, since the journal says first where it will stand. */
export function userBlock(text: string, attrs: Attrs = {}): Uint8Array {
  return Buffer.from(renderBlock("user", attrs, text));
}

export interface BlockHandle {
  /** One write(2), once it is the block's turn. */
  append(text: string): void;
  /** What is appended afterwards is dropped. */
  close(): void;
}

interface Block {
  opening: string;
  masker: Masker;
  content: Content;
  /** What was appended before it was the block's turn. */
  text: string;
  begun: boolean;
  closed: boolean;
}

/**
 * Blocks are written in the order they were opened. While one is open, the others are kept in memory and follow when it closes.
 *
 * No write throws where the disk refuses: `fault` says so, what was not written waits, and the next write tries again.
 *
 * Secrets are masked in everything but what is written with `raw`.
 */
export class ChatLog implements TextLog {
  /** The first one is open on disk. */
  readonly #blocks: Block[] = [];
  /** What the disk has refused so far. */
  readonly #backlog: Uint8Array[] = [];
  #backlogBytes = 0;
  /** Bytes of content for which even the backlog had no room. */
  #lost = 0;
  #fault?: Fault;

  constructor(
    readonly file: LogFile,
    private readonly secrets = new Secrets(),
  ) {}

  /** Bytes on disk. */
  get length(): number {
    return this.file.length;
  }

  read(offset: number, count: number): Uint8Array {
    return this.file.read(offset, count);
  }

  /** Why the last write failed, until one succeeds. */
  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** A whole block; one write(2) when it is its turn. */
  block(type: BlockType, attrs: Attrs, text: string): void {
    this.#enqueue(this.#block(type, attrs, this.secrets.mask(text), true));
  }

  /** A block that is written as its text comes. Until it is closed, nothing that was opened after it is seen. */
  open(type: BlockType, attrs: Attrs): BlockHandle {
    const block = this.#block(type, attrs, "", false);
    this.#enqueue(block);
    return { append: (text) => this.#append(block, text), close: () => this.#close(block) };
  }

  /** Closes all blocks, in order: whoever opened them is gone. */
  closeAll(): void {
    for (const block of [...this.#blocks]) this.#close(block);
  }

  /** Whole blocks that have been rendered already. Closes what is open. */
  raw(bytes: Uint8Array): void {
    this.closeAll();
    this.#write(bytes);
  }

  /** Tries again to write what the disk has refused. Throws the Fault where it still does. */
  flush(): void {
    this.#retry();
    if (this.#backlog.length > 0) throw this.#fault;
  }

  /** What has been written is on disk when this resolves. What the disk refuses to take at all is not waited for. */
  sync(): Promise<void> {
    this.#retry();
    return this.file.sync();
  }

  #block(type: BlockType, attrs: Attrs, text: string, closed: boolean): Block {
    const masked = Object.entries(attrs).map(([key, value]) => [key, this.secrets.mask(value)]);
    const opening = openingLine(type, Object.fromEntries(masked));
    return { opening, masker: this.secrets.stream(), content: new Content(), text, begun: false, closed };
  }

  #enqueue(block: Block): void {
    this.#blocks.push(block);
    if (this.#blocks.length === 1) this.#advance();
  }

  #append(block: Block, text: string): void {
    if (!block.closed) this.#add(block, block.masker.push(text));
  }

  #add(block: Block, text: string): void {
    if (block.begun) this.#content(block, text);
    else block.text += text;
  }

  #close(block: Block): void {
    if (block.closed) return;
    this.#add(block, block.masker.end());
    block.closed = true;
    if (!block.begun) return;
    this.#write(Buffer.from(block.content.end()));
    this.#blocks.shift();
    this.#advance();
  }

  /** Begins the blocks whose turn it is: all that are closed already, and one more. */
  #advance(): void {
    for (let block = this.#blocks[0]; block; block = this.#blocks[0]) {
      this.#begin(block);
      if (!block.closed) return;
      this.#blocks.shift();
    }
  }

  #begin(block: Block): void {
    const { opening, content, text, closed } = block;
    block.begun = true;
    block.text = "";
    if (this.#backlog.length === 0) {
      this.#write(Buffer.from(opening + content.push(text) + (closed ? content.end() : "")));
      return;
    }
    this.#write(Buffer.from(opening));
    this.#content(block, text);
    if (closed) this.#write(Buffer.from(content.end()));
  }

  #content(block: Block, text: string): void {
    const bytes = Buffer.from(block.content.push(text));
    if (bytes.length === 0) return;
    this.#retry();
    if (this.#backlog.length > 0 && this.#backlogBytes + bytes.length > backlogLimit) {
      this.#lost += bytes.length;
      block.content.interrupted();
    } else this.#write(bytes);
  }

  #write(bytes: Uint8Array): void {
    this.#retry();
    if (this.#lost > 0) {
      this.#put(Buffer.from(`\n[${this.#lost} bytes were lost here: the disk did not take them]\n`));
      this.#lost = 0;
    }
    this.#put(bytes);
  }

  /** To the disk, or behind what already waits for it. */
  #put(bytes: Uint8Array): void {
    const rest = this.#backlog.length > 0 ? bytes : this.#tryWrite(bytes);
    if (rest.length === 0) return;
    this.#backlog.push(rest);
    this.#backlogBytes += rest.length;
  }

  #retry(): void {
    for (let first = this.#backlog[0]; first; first = this.#backlog[0]) {
      const rest = this.#tryWrite(first);
      this.#backlogBytes += rest.length - first.length;
      if (rest.length > 0) {
        this.#backlog[0] = rest;
        return;
      }
      this.#backlog.shift();
    }
  }

  /** Returns what the disk did not take. */
  #tryWrite(bytes: Uint8Array): Uint8Array {
    const before = this.file.length;
    try {
      this.file.write(bytes);
      this.#fault = undefined;
    } catch (error) {
      this.#fault = toFault(error);
    }
    return bytes.subarray(this.file.length - before);
  }
}
