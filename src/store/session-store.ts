/** What survives of one session: its settings, its plan and its agents, all in one folder. */
import { linkSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Secrets } from "../config/secrets.ts";
import { toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import { type AgentOwner, AgentStore, type NewAgent } from "./agent-store.ts";
import { folderMode, isErrno, syncFolder, writeDurably } from "./disk.ts";
import type { FdCache } from "./fd-cache.ts";
import { JobStore } from "./job-store.ts";
import { type Leftovers, moveFolder } from "./leftovers.ts";
import { checkName } from "./names.ts";
import { Serial } from "./serial.ts";
import { missing, readSettings, type SessionJson } from "./session-json.ts";

/** What a session needs of the store. */
export interface SessionOwner {
  readonly sessionsFolder: string;
  readonly tmpFolder: string;
  readonly cache: FdCache;
  readonly leftovers: Leftovers;
  /** What is secret in every session. */
  readonly secrets: Secrets;
  /** A session has another name now, or (undefined) has been removed. */
  moved(from: string, to: string | undefined): void;
}

export type NewSession = Partial<Pick<SessionJson, "cfg" | "env">>;

const jsonFile = "session.json";
const planFile = "plan";
const nothing = new Uint8Array(0);

export class SessionStore implements AgentOwner {
  /** The server's, and those of the session's own environment. */
  readonly secrets: Secrets;
  #name: string;
  #json: SessionJson;
  #agents: AgentStore[] = [];
  /** How a damaged `session.json` is to be called that still stands in the place of a whole one. */
  #damaged?: string;
  readonly jobs = new JobStore(this);
  /** Changes of the folder, one at a time. */
  readonly #changes = new Serial();

  private constructor(
    readonly owner: SessionOwner,
    name: string,
    json: SessionJson,
  ) {
    this.#name = name;
    this.#json = json;
    this.secrets = new Secrets(owner.secrets);
    this.secrets.learnSession(json.env);
  }

  /** Fills an empty folder with a new session's files, on disk when it resolves. */
  static async fill(folder: string, { cfg = {}, env = {} }: NewSession, agents: NewAgent[]): Promise<void> {
    const created = Date.now();
    const json: SessionJson = { v: 1, id: newId(), created, cfg, env };
    const agentsFolder = join(folder, "agents");
    for (const path of [agentsFolder, ...agents.map(({ name }) => join(agentsFolder, name))])
      mkdirSync(path, { mode: folderMode });
    await Promise.all([
      writeDurably(join(folder, jsonFile), serialize(json)),
      // Agents are listed in the order of their creation, so no two of a session may have the same time.
      ...agents.map((agent, i) => AgentStore.fill(join(agentsFolder, agent.name), agent, created + i)),
    ]);
    await Promise.all([agentsFolder, ...agents.map(({ name }) => join(agentsFolder, name))].map(syncFolder));
  }

  /**
   * Opens a session, adding to `report` a sentence for each thing that was put right, and to `damage` for what is lost and for
   * each agent that cannot be opened (its folder stays as it is). A damaged `session.json` is kept as `session.json.damaged-TIME`; what can be read of it counts, and
   * the agents' chats say so. Throws a Fault where there is no session, or one of another version of ollie.
   */
  static async load(
    owner: SessionOwner,
    name: string,
    report: string[],
    damage: string[],
  ): Promise<SessionStore> {
    const folder = join(owner.sessionsFolder, name);
    const made = Math.floor(statSync(folder, { throwIfNoEntry: false })?.birthtimeMs ?? 0);
    const { json, wrong } = await readSettings(join(folder, jsonFile), made);
    const session = new SessionStore(owner, name, json);
    for (const path of [session.tmp, session.agentsFolder]) makeFolder(path, report);
    for (const entry of readdirSync(session.agentsFolder, { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      try {
        session.#agents.push(await AgentStore.load(session, entry.name, report, damage));
      } catch (error) {
        damage.push(`agent ${entry.name} of session ${name} could not be opened: ${toFault(error).message}`);
      }
    }
    session.#sort();
    if (wrong !== undefined) await session.#mend(wrong, json.created === made, damage);
    return session;
  }

  get name(): string {
    return this.#name;
  }

  get folder(): string {
    return join(this.owner.sessionsFolder, this.name);
  }

  get agentsFolder(): string {
    return join(this.folder, "agents");
  }

  get cache(): FdCache {
    return this.owner.cache;
  }

  /**
   * Absolute path of the session's private folder for temporary files; it exists. It is not in the session's folder: a tool that runs,
   * and whoever was told where a long output lies, must find it under its path when the session has another name.
   */
  get tmp(): string {
    return join(this.owner.tmpFolder, this.#json.id);
  }

  get json(): Readonly<SessionJson> {
    return this.#json;
  }

  /** Changes settings, durably: `change` works on a copy. On a Fault they are as before. */
  update(change: (json: SessionJson) => void): Promise<void> {
    return this.#changes.run(async () => {
      const json = structuredClone(this.#json);
      change(json);
      this.secrets.learnSession(json.env);
      await this.#save(json);
    });
  }

  /** The plan as it was written, empty at first. Reads the disk synchronously. */
  plan(): Uint8Array {
    try {
      return readFileSync(join(this.folder, planFile));
    } catch (error) {
      if (isErrno(error, "ENOENT")) return nothing;
      throw toFault(error, "the plan could not be read");
    }
  }

  /** The whole new plan, atomically and durably. */
  writePlan(text: Uint8Array): Promise<void> {
    return this.#changes.run(() => this.owner.leftovers.replace(join(this.folder, planFile), text));
  }

  /** In order of creation. */
  agents(): readonly AgentStore[] {
    return this.#agents;
  }

  /** Creates an agent, durably, or changes nothing. Throws a Fault of kind "exists" where the name is taken. */
  createAgent(name: string, config: string, cfg: NewAgent["cfg"] = {}): Promise<AgentStore> {
    checkName(name);
    return this.#changes.run(async () => {
      const created = Math.max(Date.now(), (this.#agents.at(-1)?.state.created ?? 0) + 1);
      await this.owner.leftovers.create(join(this.agentsFolder, name), (folder) =>
        AgentStore.fill(folder, { name, config, cfg }, created),
      );
      const store = await AgentStore.load(this, name, []);
      this.#agents.push(store);
      return store;
    });
  }

  /** Renames the session, durably. Throws a Fault of kind "exists" where the name is taken. */
  renameTo(name: string): Promise<void> {
    checkName(name);
    return this.#changes.run(async () => {
      const from = this.name;
      if (name === from) return;
      moveFolder(this.folder, join(this.owner.sessionsFolder, name));
      this.#name = name;
      this.owner.moved(from, name);
      await syncFolder(this.owner.sessionsFolder);
    });
  }

  /** Ends the session for good. It is gone when this resolves, also after a crash; its files are deleted later. */
  remove(): Promise<void> {
    return this.#changes.run(async () => {
      await this.#removeTmp();
      const gone = this.owner.leftovers.discard(this.folder);
      for (const agent of this.#agents) agent.retire();
      this.#agents = [];
      this.owner.moved(this.name, undefined);
      await gone;
    });
  }

  /** Before the session itself: one that is still there after a crash makes it anew, and nobody looks for that of one that is gone. */
  async #removeTmp(): Promise<void> {
    try {
      await this.owner.leftovers.discard(this.tmp);
    } catch {
      // Nothing that is needed is in it.
    }
  }

  renameAgent(agent: AgentStore, name: string): Promise<void> {
    checkName(name);
    return this.#changes.run(async () => {
      if (name === agent.name) return;
      moveFolder(agent.folder, join(this.agentsFolder, name));
      agent.renamed(name);
      await syncFolder(this.agentsFolder);
    });
  }

  removeAgent(agent: AgentStore): Promise<void> {
    return this.#changes.run(async () => {
      const gone = this.owner.leftovers.discard(agent.folder);
      agent.retire();
      this.#agents = this.#agents.filter((other) => other !== agent);
      await gone;
    });
  }

  async #save(json: SessionJson): Promise<void> {
    const path = join(this.folder, jsonFile);
    if (this.#damaged) keepAs(path, join(this.folder, this.#damaged));
    await this.owner.leftovers.replace(path, serialize(json));
    this.#damaged = undefined;
    this.#json = json;
  }

  /** Writes settings that were damaged anew and tells what became of them. */
  async #mend(wrong: string, undated: boolean, damage: string[]): Promise<void> {
    const json = this.#json;
    const [first] = this.#agents;
    if (undated && first) json.created = first.state.created;
    const kept = [...Object.keys(json.cfg), ...Object.keys(json.env)].join(", ") || "none of them";
    const path = join(this.folder, jsonFile);
    const copy = wrong === missing ? "" : `${jsonFile}.damaged-${new Date().toISOString()}`;
    this.#damaged = copy || undefined;
    const where = copy && `, the old file is ${join(this.folder, copy)}`;
    // Before the file is whole again: a crash between the two must not keep this from being told.
    for (const { chat } of this.#agents)
      chat.block(
        "info",
        {},
        `The settings of this session were damaged (${jsonFile}: ${wrong}). Still set: ${kept}${where}.`,
      );
    try {
      await this.#save(json);
      damage.push(`${path}: ${wrong}; still set: ${kept}; written anew${where}`);
    } catch (error) {
      damage.push(`${path}: ${wrong}; still set: ${kept}; not written anew: ${toFault(error).message}`);
    }
  }

  #sort(): void {
    const time = (agent: AgentStore) => agent.state.created;
    this.#agents.sort((a, b) => time(a) - time(b) || (a.name < b.name ? -1 : 1));
  }
}

function serialize(json: SessionJson): string {
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

/** Only what is to be written there needs it: without it there is still much to read. */
function makeFolder(path: string, report: string[]): void {
  try {
    mkdirSync(path, { mode: folderMode, recursive: true });
  } catch (error) {
    report.push(`${path} could not be made: ${toFault(error).message}`);
  }
}

/** A second name for a file, so that the first can be given to another. */
function keepAs(path: string, copy: string): void {
  try {
    linkSync(path, copy);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw toFault(error, `${path} could not be kept`);
  }
}
