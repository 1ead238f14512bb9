/** Which process supervises a job, in a way that is still true when this server is gone and its pids are used again. */
import { readFileSync } from "node:fs";

export interface Supervisor {
  pid: number;
  /** Start time in ticks since boot: pids are used again. `proc_pid_stat(5)`. */
  start: string;
  /** The boot that both of them count from. */
  boot: string;
}

/** Undefined where there is no such process. */
export function identify(pid: number): Supervisor | undefined {
  const fields = statOf(pid);
  return fields && { pid, start: fields[19]!, boot: bootId() };
}

/** One that only waits for its parent to notice its end does not run. */
export function isRunning({ pid, start, boot }: Supervisor): boolean {
  const fields = statOf(pid);
  return fields !== undefined && fields[19] === start && !"ZX".includes(fields[0]!) && boot === bootId();
}

/** The fields of `/proc/PID/stat` from the third on; the second, the name, may itself contain blanks and parentheses. */
function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

let boot: string | undefined;

function bootId(): string {
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return boot;
}
