/** Requests and their replies on one connection: tags, cancelling, and what happens when the connection ends. */
import { decode, encodeInto } from "../codec.ts";
import { NineError, phrase } from "../errors.ts";
import { Framer } from "../framer.ts";
import * as m from "../messages.ts";
import { Outbox } from "../outbox.ts";
import type { ByteStream, StreamUser } from "../stream.ts";
import { malformed } from "../wire.ts";
import { Pool } from "./pool.ts";

/** Which reply belongs to which request. */
interface Replies {
  [m.Tversion]: typeof m.Rversion;
  [m.Tauth]: typeof m.Rauth;
  [m.Tattach]: typeof m.Rattach;
  [m.Tflush]: typeof m.Rflush;
  [m.Twalk]: typeof m.Rwalk;
  [m.Topen]: typeof m.Ropen;
  [m.Tcreate]: typeof m.Rcreate;
  [m.Tread]: typeof m.Rread;
  [m.Twrite]: typeof m.Rwrite;
  [m.Tclunk]: typeof m.Rclunk;
  [m.Tremove]: typeof m.Rremove;
  [m.Tstat]: typeof m.Rstat;
  [m.Twstat]: typeof m.Rwstat;
}

/** What a request says beyond its type and tag. */
type Fields<K extends keyof Replies> = Omit<Extract<m.TMessage, { type: K }>, "type" | "tag">;

/** Half of the tags: the other half is for their Tflush. */
const maxWaiting = 0x7fff;

/** Largest message before Tversion has settled a size. */
const firstSize = 8192;

interface Waiting {
  type: number;
  resolve(reply: m.Message): void;
  reject(error: Error): void;
  /** A Tflush is under way: the tag is in use until its reply, whatever comes first. */
  flushing: boolean;
}

export class Rpc implements StreamUser {
  /** Settles when the connection has ended. */
  readonly ended: Promise<void>;
  private readonly framer = new Framer(firstSize);
  private readonly outbox: Outbox;
  private readonly tags = new Pool(m.NOTAG);
  private readonly waiting = new Map<number, Waiting>();
  private limit = firstSize;
  private end!: () => void;
  private lost?: NineError;

  constructor(private readonly stream: ByteStream) {
    this.outbox = new Outbox(stream);
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    stream.attach(this);
  }

  /** Largest message, once Tversion has settled it. */
  set msize(msize: number) {
    this.framer.limit = this.limit = msize;
  }

  /**
   * Sends a request. An Rerror rejects with its text as a NineError. Aborting the signal sends a Tflush: the promise then rejects with
   * "Interrupted system call", or settles with the reply if that was on its way.
   */
  call<K extends keyof Replies>(
    type: K,
    fields: Fields<K>,
    signal?: AbortSignal,
  ): Promise<m.Message<Replies[K]>> {
    return new Promise((resolve, reject) => {
      if (this.lost) throw this.lost;
      if (signal?.aborted) throw new NineError(phrase.interrupted);
      if (type !== m.Tflush && this.waiting.size >= maxWaiting) {
        throw new NineError(phrase.again, `${maxWaiting} requests are waiting on this connection`);
      }
      const tag = type === m.Tversion ? m.NOTAG : this.tags.take();
      try {
        this.send({ type, tag, ...fields } as unknown as m.TMessage);
      } catch (error) {
        this.tags.give(tag);
        throw error;
      }
      const waiting: Waiting = { type, resolve: resolve as Waiting["resolve"], reject, flushing: false };
      if (signal) this.heed(signal, tag, waiting);
      this.waiting.set(tag, waiting);
    });
  }

  /** Ends the connection; what waits is rejected with `reason`. */
  close(reason?: NineError): void {
    if (reason) this.fail(reason);
    this.stream.close();
    this.closed();
  }

  receive(chunk: Buffer): void {
    if (this.lost) return;
    this.framer.push(chunk);
    try {
      for (let frame = this.framer.next(); frame; frame = this.framer.next()) this.reply(decode(frame));
    } catch (error) {
      this.fail(error as NineError);
      this.stream.close();
    }
  }

  drained(): void {
    this.outbox.flush();
  }

  closed(): void {
    this.fail(new NineError(phrase.pipe, "the connection to the server is closed"));
  }

  private send(message: m.TMessage): void {
    const writer = this.outbox.begin();
    const before = writer.end;
    encodeInto(writer, message);
    if (writer.end - before > this.limit) {
      // A server would hang up on it, and everything else that waits would be lost.
      writer.end = before;
      throw new NineError(
        phrase.invalid,
        `a request with these names does not fit the msize of ${this.limit}`,
      );
    }
    this.outbox.flushSoon();
  }

  private heed(signal: AbortSignal, tag: number, waiting: Waiting): void {
    const abort = () => this.flush(tag, waiting);
    signal.addEventListener("abort", abort, { once: true });
    const { resolve, reject } = waiting;
    waiting.resolve = (reply) => {
      signal.removeEventListener("abort", abort);
      resolve(reply);
    };
    waiting.reject = (error) => {
      signal.removeEventListener("abort", abort);
      reject(error);
    };
  }

  private flush(oldtag: number, waiting: Waiting): void {
    waiting.flushing = true;
    const flushed = () => {
      this.tags.give(oldtag);
      if (this.waiting.get(oldtag) !== waiting) return;
      this.waiting.delete(oldtag);
      waiting.reject(new NineError(phrase.interrupted));
    };
    // Servers must not answer a Tflush with an error; one that does is not going to answer the request either.
    this.call(m.Tflush, { oldtag }).then(flushed, flushed);
  }

  private reply(message: m.Message): void {
    const { tag } = message;
    const waiting = this.waiting.get(tag);
    if (!waiting) throw malformed(`a reply to tag ${tag}, which is not in use`);
    this.waiting.delete(tag);
    if (!waiting.flushing && tag !== m.NOTAG) this.tags.give(tag);
    if (message.type === waiting.type + 1) {
      waiting.resolve(message);
    } else if (message.type === m.Rerror) {
      waiting.reject(new NineError(message.ename));
    } else {
      const error = malformed(`type ${message.type} answers type ${waiting.type}`);
      waiting.reject(error);
      throw error;
    }
  }

  private fail(error: NineError): void {
    if (this.lost) return;
    this.lost = error;
    this.outbox.close();
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const waiting of all) waiting.reject(error);
    this.end();
  }
}
