/**
 * A number on every process that a call starts, which the kernel hands on from parent to child.
 *
 * It is the soft limit RLIMIT_LOCKS, which Linux has not enforced since 2.4.25 (`getrlimit(2)`). Unlike a variable of the environment
 * it outlasts `env -i` and daemons that write their title over it, and unlike `/proc/PID/environ`, which reads empty while a process
 * is within `execve`, it can be read at any moment of a process's life. A session or process group is left with `setsid`; a limit
 * changes only for those who mean to change it.
 */
import { randomInt } from "node:crypto";
import { lockLimit, setLockLimit } from "./libc.ts";

export interface Tag {
  /** Pid of the process that called `tagged`. */
  server: number;
  /** Tells its calls apart, 32 bits. */
  call: number;
}

/** Does not begin at 0: a server in a container may have the pid of one outside, where the processes of both are seen. */
export const firstCall = randomInt(2 ** 32);
let count = firstCall;

/** Calls `spawn`, whose process gets a new tag. `tag` is undefined on systems that refuse (gVisor). */
export function tagged<T>(spawn: () => T): { tag?: Tag; result: T } {
  const own = lockLimit(0);
  count = (count + 1) >>> 0;
  const tag = { server: process.pid, call: count };
  if (!own || !setLockLimit(Uint32Array.of(tag.call, tag.server, own[2]!, own[3]!)))
    return { result: spawn() };
  // The child has what we have at the moment of the fork. What else this process starts is no part of the call.
  try {
    return { tag, result: spawn() };
  } finally {
    setLockLimit(own);
  }
}

/** The tag of a process; of one without, `server` is no pid. Undefined where the process is gone, or another user's. */
export function tagOf(pid: number): Tag | undefined {
  const limit = lockLimit(pid);
  return limit && { server: limit[1]!, call: limit[0]! };
}
