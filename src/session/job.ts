/** A live job: an actor, its folder on disk, and the views and verbs that the tree shows of them. */
import { constants } from "node:os";
import { type JobEnding, type JobRef, type JobSnapshot, type JobWork, jobLine } from "../../actors/job.ts";
import type { JobExit } from "../exec/job/folder.ts";
import { JobOutput } from "../exec/job/output.ts";
import type { JobEnding as FoundEnding } from "../exec/job/watch.ts";
import { Fault } from "../fault.ts";
import type { JobRecord } from "../store/job-store.ts";
import { type JobRun, RunHere } from "./job-run.ts";
import { RunThere } from "./job-there.ts";
import type { LiveJob, Stamp, Topic } from "./live.ts";
import type { Session } from "./session.ts";
import { Stamps } from "./stamps.ts";

/** Milliseconds from TERM to KILL: more than a call gets, since a server may have something to save. */
const grace = 2000;

export class Job implements LiveJob, JobWork {
  readonly out: JobOutput;
  readonly run: JobRun;
  removed = false;
  #exit?: JobExit;
  #ref?: JobRef;
  #state = "running";
  #ended = false;
  #changes = 0;
  readonly #listeners = new Set<() => void>();
  readonly #stamps: Stamps;
  /** What a kill could not end, in words. */
  #left = "";

  constructor(
    readonly session: Session,
    readonly id: string,
    readonly record: JobRecord,
    readonly qid: number,
  ) {
    this.#stamps = new Stamps(record.started);
    const folder = () => this.folder;
    this.out = new JobOutput(folder);
    const { supervisor, op } = record;
    this.run = supervisor
      ? new RunHere(folder, supervisor)
      : new RunThere(folder, op ?? "", () => session.reach.required("job"));
  }

  /** How it has ended as far as the disk tells now; undefined while it runs. */
  look(): JobEnding | undefined {
    const found = this.run.look();
    return found && this.#take(found);
  }

  /** Called once, with the actor that has just begun. */
  attach(ref: JobRef): void {
    this.#ref = ref;
    ref.subscribe((snapshot) => this.#show(snapshot));
    this.#show(ref.getSnapshot());
  }

  get folder(): string {
    return this.session.store.jobs.folder(this.id);
  }

  get created(): number {
    return this.record.started;
  }

  stamp(topic: Topic): Stamp {
    return this.#stamps.of(topic);
  }

  // What it shows.

  get state(): string {
    return this.#state;
  }

  get changes(): number {
    return this.#changes;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Absent while it runs, and where it is lost. */
  get ending(): JobExit | undefined {
    return this.#exit;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  cmd(): string {
    return `${this.record.tool}: ${this.record.command}`;
  }

  exit(): string {
    if (!this.#ended) return "";
    return this.#exit ? (this.#exit.signal ?? String(this.#exit.code)) : "lost";
  }

  // What it is told.

  checkCtl(line: string): void {
    verbOf(line);
  }

  async ctl(line: string): Promise<void> {
    const signal = verbOf(line);
    if (this.#ended) throw new Fault("invalid", `job ${this.id} has ended (${this.#state})`);
    if (signal === "kill") await this.kill();
    else await this.run.signal(signal);
  }

  /** Resolves when all of it is gone. @throws Fault that names what could not be ended */
  async kill(): Promise<void> {
    this.#left = "";
    this.#ref?.send({ type: "KILL" });
    while (!this.#ended && !this.#left && !this.removed) await this.#next();
    if (this.#left) throw new Fault("busy", `job ${this.id} could not be ended: ${this.#left}`);
  }

  async remove(): Promise<void> {
    await this.session.jobs.remove(this);
  }

  /** Its files do not exist any more. */
  retire(): void {
    this.removed = true;
    this.#tell();
  }

  // What the machine needs.

  async watchEnd(signal: AbortSignal): Promise<JobEnding> {
    return this.#take(await this.run.watchEnd(signal));
  }

  /** Resolves with whether all of it is gone. */
  async endTree(): Promise<boolean> {
    this.#left = await this.run.end(grace);
    if (this.#left) this.#tell();
    return this.#left === "";
  }

  giveUp(): void {
    this.run.giveUp();
  }

  hasEnded(): void {
    this.session.jobs.ended(this);
  }

  #take({ how, exit }: FoundEnding): JobEnding {
    this.#exit = exit;
    return exit ? { how, detail: exit.signal ?? String(exit.code) } : { how };
  }

  #show(snapshot: JobSnapshot): void {
    const line = jobLine(snapshot);
    this.#ended = snapshot.status !== "active";
    if (line === this.#state) return;
    this.#state = line;
    this.#changes++;
    this.#stamps.touch("state");
    this.#tell();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      const unwatch = this.watch(() => {
        unwatch();
        resolve();
      });
    });
  }

  #tell(): void {
    // A listener may leave while it is told.
    for (const listener of [...this.#listeners]) listener();
  }
}

/** What a line of `ctl` asks for: `kill`, or the number of a signal. */
function verbOf(line: string): "kill" | number {
  const [word = "", argument, ...more] = line.trim().split(/\s+/);
  if (word === "kill" && argument === undefined) return "kill";
  if (word === "kill") throw new Fault("invalid", "kill takes no argument; signal N sends a signal");
  if (word !== "signal") throw new Fault("invalid", `unknown verb ${word || '""'}; there are kill signal`);
  if (argument === undefined || more.length > 0)
    throw new Fault("invalid", "signal N: one number or name is right");
  return signalNumber(argument);
}

function signalNumber(word: string): number {
  const { signals } = constants;
  const name = `SIG${word.toUpperCase().replace(/^SIG/, "")}`;
  const number = /^\d+$/.test(word) ? Number(word) : signals[name as NodeJS.Signals];
  if (number !== undefined && number >= 1 && number <= 64) return number;
  throw new Fault("invalid", `no signal ${word.slice(0, 40)}; TERM or 15 is right`);
}
