/** Background jobs: operations that nobody waits for, and that outlive every connection. */
import { CodedFault } from "../../fault.ts";
import { coded } from "../protocol/errors.ts";
import { pieceBytes } from "../protocol/limits.ts";
import { type OpReport, opPiece, opReport } from "../protocol/operation.ts";
import type { RemoteEnding, RemoteJob, RemoteJobs } from "./jobs.ts";
import type { RemoteLink } from "./link.ts";
import { hasEnded } from "./operation.ts";

export class LinkJobs implements RemoteJobs {
  readonly #jobs = new Map<string, LinkJob>();
  readonly #listeners = new Set<() => void>();

  constructor(private readonly link: RemoteLink) {
    link.operations.watch(() => this.#look());
  }

  list(): RemoteJob[] {
    this.#look();
    return [...this.#jobs.values()]
      .filter(({ report }) => report.detach)
      .sort((a, b) => (a.opId < b.opId ? -1 : 1));
  }

  get(opId: string): RemoteJob | undefined {
    this.#look();
    return this.#jobs.get(opId);
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #look(): void {
    let more = false;
    for (const report of this.link.operations.known()) {
      const job = this.#jobs.get(report.opId);
      if (job) job.learn(report);
      else {
        this.#jobs.set(report.opId, new LinkJob(this.link, report));
        more ||= report.detach;
      }
    }
    if (more) for (const listener of [...this.#listeners]) listener();
  }
}

class LinkJob implements RemoteJob {
  readonly #listeners = new Set<() => void>();

  constructor(
    private readonly link: RemoteLink,
    private last: OpReport,
  ) {}

  get opId(): string {
    return this.last.opId;
  }

  get report(): OpReport {
    return this.last;
  }

  get ending(): RemoteEnding | undefined {
    return endingOf(this.last);
  }

  get length(): number {
    return this.last.streams[streamOf(this.last)] ?? 0;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  learn(report: OpReport): void {
    if (report === this.last || hasEnded(this.last)) return;
    this.last = report;
    for (const listener of [...this.#listeners]) listener();
  }

  async ended(signal: AbortSignal): Promise<RemoteEnding> {
    for (;;) {
      const ending = this.ending;
      if (ending) return ending;
      const report = await this.#poll(signal);
      this.learn(report);
    }
  }

  async read(offset: number, count: number, signal: AbortSignal) {
    const stream = streamOf(this.last);
    const to = offset + Math.min(count, pieceBytes);
    const range = { opId: this.opId, stream, from: offset, to };
    const { from, data } = await this.link.ask("op.output", range, opPiece, signal);
    const bytes = Buffer.from(data, stream === "text" ? "utf8" : "base64");
    return { bytes, next: from + bytes.length };
  }

  async kill(signal: AbortSignal): Promise<void> {
    this.learn(await this.link.ask("op.cancel", { opId: this.opId }, opReport, signal));
  }

  async signal(number: number, signal: AbortSignal): Promise<void> {
    if (this.ending) throw coded("op.ended", "the job has ended");
    const params = { opId: this.opId, signal: number };
    this.learn(await this.link.ask("op.cancel", params, opReport, signal));
  }

  /** A long poll; the notification of its end may come first. */
  async #poll(signal: AbortSignal): Promise<OpReport> {
    const told = new AbortController();
    const unwatch = this.watch(() => {
      if (hasEnded(this.last)) told.abort();
    });
    try {
      const both = AbortSignal.any([signal, told.signal]);
      return await this.link.ask("op.wait", { opId: this.opId, limit: 20 }, opReport, both);
    } catch (error) {
      if (told.signal.aborted && !signal.aborted) return this.last;
      if (error instanceof CodedFault && error.code === "op.unknown")
        throw coded("op.unknown", `${this.link.target} knows nothing of that job any more`);
      throw error;
    } finally {
      unwatch();
    }
  }
}

/** What a job of a tool prints is kept cleaned for display; steps print raw. */
function streamOf({ streams }: OpReport): string {
  return "out" in streams ? "out" : "text";
}

function endingOf(report: OpReport): RemoteEnding | undefined {
  if (!hasEnded(report)) return undefined;
  const { status, code, signal, outcome } = report;
  if (status === "interrupted") return { how: "lost" };
  if (signal !== undefined) return { how: "killed", detail: signal };
  if (code !== undefined) return { how: "exited", detail: String(code) };
  // A tool call has a result in the place of a status.
  if (outcome && status === "exited") return { how: "exited", detail: outcome.ok ? "0" : "1" };
  return status === "cancelled" || status === "timeout"
    ? { how: "killed", detail: "SIGTERM" }
    : { how: "lost" };
}
