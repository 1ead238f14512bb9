/** Reading directories, `read(5)`: whole entries only, from offset 0 or from where the last read ended. */
import { encodeDir } from "../codec.ts";
import { phrase } from "../errors.ts";
import type { Maybe, OpenFile, Stat } from "../file.ts";
import { andThen } from "../maybe.ts";
import { IOHDRSZ } from "../messages.ts";
import { ProtocolError, Writer } from "../wire.ts";
import type { Call } from "./call.ts";

const empty = Buffer.alloc(0);

export class DirReader {
  private entries: Stat[] = [];
  private next = 0;
  private offset = 0;

  constructor(private readonly open: OpenFile) {}

  read(offset: number, count: number, msize: number, call: Call): Maybe<Uint8Array> {
    if (offset !== 0) {
      if (offset !== this.offset) throw new ProtocolError("bad offset in directory read");
      return this.cut(count, msize);
    }
    // The listing is taken once per rewind, so that entries neither shift nor repeat while it is read.
    return andThen(this.open.entries?.(call) ?? [], (entries) => {
      this.entries = entries;
      this.next = this.offset = 0;
      return this.cut(count, msize);
    });
  }

  private cut(count: number, msize: number): Uint8Array {
    if (this.next >= this.entries.length) return empty;
    const writer = new Writer(Buffer.allocUnsafe(Math.min(count, 4096)));
    while (this.next < this.entries.length) {
      const before = writer.end;
      encodeDir(writer, this.entries[this.next]!);
      if (writer.end > count) {
        // Nothing at all means "ask again with more room", which would be the end of the listing if there never is more.
        if (before === 0 && writer.end > msize - IOHDRSZ) {
          throw new ProtocolError(
            phrase.io,
            `the entry ${this.entries[this.next]!.name} does not fit the msize of ${msize}`,
          );
        }
        writer.end = before;
        break;
      }
      this.next++;
    }
    this.offset += writer.end;
    return writer.bytes.subarray(0, writer.end);
  }
}
