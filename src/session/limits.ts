/** What tools may make: sessions and agents no more powerful than the agent whose tools they are. */
import { realpathSync } from "node:fs";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { within } from "../sandbox/paths.ts";
import type { Agent } from "./agent.ts";
import { agentKeys, type Key } from "./keys.ts";
import type { Keys } from "./live.ts";
import type { Services } from "./services.ts";

/** Between the name of a session and the rest of the name of its child. */
const mark = "__";

/**
 * Whether a session is, by its name, a child of `parent`, or a child's child: `PARENT__CHILD`. Of more than two underscores in a row
 * the last two are the mark, so that `a___b` is a child of `a_` and not of `a`.
 */
export function isChild(name: string, parent: string): boolean {
  const rest = name.startsWith(parent + mark) ? name.slice(parent.length + mark.length) : "";
  return rest !== "" && !rest.startsWith("_");
}

/** The name for a child session: as it was asked for, or a free one. */
export function childName(wanted: string, { session }: Agent): string {
  if (!wanted) return `${session.name}${mark}${newId()}`;
  if (isChild(wanted, session.name)) return wanted;
  throw new Fault("denied", `a tool's session is a child of its own: name=${session.name}${mark}NAME`);
}

/** What a template says of the name of a child session. */
export function childKey({ session }: Agent): Key {
  return { check: () => {}, help: `${session.name}${mark}NAME; empty: one that sorts by time` };
}

/** Settings of a session or agent, and of the first agent of a session, that a tool may give. */
const given = ["name", ...Object.keys(agentKeys)];

export function checkGiven(keys: Keys): void {
  for (const key of keys.keys())
    if (!given.includes(key))
      throw new Fault(
        "denied",
        `a tool cannot set ${key}; it may set ${given.slice(0, 6).join(" ")} and generation keys`,
      );
}

/** Refuses an agent config that allows more tools than the maker has, or that runs in another sandbox. */
export function checkPower(config: string, maker: Agent, services: Services): void {
  const own = maker.profile.config();
  const wanted = services.agentConfig(config);
  if (own.allowTools.length > 0) {
    const more =
      wanted.allowTools.length === 0
        ? "any tool"
        : wanted.allowTools.find((tool) => !own.allowTools.includes(tool));
    if (more !== undefined)
      throw new Fault("denied", `agent ${config} may use ${more}, which agent ${own.name} may not`);
  }
  if (wanted.sandbox !== own.sandbox)
    throw new Fault(
      "denied",
      `agent ${config} has sandbox ${wanted.sandbox ?? "default"}, not ${own.sandbox ?? "default"} as agent ${own.name}`,
    );
}

/** A working folder for what a tool makes, links resolved: the maker's own, or one in it. */
export function folderWithin(path: string | undefined, maker: Agent): string {
  const { profile } = maker;
  checkBound(profile.cwd(), profile.within());
  const own = real(profile.cwd());
  if (!path) return own;
  const wanted = real(path);
  if (within(wanted, own)) return wanted;
  throw new Fault("denied", `cwd=${path}: a tool's agents work in ${own} or below it`);
}

/** The same on another host, where nobody here can tell what a path leads to: it is the maker's own. */
export function folderThere(path: string, maker: Agent): string {
  const own = maker.profile.cwd();
  if (path === "" || path === own) return own;
  throw new Fault(
    "denied",
    `cwd=${path}: on another host a tool's agents work where it works itself, in ${own}`,
  );
}

/**
 * Refuses a working folder that by now leads out of `bound`: whoever can write where it lies can put a link in its place.
 * @param bound with links resolved; undefined: nothing is known of it
 */
export function checkBound(cwd: string, bound: string | undefined): void {
  if (bound !== undefined && !within(real(cwd), bound))
    throw new Fault(
      "denied",
      `the working folder ${cwd} leads out of ${bound} by now, where this agent has to stay; if that is meant, set cwd again`,
    );
}

export function real(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw toFault(error, `the working folder ${path} cannot be used`);
  }
}
