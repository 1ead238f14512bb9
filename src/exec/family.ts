/**
 * Finding and ending everything that one call started.
 *
 * Its processes are known by their tag (tag.ts). One that has given itself another on purpose, or runs where the system has none, is
 * known by its session, its parent or its environment. Who leaves all of that behind, or is started by a service on the call's behalf,
 * stays; in the sandbox nobody can change the tag.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { sessionOf } from "./libc.ts";
import { statOf } from "./proc.ts";
import { type Tag, tagOf } from "./tag.ts";

/** The variable that carries the marks, by which those who come after this process's death find what it left. */
export const markName = "OLLIE_EXEC";

/** Names this process: its pid and, since pids are used again, its start time. */
export const owner = `${process.pid}-${statOf("self")!.start}`;

let count = 0;

/** A new call's mark. In `value` it follows those of the calls that this process itself runs in, so that outer calls find it as well. */
export function newMark(): { mark: string; value: string } {
  count++;
  const mark = `/${owner}/${count}/`;
  return { mark, value: (process.env[markName] ?? "") + mark };
}

/** What identifies a call's processes. */
export interface Family {
  /** Process id and session of the program itself. */
  leader: number;
  mark: string;
  tag?: Tag;
  /** Process ids that were in use when the call began. */
  strangers?: readonly number[];
}

export interface Member {
  pid: number;
  command: string;
}

/**
 * TERM to all of them, after `grace` milliseconds KILL. Resolves to those that had to be ended and those that could not be, at the
 * latest one second after the KILL. Ended is who is gone, not who was told to go.
 */
export async function end(family: Family, grace: number): Promise<{ ended: Member[]; left: Member[] }> {
  const search = new Search(family);
  const started = performance.now();
  const told = new Set<string>();
  let limit = Number.POSITIVE_INFINITY;
  for (let pause = 2; ; pause = Math.min(2 * pause, longestPause)) {
    const living = search.living();
    const now = performance.now();
    if (living.length === 0 || now > limit) {
      const left = living.map(({ pid }) => pid);
      return { ended: [...search.found.values()].filter(({ pid }) => !left.includes(pid)), left: living };
    }
    const signal = now < started + grace ? "SIGTERM" : "SIGKILL";
    const fresh = living.map(({ pid }) => pid).filter((pid) => !told.has(signal + pid));
    if (fresh.length > 0) pause = 2;
    for (const pid of signal === "SIGKILL" && fresh.length > 0 ? search.stopped() : fresh) {
      told.add(signal + pid);
      kill(pid, signal);
    }
    if (signal === "SIGKILL") limit = Math.min(limit, performance.now() + 1000);
    await Bun.sleep(pause);
  }
}

/** Milliseconds. */
const longestPause = 32;
/** Looks at the list of processes for one answer, should people come and go each time. */
const mostLooks = 5;
/** Looks until all members have been stopped, likewise. */
const mostStops = 20;
/** Of so many members it is found out what they run: nobody reads a longer list. */
const mostCommands = 16;

class Search {
  /** All that ever were found, by pid. */
  readonly found = new Map<number, Member>();
  /** Of whom it does not matter that they go: they are strangers, or were dead already. */
  private readonly settled = new Set<number>();

  /** Who was there before the call and has no tag of it. */
  private readonly earlier: ReadonlySet<number>;

  constructor(private readonly family: Family) {
    this.earlier = new Set(family.strangers);
  }

  /**
   * Stops all members and returns their ids. Those that fork faster than they can be killed one by one do not get away: what is stopped
   * forks no more, and keeps its place under the limit of processes until all are stopped.
   */
  stopped(): ReadonlySet<number> {
    const stopped = new Set<number>();
    for (let look = 0, before = -1; look < mostStops && stopped.size > before; look++) {
      before = stopped.size;
      for (const pid of pids()) {
        if (stopped.has(pid) || !this.belongs(pid)) continue;
        kill(pid, "SIGSTOP");
        stopped.add(pid);
      }
    }
    return stopped;
  }

  /**
   * The living members. A look that finds nobody counts only if all on its list were still there when they were looked at: who was
   * not may have forked after the list was made, and the list then has neither.
   */
  living(): Member[] {
    for (let look = 1; ; look++) {
      const living: Member[] = [];
      let sure = true;
      for (const pid of pids()) {
        const kind = this.kind(pid);
        if (kind === "member") living.push(this.member(pid));
        else if (kind === "stranger") this.settled.add(pid);
        else if (!this.settled.has(pid)) sure = false;
        if (kind === "dead") this.settled.add(pid);
      }
      if (living.length > 0 || sure || look === mostLooks) return living;
    }
  }

  private member(pid: number): Member {
    const command = () => (this.found.size < mostCommands ? commandOf(pid) : "");
    const member = this.found.get(pid) ?? { pid, command: command() };
    this.found.set(pid, member);
    return member;
  }

  /** `dead`: a member that only waits for its parent to notice. */
  private kind(pid: number): "member" | "stranger" | "dead" | "unknown" {
    const belongs = this.belongs(pid);
    if (belongs === undefined) return "unknown";
    if (!belongs) return "stranger";
    const stat = statOf(pid);
    if (!stat) return "unknown";
    return stat.dead ? "dead" : "member";
  }

  /** Undefined: it is gone, or nothing can be said at this moment. */
  private belongs(pid: number): boolean | undefined {
    const { leader, mark, tag } = this.family;
    const its = tag && tagOf(pid);
    // The second: what was started by a server that is itself a part of this call.
    if (tag && its && (its.server === tag.server ? its.call === tag.call : this.found.has(its.server)))
      return true;
    // Another call's, or older than this one. (Their number is what makes this worth asking first.)
    if (tag && its && (its.server === tag.server || this.earlier.has(pid))) return false;
    const session = sessionOf(pid);
    if (session === undefined) return undefined;
    if (session === leader) return true;
    // Another user's, which could not be ended either.
    if (tag && !its) return false;
    if (this.found.has(statOf(pid)?.parent ?? 0)) return true;
    const variables = environment(pid);
    // Empty also within execve; a tag would have been there even then.
    return variables || tag ? variables.includes(mark) : undefined;
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
    if (pid === process.pid || !isStale(pid)) continue;
    // The names of owners mean nothing in another PID namespace, such as a container's.
    if (namespaceOf(pid) !== namespaceOf(process.pid)) continue;
    kill(-pid, "SIGKILL");
    kill(pid, "SIGKILL");
    swept++;
  }
  return swept;
}

/** By its environment, which names owners more exactly, or by its tag, which it cannot have lost. */
function isStale(pid: number): boolean {
  const marks = environment(pid).match(new RegExp(`(?:^|\0)${markName}=([^\0]*)`))?.[1];
  if (marks?.match(/[0-9]+-[0-9]+/g)?.every(isAlive) === false) return true;
  const server = tagOf(pid)?.server ?? 0;
  return server > 0 && server <= greatestPid && !existsSync(`/proc/${server}`);
}

/** PID_MAX_LIMIT of the kernel: RLIM_INFINITY, which is no tag, has more in the place of the pid. */
const greatestPid = 2 ** 22;

/** Whether the process with that owner name still runs. */
function isAlive(name: string): boolean {
  const [pid, start] = name.split("-");
  return statOf(Number(pid))?.start === start;
}

/** Ids of all processes that can be seen. */
export function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]/.test(name))
    .map(Number);
}

function environment(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return ""; // gone, or another user's
  }
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
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
