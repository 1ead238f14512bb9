/** How a program comes to run: what is executed in its place, prepares the process, and becomes it. */
import { Fault } from "../fault.ts";
import { processCeiling } from "./limits.ts";

/** The preparation has failed, and the program has not run. */
export class LaunchFault extends Fault {}

export interface Launch {
  /** Goes before the program's own argv. Executing it ends in the program, in the same process; nothing else stays behind. */
  readonly argv: readonly string[];
  /** What went wrong if it was the preparation that failed and not the program; judged by how the process ended. */
  failure?(ended: { code?: number; stderr: string }): LaunchFault | undefined;
  /** Called once the process exists or could not be made. */
  close?(): void;
}

/**
 * Gives the process what programs expect, then becomes the program: Bun has raised its own soft RLIMIT_NOFILE, beyond what `select(2)`
 * survives, and if memory runs out, the kernel shall pick the program and not the server. `$1` is the memory limit in KiB and `$2` the
 * number of processes (which dash and bash have different letters for), 0 = no limit.
 */
const script = `{ ulimit -S -n 1024; ulimit -S -c 0; echo 500 >/proc/self/oom_score_adj
[ "$1" = 0 ] || ulimit -v "$1"; [ "$2" = 0 ] || ulimit -u "$2" || ulimit -p "$2"; } 2>/dev/null
shift 2; exec "$@"`;

/**
 * Confines nothing, but holds the user's processes to what there are and `processLimit` more.
 * @param memory bytes of address space that each process may have (RLIMIT_AS); unset = no limit
 */
export function plainLaunch(memory = 0): Launch {
  const limits = [Math.floor(memory / 1024), processCeiling() ?? 0];
  return { argv: ["/bin/sh", "-c", script, "ollie", ...limits.map(String)] };
}
