/** How many processes and threads one call may have, so that one that forks without end leaves the machine to others. */
import { readFileSync } from "node:fs";

/** Where they are counted for the call alone, as in a user namespace of its own; `setrlimit(2)`, RLIMIT_NPROC. */
export const processLimit = 1024;

/**
 * Where the kernel counts all that the user runs: as many more as a call may have than there are by now. It is the threads of the whole
 * system that are counted, since those of the same user in other containers count as well and cannot be seen. Rounded up, so that what
 * is made for one number can be used again. Undefined for root, whom this limit does not bind, and where the system does not say.
 */
export function processCeiling(): number | undefined {
  if (process.getuid!() === 0) return undefined;
  const threads = /^\S+ \S+ \S+ \d+\/(\d+)/.exec(loadAverage())?.[1];
  return threads === undefined ? undefined : (Math.ceil(Number(threads) / processLimit) + 1) * processLimit;
}

/** `proc_loadavg(5)`; its fourth field is "running/all". */
function loadAverage(): string {
  try {
    return readFileSync("/proc/loadavg", "utf8");
  } catch {
    return "";
  }
}
