/** The tree as a 9P server serves it. */
import { readFileSync } from "node:fs";
import type { NineError } from "../ninep/errors.ts";
import type { File, Peer } from "../ninep/file.ts";
import { checkAname } from "../ninep/server.ts";
import type { LiveAgent, Runtime } from "../session/live.ts";
import { View } from "./access.ts";
import type { Context } from "./context.ts";
import { Refusals } from "./lasterr.ts";
import { Plans } from "./plan.ts";
import { Root } from "./root.ts";
import { Lengths, Noticed } from "./stamps.ts";

export interface TreeOptions {
  /** A folder for texts that are still being written; made when it is missing. Best on the disk that keeps the sessions. */
  spoolDir: string;
  /** Owner and group that Tstat tells of every file; left out: the user that the process runs as. */
  user?: string;
  /** Takes secrets out of a text: the server's, and those of the session with that name. */
  mask?(text: string, session: string | undefined): string;
}

export class Tree {
  /** The owner's. */
  readonly root: File;
  readonly #refusals: Refusals;
  readonly #owner: Context;
  readonly #toolRoots = new WeakMap<LiveAgent, File>();

  constructor(runtime: Runtime, options: TreeOptions) {
    this.#refusals = new Refusals((name) => runtime.session(name), options.mask);
    this.#owner = {
      runtime,
      view: new View(),
      spoolDir: options.spoolDir,
      user: options.user ?? userName(),
      started: Date.now(),
      noticed: new Noticed(),
      lengths: new Lengths(),
      refusals: this.#refusals,
      plans: new Plans(),
    };
    this.root = new Root(this.#owner);
  }

  /** The root for who attaches: a tool's if it has come to the listener of an agent (`ToolListeners`), else the owner's. */
  readonly attach = (peer: Peer): File => {
    checkAname(peer.aname);
    return peer.as ? this.#toolRoot(peer.as as LiveAgent) : this.root;
  };

  #toolRoot(agent: LiveAgent): File {
    const known = this.#toolRoots.get(agent);
    if (known) return known;
    // What is noticed by comparing is noticed apart: the same path has another content here.
    const root = new Root({ ...this.#owner, view: new View(agent), noticed: new Noticed() });
    this.#toolRoots.set(agent, root);
    return root;
  }

  /** To be told of every Rerror, with the path of the file that it is about; feeds the files `lasterr`. */
  readonly onRefused = (peer: Peer, path: string, error: NineError): void => {
    this.#refusals.note(peer, path, error);
  };
}

/** By the user database: the environment may say anything, or nothing. A uid without an entry has only its number for a name. */
function userName(): string {
  const uid = String(process.geteuid!());
  const users = readUsers().map((line) => line.split(":"));
  return users.find((fields) => fields[2] === uid)?.[0] || uid;
}

/** Lines of `passwd(5)`. */
function readUsers(): string[] {
  try {
    return readFileSync("/etc/passwd", "utf8").split("\n");
  } catch {
    return [];
  }
}
