/** One client: frames in, replies out. Knows tags and which request is still being worked on; what a request does is said elsewhere. */
import type { Admission } from "../admission.ts";
import { decode, encodeInto, tagOf } from "../codec.ts";
import { NineError, phrase, toNineError } from "../errors.ts";
import type { Maybe, Peer } from "../file.ts";
import { Framer } from "../framer.ts";
import * as m from "../messages.ts";
import { Outbox } from "../outbox.ts";
import type { Server } from "../server.ts";
import type { ByteStream, StreamUser } from "../stream.ts";
import { ProtocolError } from "../wire.ts";
import { Budget } from "./budget.ts";
import { Call } from "./call.ts";
import { endFid } from "./end.ts";
import { type Fid, FidTable } from "./fid.ts";
import { handle } from "./handle.ts";

/** Of a Tversion, which comes before anything is agreed on. */
const firstFrame = 8192;

export class Connection implements StreamUser {
  readonly fids: FidTable;
  readonly budget: Budget;
  /** Agreed on by Tversion; 0 before that. */
  msize = 0;
  private readonly framer = new Framer(firstFrame);
  private readonly outbox: Outbox;
  private readonly calls = new Map<number, Call>();
  private paused = false;
  private working = false;
  private gone = false;
  private readonly ends = new Set<Promise<unknown>>();

  constructor(
    readonly server: Server,
    private readonly stream: ByteStream,
    /** Without the claims of a Tattach. */
    readonly peer: Peer,
    readonly admission?: Admission,
  ) {
    this.fids = new FidTable(server.limits.fids);
    this.budget = new Budget(server.limits.running);
    this.outbox = new Outbox(stream);
  }

  /** Requests that have not been answered. */
  get outstanding(): number {
    return this.calls.size;
  }

  receive(chunk: Buffer): void {
    if (this.gone) return;
    this.server.counters.received += chunk.length;
    this.framer.push(chunk);
    this.work();
  }

  drained(): void {
    this.flush();
    this.work();
  }

  closed(): void {
    if (this.gone) return;
    this.gone = true;
    this.outbox.close();
    this.reset();
    this.server.forget(this);
  }

  /** Ends the connection from our side. */
  close(): void {
    if (this.gone) return;
    this.flush();
    this.stream.close();
    this.closed();
  }

  /** Settles when all files that were open on this connection are closed. */
  async ended(): Promise<void> {
    while (this.ends.size > 0) await Promise.allSettled(this.ends);
  }

  /** Answers what has arrived, and stops reading while the peer does not take the answers. */
  private work(): void {
    if (this.working || this.gone) return;
    this.working = true;
    const { outbox, framer } = this;
    const { unsent } = this.server.limits;
    try {
      for (;;) {
        let frame: Buffer | undefined;
        while (!this.gone && outbox.unsent < unsent) {
          frame = framer.next();
          if (!frame) break;
          this.request(frame);
        }
        this.flush();
        if (outbox.unsent >= unsent || !frame) break;
      }
    } catch (error) {
      // Where one frame ends and the next begins is lost: there is nothing left to talk about.
      this.server.options.onBadFrame?.(this.peer, toNineError(error));
      this.close();
    } finally {
      this.working = false;
    }
    this.setPaused(outbox.unsent >= unsent);
  }

  private setPaused(paused: boolean): void {
    if (paused === this.paused || this.gone) return;
    this.paused = paused;
    if (paused) this.stream.pause();
    else this.stream.resume();
  }

  private flush(): void {
    this.server.counters.sent += this.outbox.flush();
  }

  private request(frame: Buffer): void {
    const call = new Call(tagOf(frame), this.peer);
    let reply: Maybe<m.RMessage | undefined>;
    try {
      const message = decode(frame) as m.TMessage;
      this.admit(message, call);
      this.server.counters.ops[message.type]!++;
      reply = handle(this, call, message);
    } catch (error) {
      reply = this.errorReply(call, error);
    }
    if (reply instanceof Promise) this.park(call, reply as Promise<m.RMessage>);
    else if (reply) this.send(reply);
  }

  private admit(message: m.Message, call: Call): void {
    if ((message.type & 1) === 1) throw new ProtocolError(phrase.proto, `type ${message.type} is no request`);
    if (message.type === m.Tversion) return;
    if (this.msize === 0) throw new ProtocolError(phrase.proto, "a connection begins with Tversion");
    if (message.tag === m.NOTAG) throw new ProtocolError(phrase.proto, "NOTAG is for Tversion only");
    if (this.calls.has(call.tag)) throw new ProtocolError("duplicate tag");
    const frees = message.type === m.Tflush || message.type === m.Tclunk;
    if (this.calls.size >= this.server.limits.requests && !frees) {
      throw new ProtocolError(phrase.again, `${this.calls.size} requests are waiting on this connection`);
    }
  }

  private park(call: Call, reply: Promise<m.RMessage>): void {
    this.calls.set(call.tag, call);
    if (call.fid) {
      call.fid.pending ??= new Set();
      call.fid.pending.add(call);
    }
    reply.then(
      (message) => this.settle(call, message),
      (error) => this.settle(call, call.settled ? undefined : this.errorReply(call, error)),
    );
  }

  /** Takes the call off the books, sends its reply and then those of the Tflush requests that waited for it. */
  private settle(call: Call, reply: m.RMessage | undefined): void {
    if (call.settled) return;
    call.settled = true;
    clearTimeout(call.timer);
    const { fid, flushes } = call;
    if (fid) {
      fid.pending!.delete(call);
      if (fid.pending!.size === 0) fid.idle?.();
    }
    if (call.mute) return;
    this.calls.delete(call.tag);
    if (reply) this.send(reply);
    for (const tag of flushes ?? []) {
      this.calls.delete(tag);
      this.send({ type: m.Rflush, tag });
    }
    this.outbox.flushSoon(this.flushed);
  }

  private readonly flushed = (count: number) => {
    this.server.counters.sent += count;
    if (this.paused) this.work();
  };

  private send(reply: m.RMessage): void {
    if (this.gone) return;
    const writer = this.outbox.begin();
    const before = writer.end;
    try {
      encodeInto(writer, reply);
      if (this.msize > 0 && writer.end - before > this.msize) {
        throw new NineError(phrase.io, `the reply does not fit the msize of ${this.msize}`);
      }
    } catch (error) {
      writer.end = before;
      encodeInto(writer, { type: m.Rerror, tag: reply.tag, ename: toNineError(error).message });
    }
  }

  private errorReply(call: Call, error: unknown): m.RMessage {
    if (call.reserved && !call.reserved.file) this.fids.delete(call.reserved);
    if (!(error instanceof ProtocolError)) this.refused(call, error);
    const ename = toNineError(error).message.replaceAll("\0", " ").toWellFormed();
    this.server.counters.errors++;
    return { type: m.Rerror, tag: call.tag, ename };
  }

  /** Passes on what a tree or its permission bits refused; what the client itself called off is no refusal. */
  refused(call: Call, error: unknown): void {
    if (call.interrupted) return;
    this.server.options.onRefused?.(call.peer, call.path, toNineError(error));
  }

  /** Agrees on msize and version; the session begins anew, `version(5)`. */
  version(message: m.Message<typeof m.Tversion>): m.RMessage {
    const msize = Math.min(message.msize, this.server.limits.msize);
    const known = /^9P2000(\.|$)/.test(message.version);
    if (msize < 256)
      throw new ProtocolError(phrase.invalid, `an msize of ${msize} is too small, at least 256 is needed`);
    this.reset();
    this.msize = known ? msize : 0;
    this.framer.limit = known ? msize : firstFrame;
    return { type: m.Rversion, tag: message.tag, msize, version: known ? "9P2000" : "unknown" };
  }

  /** Answers a Tflush, at once or after the request it names. */
  flushRequest(call: Call, oldtag: number): m.RMessage | undefined {
    const named = this.calls.get(oldtag);
    if (!named) return { type: m.Rflush, tag: call.tag };
    const target = named.flushing ?? named;
    call.flushing = target;
    target.flushes ??= [];
    target.flushes.push(call.tag);
    this.calls.set(call.tag, call);
    this.interrupt(target);
    return undefined;
  }

  /**
   * Tells the tree to stop. What it says then is the answer: an error, or a result that came first and must not be lost. A tree that
   * says nothing in time is no longer waited for.
   */
  interrupt(call: Call): void {
    if (call.interrupted) return;
    call.interrupt();
    if (call.settled) return;
    call.timer = setTimeout(() => this.giveUp(call), this.server.limits.grace);
  }

  private giveUp(call: Call): void {
    this.settle(call, call.mute ? undefined : this.errorReply(call, new NineError(phrase.interrupted)));
  }

  /** Drops all requests without an answer and all fids. */
  private reset(): void {
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const call of calls) {
      call.mute = true;
      call.interrupt();
    }
    for (const fid of this.fids.clear()) if (fid.file) this.drop(fid);
    if (calls.length === 0) return;
    const giveUp = () => {
      for (const call of calls) this.giveUp(call);
    };
    setTimeout(giveUp, this.server.limits.grace).unref();
  }

  private drop(fid: Fid): void {
    const call = new Call(m.NOTAG, fid.peer);
    call.path = fid.path;
    try {
      const end = endFid(this, fid, "dropped", call);
      if (end instanceof Promise) end.catch((error) => this.refused(call, error));
    } catch (error) {
      this.refused(call, error);
    }
  }

  /** Lets `ended` wait for the end of a fid. */
  track<T>(end: Maybe<T>): Maybe<T> {
    if (!(end instanceof Promise)) return end;
    this.ends.add(end);
    const done = () => this.ends.delete(end);
    end.then(done, done);
    return end;
  }
}
