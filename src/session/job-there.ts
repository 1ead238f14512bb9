/**
 * A job on another host. Its output is copied into the job's folder as it comes, and how it ended is written there, so that what has ended
 * can be read whatever becomes of that host. While the host is out of reach the job is what it was last.
 */
import { type JobExit, readExit, writeExit } from "../exec/job/folder.ts";
import { JobOutputWriter } from "../exec/job/output.ts";
import type { JobEnding } from "../exec/job/watch.ts";
import { CodedFault } from "../fault.ts";
import type { RemoteEnding, RemoteJob } from "../remote/client/jobs.ts";
import type { JobRun } from "./job-run.ts";
import { reached } from "./reached.ts";
import type { SessionRemote } from "./remote.ts";

/** Bytes that are asked for at once. */
const piece = 128 * 1024;
/** Milliseconds that a host has to answer who wants something ended. */
const patience = 10_000;

export class RunThere implements JobRun {
  constructor(
    private readonly folder: () => string,
    private readonly opId: string,
    private readonly remote: () => SessionRemote,
  ) {}

  look(): JobEnding | undefined {
    const exit = readExit(this.folder());
    return exit && { how: exit.signal === undefined ? "exited" : "killed", exit };
  }

  async watchEnd(signal: AbortSignal): Promise<JobEnding> {
    for (;;) {
      await reached(this.remote(), signal);
      const job = this.remote().jobs.get(this.opId);
      if (!job) return { how: "lost" };
      try {
        return await this.#follow(job, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof CodedFault) || error.code.startsWith("op.")) return { how: "lost" };
      }
    }
  }

  async signal(number: number): Promise<void> {
    await this.#job().signal(number, AbortSignal.timeout(patience));
  }

  async end(): Promise<string> {
    try {
      await this.#job().kill(AbortSignal.timeout(patience));
      return "";
    } catch (error) {
      return `${this.remote().hands.host}: ${(error as Error).message}`;
    }
  }

  giveUp(): void {}

  #job(): RemoteJob {
    const job = this.remote().jobs.get(this.opId);
    if (job) return job;
    throw new CodedFault(
      "unavailable",
      "ssh.unreachable",
      `${this.remote().hands.host} is out of reach; write reconnect to the session's ctl`,
    );
  }

  async #follow(job: RemoteJob, signal: AbortSignal): Promise<JobEnding> {
    const output = new JobOutputWriter(this.folder);
    try {
      const copied = copy(job, output, signal);
      // Its fault is the same as that of the end.
      copied.catch(() => {});
      const ending = await job.ended(signal);
      await copied;
      output.close();
      if (ending.how === "lost") return { how: "lost" };
      const exit = exitOf(job, ending, output);
      writeExit(this.folder(), exit);
      return { how: ending.how, exit };
    } finally {
      output.close();
    }
  }
}

function exitOf({ report }: RemoteJob, { how, detail }: RemoteEnding, output: JobOutputWriter): JobExit {
  const status = how === "killed" ? { signal: detail ?? "SIGKILL" } : { code: Number(detail ?? 0) };
  return { ...status, at: report.ended ?? Date.now(), bytes: output.bytes, lost: output.lost };
}

/** Resolves when all of the output is here. */
async function copy(job: RemoteJob, output: JobOutputWriter, signal: AbortSignal): Promise<void> {
  for (let offset = 0; ; ) {
    const over = job.ending !== undefined;
    if (offset >= job.length) {
      if (over) return;
      await change(job, signal);
      continue;
    }
    const { bytes, next } = await job.read(offset, piece, signal);
    output.add(bytes);
    if (next <= offset && over) return;
    offset = next;
  }
}

function change(job: RemoteJob, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const unwatch = job.watch(() => {
      unwatch();
      signal.removeEventListener("abort", left);
      resolve();
    });
    const left = () => {
      unwatch();
      reject(signal.reason);
    };
    signal.addEventListener("abort", left, { once: true });
    if (signal.aborted) left();
  });
}
