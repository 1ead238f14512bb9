/** Servers that answer as a test wants it. */
import { decode, encode } from "../../src/ninep/codec.ts";
import { Framer } from "../../src/ninep/framer.ts";
import * as m from "../../src/ninep/messages.ts";
import type { ByteStream, StreamUser } from "../../src/ninep/stream.ts";

/** Answers each request with what `answer` makes of it: a message, any bytes, or nothing. */
export class Scripted implements ByteStream {
  closed = false;
  private user?: StreamUser;
  private readonly framer = new Framer(1 << 24);

  constructor(private readonly answer: (request: m.Message) => m.Message | Buffer | undefined) {}

  attach(user: StreamUser): void {
    this.user = user;
  }

  write(bytes: Uint8Array): number {
    this.framer.push(Buffer.from(bytes));
    for (let frame = this.framer.next(); frame; frame = this.framer.next()) {
      const reply = this.answer(decode(frame));
      if (reply) queueMicrotask(() => this.user!.receive(Buffer.isBuffer(reply) ? reply : encode(reply)));
    }
    return bytes.length;
  }

  pause(): void {}

  resume(): void {}

  close(): void {
    this.closed = true;
  }
}

/** What every server says to Tversion and Tattach. */
export function greet(request: m.Message): m.Message | undefined {
  const { tag } = request;
  if (request.type === m.Tversion) return { type: m.Rversion, tag, msize: request.msize, version: "9P2000" };
  if (request.type === m.Tattach) return { type: m.Rattach, tag, qid: { type: 0x80, vers: 0, path: 0 } };
  return undefined;
}
