/**
 * Finding and ending everything that one call started.
 *
 * A call's program leads a session of its own, so its process group and session are found by number. What leaves them (`setsid`, a
 * daemon) still carries the call's mark in its environment, and what dropped its environment too may still hold the call's pipes.
 * A process that escapes all three stays; only a PID namespace holds that.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The variable that carries the marks. */
export const markName = "OLLIE_EXEC";

/** Names this process: its pid and, since pids are used again, its start time in ticks since boot. `proc_pid_stat(5)`. */
export const owner = `${process.pid}-${startTime(readFileSync("/proc/self/stat", "utf8"))}`;

let count = 0;

/** A new call's mark. In `value` it follows those of the calls that this process itself runs in, so that outer calls find it as well. */
export function newMark(): { mark: string; value: string } {
  count++;
  const mark = `/${owner}/${count}/`;
  return { mark, value: (process.env[markName] ?? "") + mark };
}

/** What identifies a call's processes. */
export interface Family {
  /** Process id, group and session of the program itself. */
  leader: number;
  mark: string;
  /** Of its output, as /proc shows them: `pipe:[123]`. */
  pipes: string[];
  /** `performance.now()` when it was started. */
  since: number;
}

export interface Member {
  pid: number;
  command: string;
}

/** Milliseconds within which process ids are taken not to have wrapped around. */
const unwrapped = 10_000;

/** All living processes of the family. */
export function members(family: Family): Member[] {
  const candidates = pids().filter(startedSince(family));
  // A process that forked and ended while /proc was being read may have hidden its child: look again until nothing vanished.
  for (let round = 0; ; round++) {
    const found: Member[] = [];
    let vanished = false;
    for (const pid of round === 0 ? candidates : pids().filter(startedSince(family))) {
      const is = belongs(family, pid);
      if (is === undefined) vanished = true;
      else if (is) found.push({ pid, command: commandOf(pid) });
    }
    if (!vanished || round === 3) return found;
  }
}

/**
 * TERM to all of them, after `grace` milliseconds KILL. Resolves to those that had to be ended and those that could not be, at the
 * latest one second after the KILL.
 */
export async function end(family: Family, grace: number): Promise<{ ended: Member[]; left: Member[] }> {
  const ended = new Map<number, Member>();
  const started = performance.now();
  const told = new Set<string>();
  for (;;) {
    const living = members(family);
    const waited = performance.now() - started;
    if (living.length === 0 || waited > grace + 1000) {
      for (const { pid } of living) ended.delete(pid);
      return { ended: [...ended.values()], left: living };
    }
    const signal = waited < grace ? "SIGTERM" : "SIGKILL";
    for (const member of living) {
      ended.set(member.pid, member);
      if (told.has(signal + member.pid)) continue;
      told.add(signal + member.pid);
      kill(member.pid, signal);
    }
    await Bun.sleep(waited < 20 ? 2 : 20);
  }
}

/** Sends a signal to a process, or with a negative number to a group; that it is gone already is no error. */
export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // gone, or not ours: `end` sees what is left
  }
}

/** Ends what calls of processes that no longer exist have left behind; returns how many processes that were. For a server's start. */
export function sweepStale(): number {
  let swept = 0;
  for (const pid of pids()) {
    const marks = environment(pid).match(new RegExp(`(?:^|\0)${markName}=([^\0]*)`))?.[1];
    if (!marks || pid === process.pid) continue;
    if (marks.match(/[0-9]+-[0-9]+/g)?.every(isAlive) !== false) continue;
    kill(-pid, "SIGKILL");
    kill(pid, "SIGKILL");
    swept++;
  }
  return swept;
}

/** Whether the process with that owner name still runs. */
function isAlive(name: string): boolean {
  try {
    const [pid, start] = name.split("-");
    return startTime(readFileSync(`/proc/${pid}/stat`, "utf8")) === start;
  } catch {
    return false;
  }
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]/.test(name))
    .map(Number);
}

/** Leaves out all that was there before the call, so that the usual call costs one directory read and looks at nearly nothing. */
function startedSince(family: Family): (pid: number) => boolean {
  if (performance.now() - family.since > unwrapped) return (pid) => pid !== process.pid;
  const newest = Number(readFileSync("/proc/loadavg", "utf8").trim().split(" ").at(-1));
  return newest >= family.leader
    ? (pid) => pid >= family.leader && pid <= newest
    : (pid) => (pid >= family.leader || pid <= newest) && pid !== process.pid;
}

/** Undefined: it ended while we looked. */
function belongs(family: Family, pid: number): boolean | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const [state, , group, session] = fields(stat);
  if (state === "Z" || state === "X") return false;
  if (Number(group) === family.leader || Number(session) === family.leader) return true;
  return environment(pid).includes(family.mark) || [1, 2].some((fd) => family.pipes.includes(link(pid, fd)));
}

/** The fields of `/proc/PID/stat` from the third on; the second, the name, may itself contain blanks and parentheses. */
function fields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function startTime(stat: string): string {
  return fields(stat)[19]!;
}

function environment(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return ""; // gone, or another user's
  }
}

function link(pid: number, fd: number): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return "";
  }
}

function commandOf(pid: number): string {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
    return words.length > 80 ? `${words.slice(0, 79)}…` : words;
  } catch {
    return "";
  }
}
