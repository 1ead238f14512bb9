/**
 * Everything that survives a restart, under one folder that one server uses at a time:
 *
 *     lock                                      locked by the server that uses it
 *     sessions/NAME/session.json                settings and environment
 *     sessions/NAME/plan                        the plan's text
 *     sessions/NAME/agents/ANAME/journal.jsonl  what happened, a record a line: the truth
 *     sessions/NAME/agents/ANAME/chat           what there is to read
 *     tmp/ID/                                   private to the tools of the session with that id
 *
 * The folders in `sessions/` are called like their sessions and agents.
 */
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Secrets } from "../config/secrets.ts";
import { Fault, toFault } from "../fault.ts";
import type { NewAgent } from "./agent-store.ts";
import { folderMode, syncFolder } from "./disk.ts";
import { FdCache } from "./fd-cache.ts";
import { Leftovers } from "./leftovers.ts";
import { StateLock } from "./lock.ts";
import { checkName } from "./names.ts";
import { type NewSession, type SessionOwner, SessionStore } from "./session-store.ts";

export interface LoadedSession {
  session: SessionStore;
  /** A sentence for each thing that was found damaged, with the file and what has been done about it. */
  report: string[];
  /** A sentence for what is lost, and for each agent that cannot be opened. */
  damage: string[];
}

export class Store implements SessionOwner {
  readonly cache = new FdCache();
  readonly leftovers: Leftovers;
  /** By name; a session that is being opened is opened once. */
  readonly #sessions = new Map<string, Promise<LoadedSession>>();

  readonly #lock: StateLock;

  private constructor(
    readonly folder: string,
    lock: StateLock,
    readonly secrets: Secrets,
  ) {
    this.#lock = lock;
    this.leftovers = new Leftovers(folder);
  }

  /**
   * Opens the state folder (made for the owner alone where it does not exist) and locks it. Throws a Fault of kind "busy" that names
   * the pid of a server that uses it already. `report`: what an earlier crash had left and what lies there that is no session.
   */
  static async open(stateDir: string, secrets = new Secrets()): Promise<{ store: Store; report: string[] }> {
    let lock: StateLock | undefined;
    try {
      const sessions = join(stateDir, "sessions");
      mkdirSync(sessions, { recursive: true, mode: folderMode });
      chmodSync(sessions, folderMode);
      await syncFolder(stateDir);
      lock = StateLock.acquire(stateDir);
      const store = new Store(stateDir, lock, secrets);
      const strangers = store.#entries().filter((entry) => !entry.isDirectory());
      return {
        store,
        report: [
          ...store.leftovers.sweep(),
          ...strangers.map(({ name }) => `${join(sessions, name)} is no session and is left alone`),
        ],
      };
    } catch (error) {
      lock?.release();
      throw toFault(error, `the state folder ${stateDir} cannot be used`);
    }
  }

  get sessionsFolder(): string {
    return join(this.folder, "sessions");
  }

  get tmpFolder(): string {
    return join(this.folder, "tmp");
  }

  /** The sessions on disk, sorted. */
  names(): string[] {
    return this.#entries()
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  }

  /** Opens a session; the same object for the same session. Throws a Fault where there is none or its `session.json` makes no sense. */
  loadSession(name: string): Promise<LoadedSession> {
    checkName(name);
    let loading = this.#sessions.get(name);
    if (!loading) {
      loading = this.#load(name);
      this.#sessions.set(name, loading);
      loading.catch(() => this.#sessions.delete(name));
    }
    return loading;
  }

  /** Creates a session with its agents, durably, or nothing. Throws a Fault of kind "exists" where the name is taken. */
  async createSession(name: string, json: NewSession, agents: NewAgent[]): Promise<SessionStore> {
    for (const one of [name, ...agents.map((agent) => agent.name)]) checkName(one);
    const twice = agents.find((agent, i) => agents.findIndex((other) => other.name === agent.name) !== i);
    if (twice) throw new Fault("exists", `two agents are called ${twice.name}; choose another name`);
    await this.leftovers.create(join(this.sessionsFolder, name), (folder) =>
      SessionStore.fill(folder, json, agents),
    );
    return (await this.loadSession(name)).session;
  }

  /**
   * Closes all files and lets another server in, at once. Resolves when what was removed is deleted, with a sentence for each folder
   * that could not be; nobody has to wait for that, since the next start tries again.
   */
  async release(): Promise<string[]> {
    this.cache.close();
    this.#lock.release();
    return this.leftovers.settled();
  }

  moved(from: string, to: string | undefined): void {
    const loaded = this.#sessions.get(from);
    this.#sessions.delete(from);
    if (loaded && to !== undefined) this.#sessions.set(to, loaded);
  }

  async #load(name: string): Promise<LoadedSession> {
    const report: string[] = [];
    const damage: string[] = [];
    return { session: await SessionStore.load(this, name, report, damage), report, damage };
  }

  #entries() {
    return readdirSync(this.sessionsFolder, { withFileTypes: true });
  }
}
