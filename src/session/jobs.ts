/**
 * The background jobs of a session. They outlive turns, the agents that started them and the server; they end by themselves, when they
 * are told to, and with the session.
 */
import type { JobEnding, JobRef } from "../../actors/job.ts";
import type { SessionRef } from "../../actors/session.ts";
import { reserveExit } from "../exec/job/folder.ts";
import { startJob } from "../exec/job/start.ts";
import { Fault } from "../fault.ts";
import type { JobRecord } from "../store/job-store.ts";
import type { Execution } from "../tools/execution.ts";
import type { JobRequest, JobStarter } from "../tools/tool.ts";
import { Job } from "./job.ts";
import { tellEnd } from "./job-news.ts";
import type { Services } from "./services.ts";
import type { Session } from "./session.ts";

/** Jobs that run at once in a session. */
const mostRunning = 16;
/** Ended jobs of a session whose files are kept; the oldest make room. */
const mostEnded = 32;

export class Jobs implements JobStarter {
  /** Oldest first; absent in a session that never had one. */
  #jobs?: Map<string, Job>;
  #starting = 0;
  /** What is to be done when a job that this server has started has ended; gives sentences for who is told. */
  readonly #after = new WeakMap<Job, () => Promise<string[]>>();
  /** Those that had ended before this server began. */
  readonly #found = new WeakSet<Job>();

  constructor(
    private readonly session: Session,
    private readonly services: Services,
    private readonly actor: SessionRef,
  ) {}

  all(): readonly Job[] {
    return [...(this.#jobs?.values() ?? [])];
  }

  get(id: string): Job | undefined {
    return this.#jobs?.get(id);
  }

  get running(): readonly Job[] {
    return this.all().filter((job) => !job.ended);
  }

  /** Whether one runs, or is about to. */
  get busy(): boolean {
    return this.#starting > 0 || this.running.length > 0;
  }

  /** Brings back the jobs on disk. Returns one sentence for each that still runs and each that cannot be read. */
  restore(): string[] {
    const { jobs, report } = this.session.store.jobs.load();
    for (const { id, record } of jobs) {
      const job = this.#make(id, record);
      const ending = job.look();
      if (ending) this.#found.add(job);
      this.#begin(job, ending);
    }
    const running = this.running.map(
      (job) => `session ${this.session.name}: job ${job.id} still runs (${job.cmd()})`,
    );
    return [...report, ...running];
  }

  start(execution: Execution, request: JobRequest): Promise<{ id: string }> {
    return this.#admitted(() =>
      this.#start(request, (folder, keep) =>
        startJob(execution, folder, (supervisor) => keep({ supervisor })),
      ),
    );
  }

  startThere(opId: string, request: JobRequest, begin: () => Promise<void>): Promise<{ id: string }> {
    return this.#admitted(() =>
      this.#start(request, async (folder, keep) => {
        reserveExit(folder);
        await keep({ op: opId });
        await begin();
      }),
    );
  }

  /** What runs on another host already, and nobody here waits for any more, becomes a job. */
  async adopt(opId: string, request: JobRequest): Promise<{ id: string }> {
    const known = this.all().find((job) => job.record.op === opId);
    return known
      ? { id: known.id }
      : this.#start(request, async (folder, keep) => {
          reserveExit(folder);
          await keep({ op: opId });
        });
  }

  async #admitted(start: () => Promise<{ id: string }>): Promise<{ id: string }> {
    if (this.running.length + this.#starting >= mostRunning)
      throw new Fault(
        "busy",
        `${mostRunning} jobs of this session run already; end one first (write kill to its ctl)`,
      );
    this.#starting++;
    try {
      return await start();
    } finally {
      this.#starting--;
    }
  }

  /** Ends a job that runs, and removes its files. @throws Fault if it could not be ended */
  async remove(job: Job): Promise<void> {
    if (job.removed) return;
    if (!job.ended) await job.kill();
    if (job.removed) return;
    this.#forget(job);
    await this.session.store.jobs.remove(job.id);
  }

  /** Ends all that run: the session ends. Resolves when they are gone, or cannot be ended, which the log tells. */
  async endAll(): Promise<void> {
    while (this.#starting > 0) await Bun.sleep(10);
    await Promise.all(
      this.running.map((job) =>
        job.kill().catch((error) => this.services.log.error({ err: error }, "a job outlives its session")),
      ),
    );
  }

  /** The session is gone, and with it the files of its jobs. */
  retire(): void {
    for (const job of this.all()) job.retire();
  }

  /** The server ends: what happens to jobs from now on is the next one's business. */
  letGo(): void {
    for (const job of this.all()) this.actor.send({ type: "REMOVE JOB", id: actorId(job) });
  }

  /** A job's machine says that it has ended. */
  ended(job: Job): void {
    // After the machine's step, of which this is a part.
    queueMicrotask(() => void this.#tell(job));
  }

  /** @param run starts it, once `keep` has written down how it is found again */
  async #start(
    request: JobRequest,
    run: (
      folder: string,
      keep: (found: Pick<JobRecord, "supervisor" | "op">) => Promise<void>,
    ) => Promise<unknown>,
  ): Promise<{ id: string }> {
    const { store, name } = this.session;
    const agent = this.session.agent(request.agent);
    if (!agent || this.session.removed) throw new Fault("missing", `session ${name} has been removed`);
    const id = await store.jobs.create();
    let record: JobRecord | undefined;
    try {
      await run(store.jobs.folder(id), (found) => {
        record = {
          v: 1,
          tool: request.tool,
          command: store.secrets.mask(request.command),
          agent: agent.store.state.id,
          chat: agent.chat.length,
          notify: request.notify,
          started: Date.now(),
          ...found,
        };
        return store.jobs.write(id, record);
      });
    } catch (error) {
      store.jobs.abandon(id);
      throw error;
    }
    const job = this.#make(id, record!);
    if (request.after) this.#after.set(job, request.after);
    this.#begin(job);
    this.session.jobsChanged();
    await this.#makeRoom();
    return { id: job.id };
  }

  #make(id: string, record: JobRecord): Job {
    return new Job(this.session, id, record, this.services.nextQid());
  }

  #begin(job: Job, ending?: JobEnding): void {
    this.#jobs ??= new Map();
    this.#jobs.set(job.id, job);
    this.actor.send({ type: "ADD JOB", id: actorId(job), work: job, ending });
    job.attach(this.actor.getSnapshot().children[actorId(job)] as JobRef);
  }

  async #makeRoom(): Promise<void> {
    const ended = this.all().filter((job) => job.ended);
    for (const job of ended.slice(0, Math.max(0, ended.length - mostEnded))) await this.remove(job);
  }

  #forget(job: Job): void {
    this.#jobs?.delete(job.id);
    this.actor.send({ type: "REMOVE JOB", id: actorId(job) });
    job.retire();
    this.session.jobsChanged();
  }

  async #tell(job: Job): Promise<void> {
    try {
      await tellEnd(this.session, job, this.#found.has(job), await this.#remarks(job));
    } catch (error) {
      if (this.session.removed || job.removed) return;
      // It is told by the next server.
      this.services.log.error({ err: error, job: job.id }, "the end of a job could not be told");
    }
  }

  async #remarks(job: Job): Promise<string[]> {
    try {
      return (await this.#after.get(job)?.()) ?? [];
    } catch (error) {
      this.services.log.error({ err: error, job: job.id }, "what follows the end of a job failed");
      return [];
    }
  }
}

function actorId(job: Job): string {
  return `job:${job.id}`;
}
