/** What the kernel tells of a process in `/proc/PID/stat`: `proc_pid_stat(5)`. */
import { readFileSync } from "node:fs";

export interface ProcessStat {
  /** It only waits for its parent to notice its end. */
  dead: boolean;
  parent: number;
  /** In ticks since boot. With the pid it names a process for good: pids are used again. */
  start: string;
  /** `env_start` and `env_end`, addresses of its environment in its memory; 0 where they are not told. */
  environment: [start: number, end: number];
}

/** Undefined where there is no such process. */
export function statOf(pid: number | "self"): ProcessStat | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // From the third on: the second, the name, may itself contain blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent] = fields;
  // A process whose first thread alone has ended looks like a zombie, but for the number of its threads.
  const dead = (state === "Z" || state === "X") && Number(fields[17]) <= 1;
  return {
    dead,
    parent: Number(parent),
    start: fields[19]!,
    environment: [Number(fields[47]), Number(fields[48])],
  };
}
