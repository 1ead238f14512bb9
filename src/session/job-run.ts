/** What a job is to this machine: a supervisor here, or an operation on another host. */
import { endJob, endSupervisor, signalJob } from "../exec/job/control.ts";
import type { Supervisor } from "../exec/job/supervisor-process.ts";
import { type JobEnding, lookAt, watchJob } from "../exec/job/watch.ts";

export interface JobRun {
  /** How it has ended as far as the disk tells now; undefined while it runs, as far as is known. */
  look(): JobEnding | undefined;
  /** Resolves when it has ended and all that is known of it is in the job's folder. */
  watchEnd(signal: AbortSignal): Promise<JobEnding>;
  /** @throws Fault */
  signal(number: number): Promise<void> | void;
  /** Ends it and all that it has started. Resolves with what could not be ended, in words. */
  end(grace: number): Promise<string>;
  /** Nobody says how it ended though all of it is gone. */
  giveUp(): void;
}

export class RunHere implements JobRun {
  constructor(
    private readonly folder: () => string,
    private readonly supervisor: Supervisor,
  ) {}

  look(): JobEnding | undefined {
    return lookAt(this.folder(), this.supervisor);
  }

  watchEnd(signal: AbortSignal): Promise<JobEnding> {
    return watchJob(this.folder, this.supervisor, signal);
  }

  signal(number: number): void {
    signalJob(this.folder(), this.supervisor, number);
  }

  async end(grace: number): Promise<string> {
    const left = await endJob(this.folder(), this.supervisor, grace);
    return left.map(({ pid, command }) => `pid ${pid} ${command}`.trim()).join(", ");
  }

  giveUp(): void {
    endSupervisor(this.supervisor);
  }
}
