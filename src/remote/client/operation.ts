/**
 * One operation, from the request to what became of it, over as many connections as it takes. It is asked for until its acceptance has been
 * seen, always under the same id; from then on it is only asked about.
 */
import { CodedFault, Fault } from "../../fault.ts";
import { opHash } from "../protocol/hash.ts";
import {
  type OpOutput,
  type OpReport,
  type OpStart,
  opPiece,
  opReport,
  pieceBytes,
} from "../protocol/messages.ts";
import type { Peer } from "../protocol/peer.ts";
import type { Line, Patience } from "./standing.ts";
import { Stream } from "./stream.ts";

/** What is asked for. */
export type Request = Omit<OpStart, "opId" | "hash" | "grant">;

export interface OperationHooks extends Patience {
  /** Nobody waits for its end here: it is over when the host has taken it. */
  untilAccepted?: boolean;
  /** Output in its order, each byte once. */
  output?(stream: string, data: Buffer): void;
  /**
   * Before each time that the operation is asked for: what goes with it and must not be kept. A grant holds for a short time only, and a password
   * is never written down.
   */
  arm?(peer: Peer, hash: string): Pick<OpStart, "grant">;
}

/** An operation has ended when its report says one of these. */
const endings = new Set<OpReport["status"]>([
  "exited",
  "signaled",
  "timeout",
  "cancelled",
  "interrupted",
  "denied",
]);

export function hasEnded(report: OpReport): boolean {
  return endings.has(report.status);
}

export class Operation {
  #report?: OpReport;
  /** It has been sent, and whether it arrived is not known. */
  #asked: boolean;
  readonly #streams = new Map<string, Stream>();
  readonly #listeners = new Set<() => void>();
  readonly #ended = Promise.withResolvers<OpReport>();
  readonly #accepted = Promise.withResolvers<OpReport>();
  /** To be sent as soon as the host is there. */
  #cancel?: { signal?: number; grace?: number };
  readonly #over = new AbortController();

  constructor(
    readonly opId: string,
    /** Undefined: it is only looked for. */
    private readonly request: Request | undefined,
    private readonly line: Line<Peer>,
    private readonly hooks: OperationHooks = {},
    known?: OpReport,
  ) {
    this.#asked = request === undefined;
    this.#ended.promise.catch(() => {});
    this.#accepted.promise.catch(() => {});
    if (known) this.learn(known);
  }

  /** What is known of it. */
  get report(): OpReport | undefined {
    return this.#report;
  }

  /** Whether it may be running there. */
  get asked(): boolean {
    return this.#asked || this.#report !== undefined;
  }

  /** Resolves when the host has it on disk. @throws CodedFault */
  get accepted(): Promise<OpReport> {
    return this.#accepted.promise;
  }

  /** Resolves with the last report, when all output has been passed on. @throws CodedFault `op.unknown`, and those of a host that cannot be used */
  get ended(): Promise<OpReport> {
    return this.#ended.promise;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Goes through with it; called once. */
  async run(): Promise<void> {
    try {
      let peer: Peer | undefined;
      let report: OpReport | undefined;
      while (!report) {
        peer = await this.line.gate.wait(this.#over.signal, this.hooks, peer);
        report = await this.#attempt(peer);
      }
      this.#ended.resolve(report);
    } catch (error) {
      this.#accepted.reject(error);
      this.#ended.reject(error);
    } finally {
      this.#over.abort();
    }
  }

  /** Ends it; where the host cannot be told now, it is told as soon as it can. One that was never asked for never will be. */
  cancel(how: { signal?: number; grace?: number } = {}): void {
    if (!this.asked) {
      this.#over.abort(new Fault("interrupted", "cancelled before it ran"));
      return;
    }
    this.#cancel = how;
    const peer = this.line.gate.now;
    if (peer && this.#report) void this.#sendCancel(peer);
  }

  /** From the notification. */
  output({ stream, off, data }: OpOutput, peer: Peer): void {
    const bytes = stream === "text" ? Buffer.from(data) : Buffer.from(data, "base64");
    this.#take(stream, off, bytes);
    peer.notify("op.ack", { opId: this.opId, stream, off: this.#stream(stream).offset });
  }

  learn(report: OpReport): void {
    if (this.#report && hasEnded(this.#report)) return;
    this.#report = report;
    this.#accepted.resolve(report);
    for (const listener of [...this.#listeners]) listener();
  }

  /** Undefined: the connection was lost; what is known of the operation stays true. */
  async #attempt(peer: Peer): Promise<OpReport | undefined> {
    try {
      if (!this.#report) await this.#ask(peer);
      else this.learn(await this.#get(peer));
      if (this.#cancel) await this.#sendCancel(peer);
      if (this.hooks.untilAccepted) return this.#report;
      if (!hasEnded(this.#report!)) await this.#follow(peer);
      await this.#rest(peer);
      return this.#report;
    } catch (error) {
      // Of a connection that is gone, or goes wrong, the error says nothing about the operation.
      if (error instanceof CodedFault && error.code.startsWith("proto.")) this.line.distrust(peer, error);
      else if (this.line.gate.now === peer && !peer.closed) throw error;
      return undefined;
    }
  }

  async #ask(peer: Peer): Promise<void> {
    if (!this.request) {
      this.learn(await this.#get(peer));
      return;
    }
    const hash = opHash(this.request);
    const armed = this.hooks.arm?.(peer, hash);
    this.#asked = true;
    const params: OpStart = { opId: this.opId, hash, ...this.request, ...armed };
    this.learn(await peer.request("op.start", params, { schema: opReport, limit: this.line.limit }));
  }

  #get(peer: Peer): Promise<OpReport> {
    return peer.request("op.get", { opId: this.opId }, { schema: opReport, limit: this.line.limit });
  }

  /** Resolves when it has ended; output comes meanwhile. */
  async #follow(peer: Peer): Promise<void> {
    const from = Object.fromEntries([...this.#streams].map(([name, { offset }]) => [name, offset]));
    await peer.request("op.follow", { opId: this.opId, from }, { limit: this.line.limit });
    while (!hasEnded(this.#report!)) {
      // The notification is quicker; the answer is for the one that was lost.
      const poll = { schema: opReport, limit: this.line.limit + 30_000 };
      const stop = new AbortController();
      const answer = peer.request(
        "op.wait",
        { opId: this.opId, limit: 25 },
        { ...poll, signal: stop.signal },
      );
      answer.catch(() => {});
      await Promise.race([answer.then((report) => this.learn(report)), this.#whenEnded(stop.signal)]).finally(
        () => stop.abort(),
      );
    }
  }

  #whenEnded(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const unwatch = this.watch(() => {
        if (!hasEnded(this.#report!)) return;
        unwatch();
        resolve();
      });
      signal.addEventListener("abort", unwatch, { once: true });
    });
  }

  /** What was printed while nobody listened, and has not come by itself. */
  async #rest(peer: Peer): Promise<void> {
    if (!this.hooks.output) return;
    for (const [name, size] of Object.entries(this.#report!.streams)) {
      const stream = this.#stream(name);
      while (stream.offset < size) {
        const from = stream.offset;
        const params = { opId: this.opId, stream: name, from, to: Math.min(size, from + pieceBytes) };
        const options = { schema: opPiece, limit: this.line.limit };
        const piece = await peer.request("op.output", params, options);
        stream.skipTo(piece.from);
        this.#take(name, piece.from, Buffer.from(piece.data, name === "text" ? "utf8" : "base64"));
        if (stream.offset === from) break;
      }
    }
  }

  async #sendCancel(peer: Peer): Promise<void> {
    const how = this.#cancel!;
    try {
      await peer.request("op.cancel", { opId: this.opId, ...how }, { limit: this.line.limit });
      if (this.#cancel === how) this.#cancel = undefined;
    } catch {
      // Lost with the connection, it is sent again over the next one. Else it has ended meanwhile, which the report tells.
      if (!peer.closed && this.#cancel === how) this.#cancel = undefined;
    }
  }

  #stream(name: string): Stream {
    const stream = this.#streams.get(name) ?? new Stream();
    this.#streams.set(name, stream);
    return stream;
  }

  #take(name: string, off: number, bytes: Buffer): void {
    const fresh = this.#stream(name).take(off, bytes);
    if (fresh.length > 0) this.hooks.output?.(name, fresh);
  }
}
