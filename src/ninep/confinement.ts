/** Whether the process at the other end of a unix socket may be one that a sandbox holds. */
import { closeSync, readFileSync } from "node:fs";
import { knowsPeerProcess, peerProcess } from "./libc.ts";

/**
 * `confined`: its no-new-privs is set, which a sandbox without root needs, and which no process and none of its children can take
 * back. `unknown`: it is gone, or /proc does not show it.
 */
export type Confinement = "free" | "confined" | "unknown";

/**
 * Judges the process that made the connection.
 * @param fd the socket
 * @param pid of SO_PEERCRED; counts only on a kernel that has no SO_PEERPIDFD, where another process may have it by now
 */
export function confinementOf(fd: number, pid: number): Confinement {
  if (!knowsPeerProcess()) return byPid(pid);
  const handle = peerProcess(fd);
  if (handle === undefined) return "unknown";
  try {
    const held = pidOf(handle);
    const found = held > 0 ? byPid(held) : "unknown";
    // As long as the handle has a pid, nobody else has it: what was read between the two looks is of that process.
    return pidOf(handle) === held ? found : "unknown";
  } finally {
    closeSync(handle);
  }
}

/** The pid of a pidfd, -1 once its process has been waited for, 0 in a pid namespace that is not ours: `pidfd_open(2)`, `proc(5)`. */
function pidOf(handle: number): number {
  return field(`/proc/self/fdinfo/${handle}`, "Pid") ?? -1;
}

function byPid(pid: number): Confinement {
  const set = field(`/proc/${pid}/status`, "NoNewPrivs");
  return set === undefined ? "unknown" : set === 0 ? "free" : "confined";
}

function field(file: string, name: string): number | undefined {
  try {
    const found = new RegExp(`^${name}:\\s*(-?\\d+)$`, "m").exec(readFileSync(file, "utf8"));
    return found ? Number(found[1]) : undefined;
  } catch {
    return undefined;
  }
}
