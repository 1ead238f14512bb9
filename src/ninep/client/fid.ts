/** A file of the server as a client holds it. */
import { decodeDirs } from "../codec.ts";
import { NineError, phrase } from "../errors.ts";
import { DMDIR, type StatChange } from "../file.ts";
import * as m from "../messages.ts";
import type { Pool } from "./pool.ts";
import type { Rpc } from "./rpc.ts";

/** What all fids of a connection share. */
export interface Session {
  readonly rpc: Rpc;
  readonly fids: Pool;
  readonly msize: number;
}

/**
 * Every method is one request (`walk` one for 16 names) and rejects with the server's error. A signal cancels the request: it rejects
 * with "Interrupted system call" unless the answer came first.
 */
export class Fid {
  /** Most bytes in one `read` or `write`. */
  iounit: number;

  constructor(
    private readonly session: Session,
    readonly number: number,
    public qid: m.WireQid,
  ) {
    this.iounit = session.msize - m.IOHDRSZ;
  }

  /** A new fid for what the names lead to from here. None: a second fid for the same file. */
  async walk(names: string[], signal?: AbortSignal): Promise<Fid> {
    const number = this.session.fids.take();
    let from: Fid = this;
    let at = 0;
    try {
      do {
        const wname = names.slice(at, at + m.MAXWELEM);
        const wqid = await this.step(from, number, wname, signal);
        from = new Fid(this.session, number, wqid.at(-1) ?? from.qid);
        at += wname.length;
      } while (at < names.length);
      return from;
    } catch (error) {
      if (from === this) this.session.fids.give(number);
      else await from.clunk().catch(() => {});
      throw error;
    }
  }

  private async step(from: Fid, newfid: number, wname: string[], signal?: AbortSignal): Promise<m.WireQid[]> {
    const { wqid } = await this.session.rpc.call(m.Twalk, { fid: from.number, newfid, wname }, signal);
    if (wqid.length === wname.length) return wqid;
    // The reply to a walk that fails on its way does not say why; asking for the failing name alone does.
    const last = await from.walk(wname.slice(0, wqid.length), signal);
    try {
      const found = await last.walk([wname[wqid.length]!], signal);
      await found.clunk();
    } finally {
      await last.clunk();
    }
    throw new NineError(phrase.again, `${wname.join("/")} changed while it was walked to`);
  }

  /** `mode` as in `open(5)`: OREAD, OWRITE, ORDWR, and OTRUNC, ORCLOSE. */
  async open(mode: number, signal?: AbortSignal): Promise<this> {
    return this.opened(await this.session.rpc.call(m.Topen, { fid: this.number, mode }, signal));
  }

  /** Makes a file in this directory; the fid then is the new file, open. */
  async create(name: string, perm: number, mode: number, signal?: AbortSignal): Promise<this> {
    return this.opened(
      await this.session.rpc.call(m.Tcreate, { fid: this.number, name, perm, mode }, signal),
    );
  }

  private opened(reply: { qid: m.WireQid; iounit: number }): this {
    this.qid = reply.qid;
    if (reply.iounit > 0) this.iounit = Math.min(reply.iounit, this.session.msize - m.IOHDRSZ);
    return this;
  }

  /** At most `count` and at most `iounit` bytes; none at the end of the file. The result shares memory with others: copy what you keep. */
  async read(
    offset: m.Message<typeof m.Tread>["offset"],
    count = this.iounit,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    count = Math.min(count, this.iounit);
    const { data } = await this.session.rpc.call(m.Tread, { fid: this.number, offset, count }, signal);
    if (data.length > count)
      throw new NineError(phrase.proto, `${data.length} bytes answer a read of ${count}`);
    return data as Buffer;
  }

  /** Writes at most `iounit` bytes; returns how many the server took. */
  async write(
    offset: m.Message<typeof m.Twrite>["offset"],
    data: Uint8Array,
    signal?: AbortSignal,
  ): Promise<number> {
    const part = data.length > this.iounit ? data.subarray(0, this.iounit) : data;
    const { count } = await this.session.rpc.call(m.Twrite, { fid: this.number, offset, data: part }, signal);
    if (count > part.length)
      throw new NineError(phrase.proto, `${count} bytes answer a write of ${part.length}`);
    return count;
  }

  async stat(signal?: AbortSignal): Promise<m.Dir> {
    return (await this.session.rpc.call(m.Tstat, { fid: this.number }, signal)).stat;
  }

  /** Changes what is named and nothing else. An empty change is fsync. */
  async wstat(change: StatChange, signal?: AbortSignal): Promise<void> {
    const stat = { ...m.dontTouch, ...change };
    await this.session.rpc.call(m.Twstat, { fid: this.number, stat }, signal);
  }

  /** All entries of an open directory, from the beginning. */
  async entries(signal?: AbortSignal): Promise<m.Dir[]> {
    const all: m.Dir[] = [];
    for (let offset = 0; ; ) {
      const data = await this.read(offset, this.iounit, signal);
      if (data.length === 0) return all;
      all.push(...decodeDirs(data));
      offset += data.length;
    }
  }

  /** Gives the fid back. It is gone also when this rejects, with an error of the close. */
  async clunk(): Promise<void> {
    await this.end(m.Tclunk);
  }

  /** Removes the file; the fid is gone also when this rejects. */
  async remove(): Promise<void> {
    await this.end(m.Tremove);
  }

  /** The number is used again only after the reply: until then the server may know it. */
  private async end(type: typeof m.Tclunk | typeof m.Tremove): Promise<void> {
    try {
      await this.session.rpc.call(type, { fid: this.number });
    } finally {
      this.session.fids.give(this.number);
    }
  }

  get isDirectory(): boolean {
    return (this.qid.type & (DMDIR >>> 24)) !== 0;
  }
}
