/** All operations of a session that this end takes part in. */
import { type OpReport, opOutput, opReport } from "../protocol/operation.ts";
import type { Handler, Peer } from "../protocol/peer.ts";
import { hasEnded, Operation, type OperationHooks, type Request } from "./operation.ts";
import type { Line } from "./standing.ts";

export class Operations {
  /** Those whose end has not been seen. */
  readonly #running = new Map<string, Operation>();
  /** What the host has said at the last attachment, and since. */
  readonly #known = new Map<string, OpReport>();
  readonly #listeners = new Set<() => void>();

  constructor(private readonly line: Line<Peer>) {}

  /**
   * Asks for an operation, or goes on with one that runs. `ended` of the answer has its result.
   * @param request undefined: it is only looked for
   */
  run(opId: string, request: Request | undefined, hooks: OperationHooks = {}): Operation {
    const operation = new Operation(opId, request, this.line, hooks, this.#known.get(opId));
    this.#running.set(opId, operation);
    operation.watch(() => this.#keep(operation.report!));
    void operation.run().finally(() => {
      if (this.#running.get(opId) === operation) this.#running.delete(opId);
    });
    return operation;
  }

  running(opId: string): Operation | undefined {
    return this.#running.get(opId);
  }

  /** All that is known, oldest first. */
  known(): OpReport[] {
    return [...this.#known.values()];
  }

  report(opId: string): OpReport | undefined {
    return this.#running.get(opId)?.report ?? this.#known.get(opId);
  }

  /** Called when the host has told of operations. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** All that the host's journal has. */
  reconcile(reports: readonly OpReport[]): void {
    this.#known.clear();
    for (const report of reports) this.#learn(report);
  }

  /** What the host tells unasked, over `peer`. */
  handlers(peer: () => Peer): Record<string, Handler> {
    return {
      output: (params) => {
        const output = opOutput.parse(params);
        this.#running.get(output.opId)?.output(output, peer());
      },
      exit: (params) => this.#learn(opReport.parse(params)),
    };
  }

  #keep(report: OpReport): void {
    this.#known.set(report.opId, report);
    for (const listener of [...this.#listeners]) listener();
  }

  #learn(report: OpReport): void {
    this.#keep(report);
    // Its own question may be under way; the end counts, whoever brings it.
    if (hasEnded(report)) this.#running.get(report.opId)?.learn(report);
  }
}
