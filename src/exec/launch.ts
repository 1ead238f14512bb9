/** How a program comes to run: what is executed in its place, prepares the process, and becomes it. */
import type { Fault } from "../fault.ts";

export interface Launch {
  /** Goes before the program's own argv. Executing it ends in the program, in the same process; nothing else stays behind. */
  readonly argv: readonly string[];
  /** What went wrong if it was the preparation that failed and not the program; judged by how the process ended. */
  failure?(ended: { code?: number; stderr: string }): Fault | undefined;
  /** Called once the process exists or could not be made. */
  close?(): void;
}

/**
 * Gives the process what programs expect, then becomes the program: Bun has raised its own soft RLIMIT_NOFILE, beyond what `select(2)`
 * survives, and if memory runs out, the kernel shall pick the program and not the server. `$1` is the memory limit in KiB, 0 = none.
 */
const script = `{ ulimit -S -n 1024; echo 500 >/proc/self/oom_score_adj; [ "$1" = 0 ] || ulimit -v "$1"; } 2>/dev/null
shift; exec "$@"`;

/**
 * Confines nothing.
 * @param memory bytes of address space that each process may have (RLIMIT_AS); unset = no limit
 */
export function plainLaunch(memory = 0): Launch {
  return { argv: ["/bin/sh", "-c", script, "ollie", String(Math.floor(memory / 1024))] };
}
