/** One operation: what is known of it, its streams, and those who wait for its end. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { JobOutput } from "../../../exec/job/output.ts";
import type { OpOutput, OpReport } from "../../protocol/operation.ts";
import type { History } from "./record.ts";
import { Sender, type StreamName } from "./sender.ts";
import { headAndTail, type Source, Spool } from "./spool.ts";

const names = ["out", "err", "text"] as const satisfies StreamName[];

export interface OperationOptions {
  /** `ops/OPID` in the session's folder. */
  folder: string;
  /** Bytes of each stream that are kept, and that a report shows of all. */
  spool: number;
  shown: number;
  send(output: OpOutput): void;
}

export class Operation {
  readonly streams = new Map<StreamName, Source>();
  /** Aborted = it is to end; the reason says by whom. */
  readonly control = new AbortController();
  /** Milliseconds from TERM to KILL, should it be ended. */
  grace = 500;
  /** Of the program that runs now. */
  pid?: number;
  #sender?: Sender;
  /** Where the output of each step after the first begins. */
  readonly #steps: Record<string, number>[] = [];
  readonly #ended = Promise.withResolvers<void>();

  constructor(
    readonly history: History,
    private readonly options: OperationOptions,
  ) {
    if (history.ended) this.#ended.resolve();
    if (history.accepted.detach) this.streams.set("out", new JobSource(this.jobFolder));
    // What is not there has no bytes: nothing is made for it.
    else for (const name of names) this.streams.set(name, this.#spool(name));
  }

  get opId(): string {
    return this.history.accepted.opId;
  }

  get folder(): string {
    return this.options.folder;
  }

  get jobFolder(): string {
    return join(this.options.folder, "job");
  }

  get over(): boolean {
    return this.history.ended !== undefined;
  }

  /** Resolves when it has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** For what is printed; only of one that is not detached. */
  spool(name: StreamName): Spool {
    return this.streams.get(name) as Spool;
  }

  makeFolder(): void {
    mkdirSync(this.options.folder, { recursive: true, mode: 0o700 });
  }

  /** Says that what is printed from now on is the next step's. */
  nextStep(): void {
    this.#steps.push(this.sizes());
  }

  follow(from: Readonly<Record<string, number>>): void {
    const stepAt = (stream: StreamName, offset: number) =>
      this.#steps.filter((begin) => (begin[stream] ?? 0) <= offset).length;
    this.#sender = new Sender(this.opId, this.streams, from, stepAt, this.options.send);
    this.#sender.pump();
  }

  unfollow(): void {
    this.#sender = undefined;
  }

  /** Whoever follows has been sent all of it. */
  get drained(): boolean {
    return this.#sender?.drained ?? true;
  }

  get followed(): boolean {
    return this.#sender !== undefined;
  }

  ack(stream: string, off: number): void {
    this.#sender?.ack(stream as StreamName, off);
  }

  /** Something has been printed. */
  pump = (): void => this.#sender?.pump();

  /** Nothing more is printed. */
  settle(): void {
    for (const source of this.streams.values()) if (source instanceof Spool) source.close();
    this.#ended.resolve();
  }

  sizes(): Record<string, number> {
    const sizes = [...this.streams].map(([name, { size }]) => [name, size] as const);
    return Object.fromEntries(sizes.filter(([, size]) => size > 0));
  }

  /** @param whole with what steps have printed */
  report(whole: boolean): OpReport {
    const { accepted, started, ended } = this.history;
    const { opId, hash, detach, title } = accepted;
    return {
      opId,
      hash,
      status: ended?.status ?? (started ? "running" : "accepted"),
      detach,
      title,
      started: started?.at,
      ended: ended?.at,
      code: ended?.code,
      signal: ended?.signal,
      streams: ended?.streams ?? this.sizes(),
      outcome: ended?.outcome,
      output: whole && ended && !ended.outcome ? this.#output(ended.remark) : undefined,
    };
  }

  #output(remark: string | undefined): string {
    const { shown } = this.options;
    const out = this.streams.get("out");
    const err = this.streams.get("err");
    const forErr = err ? Math.min(err.size, Math.max(shown / 4, shown - (out?.size ?? 0))) : 0;
    const parts = [
      out && out.size > 0 ? headAndTail(out, shown - forErr) : "",
      err && err.size > 0 ? `[stderr]\n${headAndTail(err, Math.max(1, forErr))}` : "",
      remark ? `[${remark}]\n` : "",
    ].filter((part) => part !== "");
    return parts
      .map((part, at) => (at < parts.length - 1 && !part.endsWith("\n") ? `${part}\n` : part))
      .join("");
  }

  #spool(name: StreamName): Spool {
    return new Spool(this.options.folder, name, this.options.spool);
  }
}

/** The output of a program that its own supervisor writes down. */
class JobSource implements Source {
  readonly #output: JobOutput;

  constructor(folder: string) {
    this.#output = new JobOutput(() => folder);
  }

  get size(): number {
    return this.#output.length;
  }

  read(offset: number, count: number) {
    const off = this.#output.kept(offset);
    return { off, bytes: Buffer.from(this.#output.read(off, count)) };
  }
}
