/**
 * A 9P2000 client made by hand: it knows the frames of intro(5) and shares no code with the program, so that what it sees is what any
 * other client sees. A request takes its fields as they stand on the wire and resolves with the reply's, or rejects with the Rerror.
 */
import { connect, type Socket } from "node:net";

export const NOFID = 0xffff_ffff;
const NOTAG = 0xffff;
const dontTouch = { u16: 0xffff, u32: 0xffff_ffff, u64: 0xffff_ffff_ffff_ffffn };

export interface Entry {
  qid: string;
  mode: number;
  mtime: number;
  length: number;
  name: string;
  uid: string;
}

/** What a Twstat may change. */
export interface Change {
  name?: string;
  length?: bigint;
  mode?: number;
  mtime?: number;
  muid?: string;
}

export class Wire {
  #received = Buffer.alloc(0);
  #nextTag = 0;
  readonly #waiting = new Map<number, { resolve(body: Fields): void; reject(error: Error): void }>();

  private constructor(private readonly socket: Socket) {
    socket.on("data", (chunk) => this.#receive(chunk as Buffer));
  }

  /** Connects, agrees on msize and attaches fid 0 to the root, as the user. */
  static async attach(address: string, msize = 8192, uname = "glenda"): Promise<Wire> {
    const socket = connect(address.replace(/^unix!/, ""));
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    const wire = new Wire(socket);
    await wire.request(100, [u32(msize), string("9P2000")], NOTAG);
    await wire.request(104, [u32(0), u32(NOFID), string(uname), string("")]);
    return wire;
  }

  /** The peer vanishes without a word. */
  vanish(): void {
    this.socket.destroy();
  }

  /** Resolves with the number of names that were walked; `to` is a new fid if that is all of them. */
  async walk(from: number, to: number, ...names: string[]): Promise<number> {
    const reply = await this.request(110, [u32(from), u32(to), u16(names.length), ...names.map(string)]);
    return reply.u16();
  }

  async open(fid: number, mode: number): Promise<{ qid: string; iounit: number }> {
    const reply = await this.request(112, [u32(fid), u8(mode)]);
    return { qid: reply.qid(), iounit: reply.u32() };
  }

  async create(fid: number, name: string, perm: number, mode: number): Promise<void> {
    await this.request(114, [u32(fid), string(name), u32(perm), u8(mode)]);
  }

  async read(fid: number, offset: number | bigint, count: number, tag?: number): Promise<Buffer> {
    const reply = await this.request(116, [u32(fid), u64(offset), u32(count)], tag);
    return reply.bytes(reply.u32());
  }

  async write(fid: number, offset: number | bigint, data: string | Uint8Array): Promise<number> {
    const bytes = Buffer.from(data as string);
    const reply = await this.request(118, [u32(fid), u64(offset), u32(bytes.length), bytes]);
    return reply.u32();
  }

  async clunk(fid: number): Promise<void> {
    await this.request(120, [u32(fid)]);
  }

  async remove(fid: number): Promise<void> {
    await this.request(122, [u32(fid)]);
  }

  async stat(fid: number): Promise<Entry> {
    const reply = await this.request(124, [u32(fid)]);
    reply.u16();
    return reply.entry();
  }

  async wstat(fid: number, change: Change): Promise<void> {
    const { u16: no16, u32: no32, u64: no64 } = dontTouch;
    const entry = Buffer.concat([
      ...[u16(no16), u32(no32)], // type, dev
      ...[u8(0xff), u32(no32), u64(no64)], // qid
      ...[u32(change.mode ?? no32), u32(no32), u32(change.mtime ?? no32), u64(change.length ?? no64)],
      ...[string(change.name ?? ""), string(""), string(""), string(change.muid ?? "")],
    ]);
    await this.request(126, [u32(fid), u16(entry.length + 2), u16(entry.length), entry]);
  }

  async flush(oldtag: number): Promise<void> {
    await this.request(108, [u16(oldtag)]);
  }

  /** Sends at once; requests may be sent before earlier ones are answered. */
  request(type: number, fields: Buffer[], tag = this.#nextTag++): Promise<Fields> {
    const body = Buffer.concat(fields);
    this.socket.write(Buffer.concat([u32(body.length + 7), u8(type), u16(tag), body]));
    return new Promise((resolve, reject) => this.#waiting.set(tag, { resolve, reject }));
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= 4 && this.#received.length >= this.#received.readUInt32LE(0)) {
      const frame = new Fields(this.#received.subarray(4, this.#received.readUInt32LE(0)));
      this.#received = this.#received.subarray(frame.length + 4);
      const type = frame.u8();
      const tag = frame.u16();
      const waiting = this.#waiting.get(tag)!;
      this.#waiting.delete(tag);
      if (type === 107) waiting.reject(new Error(frame.string()));
      else waiting.resolve(frame);
    }
  }
}

/** The fields of a reply, taken one after the other. */
export class Fields {
  #at = 0;

  constructor(private readonly frame: Buffer) {}

  get length(): number {
    return this.frame.length;
  }

  u8 = () => this.frame.readUInt8(this.#skip(1));
  u16 = () => this.frame.readUInt16LE(this.#skip(2));
  u32 = () => this.frame.readUInt32LE(this.#skip(4));
  u64 = () => this.frame.readBigUInt64LE(this.#skip(8));
  bytes = (count: number) => this.frame.subarray(this.#skip(count), this.#at);
  string = () => this.bytes(this.u16()).toString();
  qid = () => `${this.u8().toString(16)}.${this.u32()}.${this.u64()}`;

  /** An entry of stat(5), with its own size in front. */
  entry(): Entry {
    this.u16();
    this.bytes(6); // type, dev
    const qid = this.qid();
    const mode = this.u32();
    this.u32(); // atime
    const mtime = this.u32();
    const length = Number(this.u64());
    const name = this.string();
    const uid = this.string();
    this.string();
    this.string();
    return { qid, mode, mtime, length, name, uid };
  }

  #skip(count: number): number {
    this.#at += count;
    return this.#at - count;
  }
}

function number(bytes: number, write: (buffer: Buffer) => void): Buffer {
  const buffer = Buffer.alloc(bytes);
  write(buffer);
  return buffer;
}

export const u8 = (n: number) => number(1, (buffer) => buffer.writeUInt8(n));
export const u16 = (n: number) => number(2, (buffer) => buffer.writeUInt16LE(n));
export const u32 = (n: number) => number(4, (buffer) => buffer.writeUInt32LE(n));
export const u64 = (n: number | bigint) => number(8, (buffer) => buffer.writeBigUInt64LE(BigInt(n)));

export function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u16(bytes.length), bytes]);
}
