/** What a person is asked, and what comes back. */
import { visible } from "./visible.ts";

/** The call that somebody has to allow. */
export interface Subject {
  session: string;
  agent: string;
  tool: string;
  /** Exactly what is to run, as it is; `visible` (visible.ts) makes it fit to be shown. */
  command: string;
  cwd: string;
  /** The machine that it runs on. */
  host: string;
}

export interface Question extends Subject {
  id: string;
  /** Whether the call may run outside of the sandbox, or the password that sudo wants for it. */
  kind: "approval" | "password";
  /** A password was given before and is wrong. */
  again?: boolean;
}

/** `once`: this call. `session`: also every later call of the session that is the same in tool, arguments and folder. */
export type Scope = "once" | "session";

export const scopes: readonly Scope[] = ["once", "session"];

export type Answer =
  | { decision: "allow"; scope: Scope }
  | { decision: "deny"; reason: string }
  | { decision: "password"; password: Uint8Array };

/**
 * A question as one line for people and scripts: id, session, agent, tool and command, separated by tabs. Where a password is wanted the tool's
 * name has ` (password)` behind it, which no name can hold.
 */
export function lineOf({ id, session, agent, tool, kind, again, command }: Question): string {
  const want = kind === "approval" ? "" : again ? " (password again)" : " (password)";
  return [id, session, agent, tool + want, command].map(visible).join("\t");
}

/** Of a call: what there is to see of it for a person. Arguments that only ollie itself understands do not count as the tool's. */
export function commandOf(args: Record<string, unknown>): string {
  const { elevated: _, timeout: __, ...own } = args;
  const [only, ...more] = Object.keys(own);
  return only === "command" && more.length === 0 && typeof own.command === "string"
    ? own.command
    : JSON.stringify(own);
}
