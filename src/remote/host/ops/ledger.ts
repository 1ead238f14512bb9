/** The operations of a session as its journal has them, and what becomes of old ones. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Supervisor } from "../../../exec/job/supervisor-process.ts";
import { toFault } from "../../../fault.ts";
import type { OpOutput } from "../../protocol/operation.ts";
import type { OperationsGround } from "./engine.ts";
import { Journal } from "./journal.ts";
import { readEnd, releaseEnd, reserveEnd, writeEnd } from "./last-word.ts";
import { Operation } from "./operation.ts";
import {
  type Accepted,
  type Ended,
  type History,
  histories,
  type JournalRecord,
  recordsOf,
} from "./record.ts";

/** Operations that have ended and are remembered; so many more may there be until the oldest go. */
const kept = 256;
const slack = 64;
/** Of these the output stays, however much it is. */
const always = 16;
/** Bytes of output that all that have ended may have on disk. */
const outputLimit = 2 * 1024 ** 3;
/** Milliseconds after which an operation that has ended is forgotten. */
const oldest = 7 * 24 * 60 * 60 * 1000;

export class Ledger {
  readonly #ops = new Map<string, Operation>();
  readonly #journal: Journal<JournalRecord>;

  constructor(
    private readonly ground: OperationsGround,
    private readonly send: (output: OpOutput) => void,
  ) {
    const { journal, records, damaged } = Journal.open<JournalRecord>(join(ground.folder, "journal.ndjson"));
    this.#journal = journal;
    if (damaged > 0) ground.log(`journal.ndjson: ${damaged} lines are damaged and passed over`);
    for (const history of histories(records).values()) this.#add(history);
    this.#tidy();
  }

  /** Oldest first. */
  all(): Operation[] {
    return [...this.#ops.values()];
  }

  get(opId: string): Operation | undefined {
    return this.#ops.get(opId);
  }

  /** On disk when it resolves. @throws the system's error; then nothing is known of it */
  async accept(accepted: Accepted): Promise<Operation> {
    const op = this.#make({ accepted });
    try {
      op.makeFolder();
      reserveEnd(op.folder);
      await this.#journal.commit(accepted);
    } catch (error) {
      rmSync(op.folder, { recursive: true, force: true });
      throw error;
    }
    this.#ops.set(op.opId, op);
    return op;
  }

  /** Of one with a supervisor it is on disk when it resolves. */
  async started(op: Operation, supervisor?: Supervisor): Promise<void> {
    const started = { t: "started" as const, opId: op.opId, at: Date.now(), supervisor };
    if (supervisor) await this.#journal.commit(started);
    else this.#write(started);
    op.history.started = started;
  }

  ended(op: Operation, ending: Omit<Ended, "t" | "opId" | "at" | "streams">): void {
    const streams = op.sizes();
    const ended: Ended = { t: "ended", opId: op.opId, at: Date.now(), ...ending, streams };
    op.history.ended = ended;
    this.#writeEnd(op, ended);
    op.settle();
    if (this.#ended().length > kept + slack) this.#tidy();
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  /** It is told without waiting for the disk: only the end of the host itself could take it back now. */
  #writeEnd({ folder }: Operation, ended: Ended): void {
    try {
      try {
        this.#journal.append(ended);
      } catch (error) {
        this.#complain(error);
        writeEnd(folder, ended);
        return;
      }
      releaseEnd(folder);
      this.#journal.sync().catch((error) => this.#complain(error));
    } catch (error) {
      this.#complain(error);
    }
  }

  /** A full disk is no reason to leave a program that runs without a witness in memory. */
  #write(record: JournalRecord): void {
    try {
      this.#journal.append(record);
    } catch (error) {
      this.#complain(error);
    }
  }

  #complain(error: unknown): void {
    this.ground.log(`the journal was not written: ${toFault(error).message}`);
  }

  #add(history: History): void {
    const op = this.#make(history);
    this.#ops.set(op.opId, op);
    const ended = history.ended ? undefined : readEnd(op.folder);
    if (!ended) return;
    history.ended = ended;
    op.settle();
  }

  #make(history: History): Operation {
    const { folder, policy } = this.ground;
    const { max_spool_bytes: spool, max_output_bytes: shown } = policy.policy;
    return new Operation(history, {
      folder: join(folder, "ops", history.accepted.opId),
      spool,
      shown,
      send: this.send,
    });
  }

  /** The one that has ended first comes first: somebody may still wait for what has run for long. */
  #ended(): Operation[] {
    const ended = this.all().filter((op) => op.over);
    return ended.sort((a, b) => a.history.ended!.at - b.history.ended!.at);
  }

  /** Forgets the oldest, and of those that are remembered drops the output that is too much. */
  #tidy(): void {
    const ended = this.#ended();
    const old = Date.now() - oldest;
    const surplus = ended.filter((op, at) => {
      const rank = ended.length - at;
      return rank > kept || (rank > always && op.history.ended!.at < old);
    });
    for (const op of surplus) {
      this.#ops.delete(op.opId);
      rmSync(op.folder, { recursive: true, force: true });
    }
    let bytes = 0;
    for (const [at, op] of this.#ended().reverse().entries()) {
      bytes += Object.values(op.history.ended!.streams).reduce((sum, size) => sum + size, 0);
      if (at >= always && bytes > outputLimit) rmSync(op.folder, { recursive: true, force: true });
    }
    if (surplus.length === 0) return;
    try {
      this.#journal.rewrite(this.all().flatMap(({ history }) => recordsOf(history)));
    } catch (error) {
      this.#complain(error);
    }
  }
}
