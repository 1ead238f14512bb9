/**
 * One operation, from the request to what became of it, over as many connections as it takes. It is asked for until its acceptance has been
 * seen, always under the same id; from then on it is only asked about.
 */
import { CodedFault, Fault } from "../../fault.ts";
import { opHash } from "../protocol/hash.ts";
import { pieceBytes, window } from "../protocol/limits.ts";
import { type OpOutput, type OpReport, type OpStart, opPiece, opReport } from "../protocol/operation.ts";
import type { Peer } from "../protocol/peer.ts";
import type { Line, Patience } from "./standing.ts";
import { Stream } from "./stream.ts";

/** What is asked for. */
export type Request = Omit<OpStart, "opId" | "hash" | "grant" | "follow">;

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

/** Milliseconds after which the host is asked for the end as well: a short call is one request. */
const quiet = 1000;
/** Bytes of a stream after which the host is told that they have come; it waits for that after `window`. */
const ackBytes = window / 4;

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
    const { offset, acked } = this.#stream(stream);
    if (offset - acked < ackBytes && offset > off) return;
    this.#stream(stream).acked = offset;
    peer.notify("op.ack", { opId: this.opId, stream, off: offset });
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
      const follows = !this.#report && (await this.#ask(peer));
      if (!follows) this.learn(await this.#get(peer));
      if (this.#cancel) await this.#sendCancel(peer);
      if (this.hooks.untilAccepted) return this.#report;
      if (!follows && !hasEnded(this.#report!)) await this.#follow(peer);
      await this.#whenOver(peer);
      await this.#rest(peer);
      return this.#report;
    } catch (error) {
      // Of a connection that is gone, or goes wrong, the error says nothing about the operation.
      if (error instanceof CodedFault && error.code.startsWith("proto.")) this.line.distrust(peer, error);
      else if (this.line.gate.now === peer && !peer.closed) throw error;
      return undefined;
    }
  }

  /** Also has its output and its end sent from now on; false: it is only looked for. */
  async #ask(peer: Peer): Promise<boolean> {
    if (!this.request) return false;
    const hash = opHash(this.request);
    const armed = this.hooks.arm?.(peer, hash);
    this.#asked = true;
    const follow = this.hooks.untilAccepted ? undefined : this.#offsets();
    const params: OpStart = { opId: this.opId, hash, ...this.request, ...armed, follow };
    this.learn(await peer.request("op.start", params, { schema: opReport, limit: this.line.limit }));
    return true;
  }

  #get(peer: Peer): Promise<OpReport> {
    return peer.request("op.get", { opId: this.opId }, { schema: opReport, limit: this.line.limit });
  }

  async #follow(peer: Peer): Promise<void> {
    await peer.request("op.follow", { opId: this.opId, from: this.#offsets() }, { limit: this.line.limit });
  }

  #offsets(): Record<string, number> {
    // Who follows anew tells with it what has come.
    for (const stream of this.#streams.values()) stream.acked = stream.offset;
    return Object.fromEntries([...this.#streams].map(([name, { offset }]) => [name, offset]));
  }

  /** Resolves when it has ended; output comes meanwhile. */
  async #whenOver(peer: Peer): Promise<void> {
    while (!hasEnded(this.#report!)) {
      // The host tells it when all output has come here, which is never where it has dropped some; an answer comes in any case.
      if (await this.#endsWithin(quiet, peer)) return;
      const report = await peer.request(
        "op.wait",
        { opId: this.opId, limit: 25 },
        { schema: opReport, limit: this.line.limit + 30_000 },
      );
      this.learn(report);
    }
  }

  /** @throws what the connection was closed with */
  #endsWithin(limit: number, peer: Peer): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const timer = setTimeout(resolve, limit, false);
    const unwatch = this.watch(() => {
      if (hasEnded(this.#report!)) resolve(true);
    });
    const unclose = peer.onClose(reject);
    return promise.finally(() => {
      clearTimeout(timer);
      unwatch();
      unclose();
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
