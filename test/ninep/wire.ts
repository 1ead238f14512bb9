/** The client's end of a connection in a test: what it sends arrives at once, what it takes is under control. */
import { decode, encode } from "../../src/ninep/codec.ts";
import type { File } from "../../src/ninep/file.ts";
import { Framer } from "../../src/ninep/framer.ts";
import * as m from "../../src/ninep/messages.ts";
import { type Connection, Server, type ServerOptions } from "../../src/ninep/server.ts";
import type { ByteStream, StreamUser } from "../../src/ninep/stream.ts";

export class Wire implements ByteStream {
  readonly server: Server;
  readonly connection: Connection;
  /** What the server wrote, one entry a write, as far as it has not been taken by `next`. */
  writes: Buffer[] = [];
  /** Bytes that the stream takes before it is full. */
  room = Number.POSITIVE_INFINITY;
  paused = false;
  ended = false;
  private user?: StreamUser;
  private readonly framer = new Framer(0x7fff_ffff);
  private readonly replies: m.Message[] = [];

  constructor(root: File | Server, options?: ServerOptions) {
    this.server = root instanceof Server ? root : new Server(root, options);
    this.connection = this.server.serve(this, { uid: 1000, pid: 1 });
  }

  attach(user: StreamUser): void {
    this.user = user;
  }

  write(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.room);
    if (count > 0) this.writes.push(Buffer.from(bytes.subarray(0, count)));
    this.room -= count;
    return count;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  close(): void {
    this.ended = true;
  }

  /** Makes room, as a client does that reads. */
  drain(bytes: number): void {
    this.room += bytes;
    this.user!.drained();
  }

  send(...messages: m.Message[]): void {
    this.sendBytes(Buffer.concat(messages.map(encode)));
  }

  sendBytes(bytes: Buffer): void {
    this.user!.receive(bytes);
  }

  /** The client goes away. */
  vanish(): void {
    this.user!.closed();
  }

  /** The next reply; an error when none comes. */
  async next(): Promise<m.Message> {
    for (let patience = 0; patience < 400; patience++) {
      this.take();
      const reply = this.replies.shift();
      if (reply) return reply;
      await Bun.sleep(patience < 10 ? 0 : 5);
    }
    throw new Error("no reply has come");
  }

  /** Replies that are there, or that come without anything more being sent. */
  async rest(): Promise<m.Message[]> {
    for (let turn = 0; turn < 3; turn++) await Bun.sleep(0);
    this.take();
    return this.replies.splice(0);
  }

  /** One request and its reply. */
  async ask(message: m.TMessage): Promise<m.Message> {
    this.send(message);
    return await this.next();
  }

  /** Tversion and a Tattach of fid 0. */
  async attached(msize = 8192): Promise<this> {
    await this.ask({ type: m.Tversion, tag: m.NOTAG, msize, version: "9P2000" });
    await this.ask({ type: m.Tattach, tag: 1, fid: 0, afid: m.NOFID, uname: "glenda", aname: "" });
    return this;
  }

  private take(): void {
    for (const bytes of this.writes.splice(0)) {
      this.framer.push(bytes);
      for (let frame = this.framer.next(); frame; frame = this.framer.next())
        this.replies.push(decode(frame));
    }
  }
}
