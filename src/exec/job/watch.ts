/**
 * Noticing the end of jobs. The supervisors of an earlier server are no children of this one, so the kernel tells nobody here of their
 * end: while any job runs, all are looked at five times a second, each for the cost of two failing or short reads. For one's own the end
 * of the child is the occasion to look at once.
 */
import { type JobExit, readExit } from "./folder.ts";
import { isRunning, type Supervisor } from "./supervisor-process.ts";

export interface JobEnding {
  /** `lost`: its supervisor is gone and has left no word. */
  how: "exited" | "killed" | "lost";
  exit?: JobExit;
}

/** Milliseconds. */
const interval = 200;

interface Watch {
  folder(): string;
  supervisor: Supervisor;
  resolve(ending: JobEnding): void;
}

const watches = new Set<Watch>();
let timer: Timer | undefined;

/** How a job ended, or undefined while it runs. */
export function lookAt(folder: string, supervisor: Supervisor): JobEnding | undefined {
  // The supervisor writes, then ends: read in the other order, it could have done both in between.
  const running = isRunning(supervisor);
  const exit = readExit(folder);
  if (exit) return { how: exit.signal === undefined ? "exited" : "killed", exit };
  return running ? undefined : { how: "lost" };
}

/** Resolves when the job has ended; never where `signal` is aborted before. `folder` is asked anew at every look. */
export function watchJob(
  folder: () => string,
  supervisor: Supervisor,
  signal: AbortSignal,
): Promise<JobEnding> {
  return new Promise((resolve) => {
    const watch = { folder, supervisor, resolve };
    watches.add(watch);
    signal.addEventListener("abort", () => forget(watch), { once: true });
    timer ??= setInterval(lookNow, interval);
    lookNow();
  });
}

export function lookNow(): void {
  for (const watch of watches) {
    const ending = lookAt(watch.folder(), watch.supervisor);
    if (!ending) continue;
    forget(watch);
    watch.resolve(ending);
  }
}

function forget(watch: Watch): void {
  watches.delete(watch);
  if (watches.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}
