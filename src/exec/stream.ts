/** One stream of a program's output: read, kept whole on disk, cleaned, cut to head and tail. */
import { closeSync } from "node:fs";
import type { ReadableStreamDefaultReader } from "node:stream/web";
import { Cleaner } from "./clean.ts";
import { Excerpt } from "./excerpt.ts";
import { Spill } from "./spill.ts";

/** Bytes at the start of an output that show whether it is binary. */
const binaryProbe = 8192;
/** Characters that no text needs: controls but those of lines and terminals, and what was no UTF-8. */
const unprintable = /[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]/g;
/** So many of them are in no case too many: a short text with a few is worth more than word of where it is. */
const allowance = 6;
/** Bytes after which others get their turn: a program that floods its pipe always has more to read at once. */
const turn = 128 * 1024;

/** Changes a text that comes in pieces. It may keep back what it cannot decide about yet. */
export interface TextFilter {
  push(text: string): string;
  end(): string;
}

interface StreamOptions {
  /** Where the whole is kept, up to `cap` bytes. */
  path: string;
  cap: number;
  /** Bytes that the text of the result may hold. */
  limit: number;
  onText: (text: string) => void;
  filter?: TextFilter;
}

export class OutputStream {
  /** Resolves at the end of file, or after `stop`. */
  readonly done: Promise<void>;
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly decoder = new TextDecoder();
  private readonly cleaner = new Cleaner();
  private readonly excerpt: Excerpt;
  private readonly spill: Spill;
  private binary = false;
  private hasNul = false;
  /** Unprintable characters so far. */
  private odd = 0;

  /** `fd` is the reading end of a pipe and is closed here. */
  constructor(
    fd: number,
    private readonly options: StreamOptions,
  ) {
    this.excerpt = new Excerpt(options.limit);
    this.spill = new Spill(options.path, options.cap);
    this.reader = Bun.file(fd).stream().getReader();
    this.done = this.pump().finally(() => closeSync(fd));
  }

  /** Bytes read. */
  get bytes(): number {
    return this.spill.bytes;
  }

  /** Bytes that `text` would like to have. */
  get wanted(): number {
    return this.binary ? 0 : this.excerpt.bytes;
  }

  /** Ends the reading although somebody still holds the other end. */
  stop(): void {
    this.reader.cancel().catch(() => {});
  }

  /** What the result shows, within `share` bytes and a line; `path` is set where that is not all. Once `done` has resolved. */
  async finish(share: number): Promise<{ text: string; path?: string }> {
    const cut = this.excerpt.bytes > share;
    if (!this.binary && !cut && !this.cleaner.clamped) {
      await this.spill.discard();
      return { text: this.excerpt.render(share, () => "") };
    }
    const path = (await this.spill.keep()) ? this.spill.path : undefined;
    const shortfall = this.spill.shortfall();
    const place = path && (shortfall ? `${path} (${shortfall})` : path);
    const lost = `lost: ${this.spill.problem}`;
    if (this.binary) {
      return {
        text: `[binary output, ${count(this.bytes)} bytes, ${place ? `saved to ${place}` : lost}]`,
        path,
      };
    }
    const whole = `the whole output is ${place ? `in ${place}` : lost}`;
    const text = this.excerpt.render(share, (n) => `[… ${count(n)} bytes left out here; ${whole}]`);
    if (cut) return { text, path };
    return { text: `${text}${text.endsWith("\n") ? "" : "\n"}[long lines are cut; ${whole}]`, path };
  }

  private async pump(): Promise<void> {
    for (let unyielded = 0; ; ) {
      const { value, done } = await this.reader.read();
      if (done) break;
      const wait = this.take(value);
      if (wait) await wait;
      unyielded += value.length;
      if (unyielded < turn) continue;
      unyielded = 0;
      await new Promise(setImmediate);
    }
    this.clean(this.cleaner.push(this.decoder.decode()) + this.cleaner.end());
    this.show(this.options.filter?.end() ?? "");
  }

  private take(chunk: Uint8Array): Promise<void> | undefined {
    if (!this.binary && this.bytes < binaryProbe)
      this.binary = this.looksBinary(chunk.subarray(0, binaryProbe - this.bytes));
    const wait = this.spill.write(chunk);
    if (!this.binary) this.clean(this.cleaner.push(this.decoder.decode(chunk, { stream: true })));
    return wait;
  }

  /** NULs alone do not make it so: they end the names of `find -print0` and the variables of `/proc/PID/environ`. */
  private looksBinary(chunk: Uint8Array): boolean {
    this.hasNul ||= chunk.includes(0);
    this.odd += new TextDecoder().decode(chunk).match(unprintable)?.length ?? 0;
    return this.hasNul && this.odd > allowance + (this.bytes + chunk.length) / 4;
  }

  private clean(text: string): void {
    const { filter } = this.options;
    this.show(filter ? filter.push(text) : text);
  }

  private show(text: string): void {
    if (!text || this.binary) return;
    this.excerpt.add(text);
    this.options.onText(text);
  }
}

function count(n: number): string {
  return n.toLocaleString("en");
}
