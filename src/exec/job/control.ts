/** Ending and signalling what a job runs, whoever started it. */
import { Fault } from "../../fault.ts";
import { end, type Family, kill, type Member } from "../family.ts";
import { readFamily } from "./folder.ts";
import { isRunning, type Supervisor } from "./supervisor-process.ts";

/**
 * TERM to the job's program and all that it has started, wherever that has gone; after `grace` milliseconds KILL. Resolves to what could
 * not be ended. The supervisor stays, and says how the program ended.
 */
export async function endJob(folder: string, supervisor: Supervisor, grace: number): Promise<Member[]> {
  const family = familyOf(folder, supervisor);
  if (family) return (await end(family, grace)).left;
  // It is about to start the program: its keeper ends what it can no longer tell us of.
  endSupervisor(supervisor);
  return [];
}

/** Ends a supervisor that has nothing left to do and does not notice. */
export function endSupervisor(supervisor: Supervisor): void {
  if (isRunning(supervisor)) kill(supervisor.pid, "SIGKILL");
}

/**
 * Sends a signal to the program's process group, as a terminal does: a shell that waits for a child does not act on some by itself.
 * @throws Fault if there is no such group any more, or it is another user's
 */
export function signalJob(folder: string, supervisor: Supervisor, signal: number): void {
  const family = familyOf(folder, supervisor);
  if (!family || family.leader < 0) throw new Fault("invalid", "the job has just ended");
  try {
    process.kill(-family.leader, signal);
  } catch (error) {
    const denied = (error as NodeJS.ErrnoException).code === "EPERM";
    throw denied
      ? new Fault("denied", "the job's program runs as another user", { cause: error })
      : new Fault("invalid", "the job's program has just ended", { cause: error });
  }
}

/** The leader's pid is the leader's only as long as the supervisor has not reaped it. */
function familyOf(folder: string, supervisor: Supervisor): Family | undefined {
  const family = readFamily(folder);
  return family && { ...family, leader: isRunning(supervisor) ? family.leader : -1 };
}
