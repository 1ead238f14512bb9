/** Which process supervises a job, in a way that is still true when this server is gone and its pids are used again. */
import { readFileSync } from "node:fs";
import { statOf } from "../proc.ts";

export interface Supervisor {
  pid: number;
  /** As in `ProcessStat`. */
  start: string;
  /** The boot that both of them count from. */
  boot: string;
}

/** Undefined where there is no such process. */
export function identify(pid: number): Supervisor | undefined {
  const stat = statOf(pid);
  return stat && { pid, start: stat.start, boot: bootId() };
}

/** One that only waits for its parent to notice its end does not run. */
export function isRunning({ pid, start, boot }: Supervisor): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.start === start && !stat.dead && boot === bootId();
}

let boot: string | undefined;

function bootId(): string {
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return boot;
}
