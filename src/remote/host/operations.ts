/**
 * Runs the operations of a session. An operation is on disk before its program starts, under the id that its client has given it, and so it
 * runs at most once: who asks again under the same id is told how it stands.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { sweepStale } from "../../exec/family.ts";
import { endJob, signalJob } from "../../exec/job/control.ts";
import { Fault, toFault } from "../../fault.ts";
import type { Tool } from "../../tools/tool.ts";
import { coded } from "../protocol/errors.ts";
import { pieceBytes } from "../protocol/limits.ts";
import type {
  OpReport,
  OpStart,
  opAck,
  opCancel,
  opFollow,
  opPiece,
  opRange,
  opWait,
} from "../protocol/operation.ts";
import { admit } from "./ops/admission.ts";
import { Calls } from "./ops/calls.ts";
import { Confinement } from "./ops/confinement.ts";
import type { Operations, OperationsGround } from "./ops/engine.ts";
import { Ledger } from "./ops/ledger.ts";
import type { Operation } from "./ops/operation.ts";
import { type Ending, runCall, runSteps, startDetached, type Workshop, watchDetached } from "./ops/run.ts";
import { type StreamName, wholeCharacters } from "./ops/sender.ts";
import { check, Passwords, probe } from "./ops/sudo.ts";
import { titleOf } from "./ops/title.ts";
import { Toolset } from "./ops/toolset.ts";

/** Operations that run at once. */
const mostRunning = 128;
/** Characters of a list: it goes with every attachment. */
const listLimit = 1024 * 1024;
/** Milliseconds between looks at the output of those that write it down themselves. */
const interval = 200;

/** Takes up what an earlier daemon has left: what it ran itself is `interrupted`, what outlives a daemon goes on. */
export async function createOperations(ground: OperationsGround): Promise<Operations> {
  mkdirSync(join(ground.folder, "ops"), { recursive: true, mode: 0o700 });
  // What the last daemon ran has its keeper to end it; this is for the case that somebody has killed that as well.
  sweepStale();
  const engine = new Engine(ground);
  engine.recover();
  return engine;
}

class Engine implements Operations {
  readonly #tools: Toolset;
  readonly #confinement: Confinement;
  readonly #calls: Calls;
  readonly #ledger: Ledger;
  readonly #passwords = new Passwords();
  readonly #workshop: Workshop;
  /** Those that are about to be on disk. */
  readonly #accepting = new Map<string, { hash: string; accepted: Promise<Operation> }>();
  /** Those that have ended, of which whoever follows has not been sent all: the end is told after that. */
  readonly #untold = new Set<Operation>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #over = new AbortController();
  #sealed = false;
  /** While somebody follows what writes its output down itself. */
  #timer?: ReturnType<typeof setInterval>;

  constructor(private readonly ground: OperationsGround) {
    this.#tools = new Toolset(ground.base, () => ground.settings().toolsHash);
    this.#confinement = new Confinement(ground, () => this.#tools.folders);
    this.#calls = new Calls(ground, this.#confinement, this.#tools);
    this.#ledger = new Ledger(ground, (output) => ground.notify("output", output));
    this.#workshop = {
      ground,
      confinement: this.#confinement,
      calls: this.#calls,
      password: (opId) => this.#passwords.take(opId),
      supervised: (op, supervisor) => this.#ledger.started(op, supervisor),
    };
  }

  recover(): void {
    for (const op of this.#ledger.all()) {
      if (op.over) continue;
      const supervisor = op.history.started?.supervisor;
      if (supervisor) void this.#watch(op, supervisor);
      else this.#end(op, { status: "interrupted" });
    }
  }

  list(): OpReport[] {
    let room = listLimit;
    const newest = this.#ledger.all().reverse();
    const reports = newest.map((op) => op.report(false));
    const shown = reports.filter((report, at) => {
      if (newest[at]!.over) room -= JSON.stringify(report).length;
      return room >= 0 || !newest[at]!.over;
    });
    return shown.reverse();
  }

  get(opId: string): OpReport {
    return this.#find(opId).report(true);
  }

  async start(request: OpStart): Promise<OpReport> {
    const op = await this.#started(request);
    const { opId, follow: from } = request;
    if (from) this.follow({ opId, from });
    return op.report(true);
  }

  async #started(request: OpStart): Promise<Operation> {
    const { opId, hash } = request;
    const known = this.#ledger.get(opId);
    const accepting = this.#accepting.get(opId);
    const before = known?.history.accepted.hash ?? accepting?.hash;
    if (before !== undefined && before !== hash)
      throw coded("op.mismatch", `the operation ${opId} is another one: its request has another hash`);
    if (known) return known;
    if (accepting) return accepting.accepted;
    if (this.#sealed) throw coded("session.sealed", "the session is sealed and runs nothing more");
    if (this.running + this.#accepting.size >= mostRunning)
      throw coded("op.busy", `${mostRunning} operations of this session run already`, { retry: true });
    const tool = admit(request, this.ground, this.#tools);
    const accepted = this.#accept(request);
    this.#accepting.set(opId, { hash, accepted });
    try {
      const op = await accepted;
      void this.#run(op, tool, request);
      return op;
    } finally {
      this.#accepting.delete(opId);
    }
  }

  async wait({ opId, limit }: z.infer<typeof opWait>, signal: AbortSignal): Promise<OpReport> {
    const op = this.#find(opId);
    if (op.over) return op.report(true);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, limit * 1000);
    signal.addEventListener("abort", () => resolve(), { once: true });
    await Promise.race([op.ended, promise]);
    clearTimeout(timer);
    return op.report(true);
  }

  /** With a number that signal is sent, and nothing else; without one it is ended, and has ended when this resolves. */
  async cancel({ opId, signal, grace }: z.infer<typeof opCancel>): Promise<OpReport> {
    const op = this.#find(opId);
    if (op.over) return op.report(true);
    if (signal !== undefined) this.#signal(op, signal);
    else await this.#cancel(op, grace * 1000, new Fault("interrupted", "cancelled by the user"));
    return op.report(true);
  }

  async output({ opId, stream, from, to }: z.infer<typeof opRange>): Promise<z.infer<typeof opPiece>> {
    const op = this.#find(opId);
    const source = op.streams.get(stream as StreamName);
    if (!source) return { from, data: "", end: op.over };
    const { off, bytes } = source.read(from, Math.max(0, Math.min(to - from, pieceBytes)));
    const last = op.over && off + bytes.length >= source.size;
    if (stream !== "text") return { from: off, data: bytes.toString("base64"), end: last };
    const whole = last ? bytes : wholeCharacters(bytes);
    return { from: off, data: whole.toString("utf8"), end: last };
  }

  follow({ opId, from }: z.infer<typeof opFollow>): void {
    const op = this.#find(opId);
    op.follow(from);
    if (op.over) this.#tell(op);
    else if (op.history.accepted.detach) this.#timer ??= setInterval(() => this.#pumpDetached(), interval);
  }

  ack({ opId, stream, off }: z.infer<typeof opAck>): void {
    const op = this.#ledger.get(opId);
    op?.ack(stream, off);
    if (op && this.#untold.has(op)) this.#tell(op);
  }

  secret(opId: string, secret: Uint8Array): void {
    this.#passwords.keep(opId, secret);
  }

  sudoProbe(_opId: string) {
    return probe(this.#confinement.tmp);
  }

  sudoCheck(opId: string) {
    return check(this.#confinement.tmp, this.#passwords.look(opId));
  }

  detach(): void {
    for (const op of this.#ledger.all()) op.unfollow();
    this.#untold.clear();
  }

  get sandbox() {
    return this.#confinement.report;
  }

  get asks() {
    return this.#confinement.asks;
  }

  tools() {
    return this.#tools.list();
  }

  get running(): number {
    return this.#ledger.all().filter((op) => !op.over).length;
  }

  async seal(): Promise<void> {
    this.#sealed = true;
    const reason = new Fault("interrupted", "ended with its session");
    const going = this.#ledger.all().filter(({ over }) => !over);
    const ends = await Promise.allSettled(going.map((op) => this.#cancel(op, 500, reason)));
    for (const end of ends) if (end.status === "rejected") this.ground.log(toFault(end.reason).message);
    await this.#calls.services.close();
  }

  /** What outlives a daemon goes on. */
  async close(): Promise<void> {
    this.#sealed = true;
    clearInterval(this.#timer);
    this.#over.abort();
    const reason = new Fault("interrupted", "the host's daemon was ended");
    const ordinary = this.#ledger.all().filter(({ over, history }) => !over && !history.accepted.detach);
    await Promise.all(ordinary.map((op) => this.#cancel(op, 500, reason)));
    await Promise.allSettled(this.#starting);
    await this.#calls.services.close();
    this.#passwords.clear();
    this.#tools.close();
    this.#confinement.close();
    await this.#ledger.close();
  }

  #find(opId: string): Operation {
    const op = this.#ledger.get(opId);
    if (op) return op;
    throw coded("op.unknown", `this session knows of no operation ${opId}`);
  }

  async #accept(request: OpStart): Promise<Operation> {
    const { opId, hash, detach } = request;
    try {
      return await this.#ledger.accept({
        t: "accepted",
        opId,
        hash,
        at: Date.now(),
        title: titleOf(request),
        detach,
        timeout: detach ? request.timeout : undefined,
      });
    } catch (error) {
      const { kind, message } = toFault(error);
      throw coded(
        kind === "full" ? "op.no_space" : "op.journal",
        `nothing is run: it cannot be written down (${message})`,
      );
    }
  }

  async #run(op: Operation, tool: Tool | undefined, request: OpStart): Promise<void> {
    try {
      if (request.detach) return await this.#runDetached(op, tool, request);
      await this.#ledger.started(op);
      this.#end(
        op,
        tool ? await runCall(op, tool, request, this.#workshop) : await runSteps(op, request, this.#workshop),
      );
    } catch (error) {
      this.ground.log(`operation ${op.opId}: ${toFault(error).message}`);
      this.#end(op, { status: "denied", remark: toFault(error).message });
    }
  }

  async #runDetached(op: Operation, tool: Tool | undefined, request: OpStart): Promise<void> {
    mkdirSync(op.jobFolder, { recursive: true, mode: 0o700 });
    const starting = startDetached(op, tool, request, this.#workshop);
    this.#starting.add(starting);
    const { ending, after } = await starting.finally(() => this.#starting.delete(starting));
    const supervisor = op.history.started?.supervisor;
    if (ending || !supervisor) {
      // Who is ended while it is about to start has not been denied.
      const stopped = op.control.signal.aborted && { status: "cancelled" as const };
      this.#end(op, { status: "denied", ...ending, ...stopped });
      return;
    }
    // It was ended while it was about to start.
    if (op.control.signal.aborted) void endJob(op.jobFolder, supervisor, op.grace);
    await this.#watch(op, supervisor, after);
  }

  async #watch(
    op: Operation,
    supervisor: Parameters<typeof watchDetached>[1],
    settle?: () => Promise<string[]>,
  ): Promise<void> {
    const limit = this.#limit(op);
    const ending = await watchDetached(op, supervisor, this.#over.signal);
    clearTimeout(limit);
    const said = (await settle?.().catch((error) => [toFault(error).message])) ?? [];
    const remark = [ending.remark, ...said].filter((text) => text).join("; ") || undefined;
    this.#end(op, { ...ending, remark });
  }

  /** Ends what is detached when its time is up, if a daemon is there then; else the next one does. */
  #limit(op: Operation) {
    const { at, timeout } = op.history.accepted;
    if (timeout === undefined) return undefined;
    const stop = () => {
      if (op.over || this.#over.signal.aborted) return;
      this.#cancel(op, 500, new Fault("timeout", "its time is up")).catch((error) =>
        this.ground.log(toFault(error).message),
      );
    };
    // setTimeout takes 31 bits and fires at once beyond.
    const timer = setTimeout(stop, Math.min(Math.max(0, at + timeout * 1000 - Date.now()), 2 ** 31 - 1));
    timer.unref();
    return timer;
  }

  #end(op: Operation, ending: Ending): void {
    if (op.over) return;
    this.#passwords.forget(op.opId);
    const closing = this.#over.signal.aborted && ending.status === "cancelled";
    op.pump();
    this.#ledger.ended(op, { ...ending, ...(closing && { status: "interrupted" as const }) });
    this.#tell(op);
  }

  #tell(op: Operation): void {
    if (op.drained) {
      this.#untold.delete(op);
      this.ground.notify("exit", op.report(false));
    } else this.#untold.add(op);
  }

  async #cancel(op: Operation, grace: number, reason: Fault): Promise<void> {
    op.grace = grace;
    op.control.abort(reason);
    const supervisor = op.history.started?.supervisor;
    const left = supervisor ? await endJob(op.jobFolder, supervisor, grace) : [];
    // Its supervisor waits for it as well.
    if (left.length > 0)
      throw coded(
        "op.left",
        `it could not be ended: ${left.map(({ pid, command }) => `pid ${pid} ${command}`).join("; ")}`,
      );
    await op.ended;
  }

  #signal(op: Operation, number: number): void {
    const supervisor = op.history.started?.supervisor;
    if (supervisor) signalJob(op.jobFolder, supervisor, number);
    else if (op.pid === undefined)
      throw coded(
        "op.signal",
        "no signal can be sent: the operation runs no program of its own at this moment",
      );
    else process.kill(-op.pid, number);
  }

  #pumpDetached(): void {
    const followed = this.#ledger.all().filter((op) => !op.over && op.followed && op.history.accepted.detach);
    for (const op of followed) op.pump();
    if (followed.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
