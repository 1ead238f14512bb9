/**
 * Who looks at the tree, and what is there for them. That is settled at the Tattach, by the listener that the client came to and by
 * nothing that it says; every file that is reached from the root then belongs to that view.
 */
import { Fault } from "../fault.ts";
import { isChild } from "../session/limits.ts";
import type { LiveAgent, LiveSession } from "../session/live.ts";

/**
 * How near a session or agent is to who looks at it. To the owner all are `owner`. To a tool: its own agent is `self`; its session and
 * the other agents in it are `own`; sessions whose names make them its children, or theirs, are `child`; those whose key `share` lists
 * its session are `sharing`. All others do not exist for it.
 */
export type Standing = "owner" | "self" | "own" | "child" | "sharing";

/** What tools may do with a file, by its standing; where nothing is said, the file is not there for them. */
export type ToolAccess = Readonly<Partial<Record<Exclude<Standing, "owner">, "r" | "w" | "rw">>>;

/** One who looks. */
export class View {
  /** @param agent whose tool it is; undefined: the owner */
  constructor(readonly agent?: LiveAgent) {}

  /** Throws a Fault once the agent is gone: its tools may do nothing any more. */
  alive(): void {
    if (this.agent?.removed || this.agent?.session.removed)
      throw new Fault("missing", "the agent whose tool this is has been removed");
  }

  session(session: LiveSession): Standing | undefined {
    if (!this.agent) return "owner";
    const mine = this.agent.session;
    if (session === mine) return "own";
    if (isChild(session.name, mine.name)) return "child";
    return session.shares(mine.name) ? "sharing" : undefined;
  }

  of(agent: LiveAgent): Standing | undefined {
    return agent === this.agent ? "self" : this.session(agent.session);
  }
}

/** Whether sessions and agents of that standing can be ended with `rm`. */
export function mayEnd(standing: Standing | undefined): boolean {
  return standing === "owner" || standing === "child";
}

export const mayNotEnd = "a tool may rename nothing, and remove only child sessions and their agents";

export function checkEnd(standing: Standing | undefined): void {
  if (!mayEnd(standing)) throw new Fault("denied", mayNotEnd);
}

/** The part of a file's permission bits that is left at that standing: 0 where the file is not there. */
export function permitted(
  { mode, tools }: { mode: number; tools?: ToolAccess },
  standing: Standing | undefined,
): number {
  if (standing === "owner") return mode;
  const grant = (standing && tools?.[standing]) ?? "";
  return mode & ((grant.includes("r") ? 0o444 : 0) | (grant.includes("w") ? 0o222 : 0));
}

/** Why a tool may not, and what it may do with the files of that table instead. */
export function refusal(
  name: string,
  verb: "read" | "write",
  table: readonly { name: string; mode: number; tools?: ToolAccess }[],
  standing: Standing | undefined,
): string {
  const bits = verb === "read" ? 0o444 : 0o222;
  const instead = table.filter((row) => permitted(row, standing) & bits).map((row) => row.name);
  return `${name}: a tool may ${verb} here ${instead.length > 0 ? `only ${instead.join(" ")}` : "nothing"}`;
}
