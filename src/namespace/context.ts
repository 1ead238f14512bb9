/** What all files of one tree share, and what they need to know about where they stand. */
import type { Runtime, Stamp, Topic } from "../session/live.ts";
import type { Standing, View } from "./access.ts";
import type { Refusals } from "./lasterr.ts";
import type { Plans } from "./plan.ts";
import type { Lengths, Noticed } from "./stamps.ts";

export interface Context {
  readonly runtime: Runtime;
  /** Who looks. */
  readonly view: View;
  /** The folder for texts that are still being written. */
  readonly spoolDir: string;
  /** Owner and group of every file. */
  readonly user: string;
  /** When the tree was made, in milliseconds since 1970: the time of what never changes. */
  readonly started: number;
  readonly noticed: Noticed;
  readonly lengths: Lengths;
  readonly refusals: Refusals;
  readonly plans: Plans;
}

/** Where a file stands: the object that its content comes from, and what follows from that. */
export interface Site<T> {
  readonly target: T;
  readonly context: Context;
  /** Whether Tremove of a fixed file succeeds without effect, so that `rm -r` gets to remove the folder. */
  readonly removable: boolean;
  /** What it is to who looks; undefined: it does not exist for them. */
  readonly standing: Standing | undefined;
  /** Throws a Fault when the object has been removed, or does not exist for who looks. */
  alive(): void;
  /** The newest of these topics; without any, the time of creation. */
  stamp(topics: readonly Topic[]): Stamp;
}

/** Adds the versions of several topics, so that any of them moves the sum, and takes the latest time. */
export function newest(
  from: { stamp(topic: Topic): Stamp; readonly created: number },
  topics: readonly Topic[],
): Stamp {
  let vers = 0;
  let mtime = from.created;
  for (const topic of topics) {
    const stamp = from.stamp(topic);
    vers += stamp.vers;
    mtime = Math.max(mtime, stamp.mtime);
  }
  return { vers: vers >>> 0, mtime };
}

/** A site that cannot go away and does not change. To a tool it is its own. */
export function fixedSite<T>(context: Context, target: T): Site<T> {
  return {
    target,
    context,
    removable: false,
    standing: context.view.agent ? "own" : "owner",
    alive: () => context.view.alive(),
    stamp: () => ({ vers: 0, mtime: context.started }),
  };
}

/** Numbers of the qid paths in block 0; the blocks after it belong to sessions and agents. */
export const rootPaths = {
  root: 1,
  sessions: 2,
  short: 3,
  sessionFiles: 4,
  rootFiles: 8,
  elevate: 40,
  elevateFiles: 41,
} as const;
