/** A fid, `intro(5)`: what a client's number stands for on one connection. */
import { phrase } from "../errors.ts";
import type { File, OpenFile, Peer } from "../file.ts";
import { NOFID } from "../messages.ts";
import { ProtocolError } from "../wire.ts";
import type { Call } from "./call.ts";
import type { DirReader } from "./dirread.ts";

export class Fid {
  /** Undefined until the Tattach or Twalk that makes the fid is done. */
  file?: File;
  /** The names walked, for messages. Renaming a file does not change it. */
  path = "";
  open?: OpenFile;
  /** A Topen or Tcreate is under way. */
  opening = false;
  /** Of Topen: kind of access and flags. */
  mode = 0;
  removeOnClose = false;
  /** qid.path of a file that only this fid may have open. */
  exclusive?: number;
  /** Of an open directory. */
  dir?: DirReader;
  /** Work that has not been answered. */
  pending?: Set<Call>;
  /** Settles with the last write so far: the next one starts after it. */
  lastWrite?: Promise<unknown>;
  /** The end of the fid waits here until `pending` is empty. */
  idle?: () => void;

  constructor(
    readonly number: number,
    public peer: Peer,
  ) {}
}

/** The fids of one connection. */
export class FidTable {
  private readonly fids = new Map<number, Fid>();

  constructor(private readonly limit: number) {}

  get size(): number {
    return this.fids.size;
  }

  /** The fid that a request works on. */
  get(number: number, call: Call): Fid & { file: File } {
    const fid = this.fids.get(number);
    if (!fid?.file) throw new ProtocolError("fid unknown or out of range");
    call.fid = fid;
    call.path = fid.path;
    call.peer = fid.peer;
    return fid as Fid & { file: File };
  }

  /** A new fid, which becomes known when the request succeeds and vanishes when it fails. */
  reserve(number: number, call: Call): Fid {
    if (number === NOFID || this.fids.has(number)) throw new ProtocolError("fid already in use");
    if (this.fids.size >= this.limit) {
      throw new ProtocolError(phrase.again, `${this.limit} fids are in use, clunk some`);
    }
    const fid = new Fid(number, call.peer);
    this.fids.set(number, fid);
    call.reserved = fid;
    return fid;
  }

  delete(fid: Fid): void {
    if (this.fids.get(fid.number) === fid) this.fids.delete(fid.number);
  }

  /** Empties the table and returns what was in it. */
  clear(): Fid[] {
    const all = [...this.fids.values()];
    this.fids.clear();
    return all;
  }
}
