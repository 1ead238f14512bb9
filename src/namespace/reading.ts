/** Files that are read: generated texts, logs that grow. */
import { crc32 } from "node:zlib";
import { type Maybe, type OpenFile, ORDWR, OWRITE } from "../ninep/file.ts";
import { andThen } from "../ninep/maybe.ts";
import type { TextLog } from "../store/text-log.ts";
import type { Context } from "./context.ts";
import type { Content } from "./files.ts";

const encoder = new TextEncoder();

/** Ends a text with a newline, unless it is empty or has one. */
export function ended(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

/**
 * How a content is made. `reading` is false where only its length is wanted: a look at a folder must not be a reason to ask providers.
 */
type Make<T, Made> = (target: T, context: Context, reading: boolean) => Maybe<Made>;

/** A generated text; a final newline is added where it lacks one. */
export function text<T>(make: Make<T, string>): Content<T> {
  return bytes((...from) => andThen(make(...from), (made) => encoder.encode(ended(made))));
}

/**
 * A generated content, given to the byte as it is. It is made at the first read and served from that snapshot for as long as the file
 * is open, so that what one reader sees never comes from different versions, in whatever order it reads (`tail` begins at the end).
 */
export function bytes<T>(make: Make<T, Uint8Array>): Content<T> {
  return {
    look: ({ target, context }) =>
      andThen(make(target, context, false), (made) => ({ length: made.length, print: () => crc32(made) })),
    open: ({ target, context }) => new Snapshot(() => make(target, context, true)),
  };
}

class Snapshot implements OpenFile {
  #made?: Maybe<Uint8Array>;

  constructor(private readonly make: () => Maybe<Uint8Array>) {}

  read(offset: number, count: number): Maybe<Uint8Array> {
    this.#made ??= this.#make();
    return andThen(this.#made, (made) => made.subarray(offset, offset + count));
  }

  /** What failed may be asked for again. */
  #make(): Maybe<Uint8Array> {
    const made = this.make();
    if (made instanceof Promise)
      made.catch(() => {
        this.#made = undefined;
      });
    return made;
  }
}

/** A log, read as it is at that moment; its end is the end of file. */
export function live<T>(log: (target: T) => TextLog): Content<T> {
  return {
    look: (site) => {
      const { length } = log(site.target);
      return { length, print: () => length >>> 0 };
    },
    open: (site) => new LiveLog(() => log(site.target)),
  };
}

/**
 * Offsets count from the first byte ever. Where the log has dropped some bytes, a reader that asks for them is moved on to what is
 * kept, once, and goes on from there.
 */
class LiveLog implements OpenFile {
  /** Where a reader was moved on, and how far it has been moved by then. */
  #moves: { at: number; by: number }[] = [];

  constructor(private readonly log: () => TextLog) {}

  read(offset: number, count: number): Uint8Array {
    const log = this.log();
    if (offset === 0) this.#moves = [];
    const by = this.#moves.findLast(({ at }) => at <= offset)?.by ?? 0;
    const place = log.kept?.(offset + by) ?? offset + by;
    if (place > offset + by) this.#moves.push({ at: offset, by: place - offset });
    return log.read(place, count);
  }
}

/** One file that reads as the first and takes writes as the second. */
export function both<T>(reader: Content<T>, writer: Content<T>): Content<T> {
  return {
    look: (site) => reader.look(site),
    open: (site, mode, request) => {
      const access = mode & 3;
      if (access !== OWRITE && access !== ORDWR) return reader.open(site, mode, request);
      const writes = writer.open(site, mode, request);
      if (access === OWRITE) return writes;
      const reads = reader.open(site, mode, request);
      return {
        read: reads.read?.bind(reads),
        write: writes.write?.bind(writes),
        close: writes.close?.bind(writes),
      };
    },
    resize: writer.resize?.bind(writer),
  };
}
