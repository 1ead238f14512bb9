/** A live session: the actor above its agents, its store, and the views and verbs that the tree shows. */
import { createActor } from "xstate";
import type { AgentRef } from "../../actors/agent.ts";
import type { SessionRef } from "../../actors/session.ts";
import { Fault } from "../fault.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { SessionStore } from "../store/session-store.ts";
import { ServicePool } from "../tools/service.ts";
import { Gate } from "../turn/gate.ts";
import { Agent } from "./agent.ts";
import { agentPlan, checkEnv, checkedSessionKeys, splitKeys } from "./checked.ts";
import { endThere } from "./end-there.ts";
import { Jobs } from "./jobs.ts";
import { agentKeys, checkName, envLines, keyLines, sessionKeys, template } from "./keys.ts";
import { checkGiven, childName } from "./limits.ts";
import type { Keys, LiveSession, Stamp, Topic } from "./live.ts";
import { liveSession } from "./machine.ts";
import { ownerOf } from "./owner.ts";
import { Reach } from "./reach.ts";
import { recover } from "./recover.ts";
import type { SessionRemote } from "./remote.ts";
import type { Runtime } from "./runtime.ts";
import type { Services } from "./services.ts";
import { Stamps } from "./stamps.ts";
import { tap } from "./tap.ts";

export class Session implements LiveSession {
  readonly qid: number;
  readonly gate = new Gate();
  readonly jobs: Jobs;
  /** The programs that run beside the calls of its agents. */
  readonly servicePool = new ServicePool();
  /** Where its tools run. */
  readonly reach: Reach;
  readonly #services: Services;
  readonly #stamps: Stamps;
  readonly #actor: SessionRef;
  #agents: Agent[] = [];
  /** Names of agents that are being made. */
  readonly #reserved = new Set<string>();
  #removed = false;
  readonly #ending = new AbortController();

  constructor(
    readonly runtime: Runtime,
    readonly store: SessionStore,
    services: Services,
  ) {
    this.#services = services;
    this.qid = services.nextQid();
    this.#stamps = new Stamps(store.json.created);
    this.reach = new Reach(
      services,
      () => ownerOf(this),
      () => this.#reachChanged(),
    );
    this.#actor = createActor(liveSession, { id: "session", inspect: tap(this) });
    this.#actor.start();
    this.jobs = new Jobs(this, services, this.#actor);
    for (const agent of store.agents()) this.#adopt(agent);
  }

  /** Says in chat what the config of an agent just made asks for in vain. What another host has is not known yet. */
  welcome(agent: Agent): void {
    if (this.target) return;
    const missing = agent.toolbox.missing().join(", ");
    if (!missing) return;
    agent.chat.block(
      "info",
      {},
      `The agent config asks for tools that do not exist on this host: ${missing}.`,
    );
  }

  #adopt(store: AgentStore): Agent {
    const agent = new Agent(this, store, this.#services);
    this.#agents.push(agent);
    agent.start();
    return agent;
  }

  /** Starts the actor of an agent, also in the place of one that broke. */
  spawn(agent: Agent): AgentRef {
    const id = actorId(agent);
    this.#actor.send({ type: "ADD", id, work: agent.turns });
    return this.#actor.getSnapshot().children[id] as AgentRef;
  }

  get name(): string {
    return this.store.name;
  }

  get created(): number {
    return this.store.json.created;
  }

  get removed(): boolean {
    return this.#removed;
  }

  get cwd(): string {
    return this.store.json.cfg.cwd || (this.target ? "~" : this.#services.cwd);
  }

  /** The host that its tools run on, as `remote=` says; empty: this one. */
  get target(): string {
    return this.store.json.cfg.remote ?? "";
  }

  /** What child sessions that tools make are to have in common with it. */
  get inherited(): Record<string, string> {
    const { sandbox = "", remote = "" } = this.store.json.cfg;
    return { sandbox, remote };
  }

  /** The folder that `cwd` has to stay in, links resolved; undefined in a session that was made before that was kept. */
  get within(): string | undefined {
    return this.store.json.cfg.cwd ? this.store.json.cfg.within : this.#services.cwd;
  }

  get remote(): Reach {
    return this.reach;
  }

  stamp(topic: Topic): Stamp {
    return this.#stamps.of(topic);
  }

  // Agents.

  agents(): readonly Agent[] {
    return this.#agents;
  }

  agent(name: string): Agent | undefined {
    return this.#agents.find((agent) => agent.name === name);
  }

  agentByActor(id: string): Agent | undefined {
    return this.#agents.find((agent) => actorId(agent) === id);
  }

  async createAgent(keys: Keys, maker?: Agent): Promise<Agent> {
    this.#alive();
    if (maker) checkGiven(keys);
    // Where a tool makes it, it has a folder of its own: the session's may be one that the maker has no business in.
    const wanted = maker ? new Map([["cwd", ""], ...keys]) : keys;
    const { name, set } = agentPlan(wanted, this.#services, (wanted) => this.#freeName(wanted), {
      maker,
      remote: this.target,
    });
    if (this.#taken(name)) throw new Fault("exists", `agent ${name} exists in session ${this.name}`);
    this.#reserved.add(name);
    try {
      const store = await this.store.createAgent(name, set.agent ?? "default", set);
      this.#alive();
      const agent = this.#adopt(store);
      this.welcome(agent);
      this.#stamps.touch("children");
      return agent;
    } finally {
      this.#reserved.delete(name);
    }
  }

  #taken(name: string): boolean {
    return this.#reserved.has(name) || this.agent(name) !== undefined;
  }

  #freeName(wanted: string): string {
    if (!this.#taken(wanted)) return wanted;
    for (let n = 2; ; n++) if (!this.#taken(`${wanted}-${n}`)) return `${wanted}-${n}`;
  }

  async amendAgent(agent: Agent, keys: Keys, maker?: Agent): Promise<void> {
    if (maker) checkGiven(keys);
    const rest = new Map(keys);
    const name = rest.get("name");
    rest.delete("name");
    if (name !== undefined) this.#checkNewName(agent, name);
    agent.checkConfigure(rest, maker);
    if (name !== undefined) await agent.rename(name);
    if (rest.size > 0) await agent.configure(rest, maker);
  }

  #checkNewName(agent: Agent, name: string): void {
    checkName(name);
    if (name !== agent.name && this.#taken(name))
      throw new Fault("exists", `agent ${name} exists in session ${this.name}`);
  }

  async renameAgent(agent: Agent, name: string): Promise<void> {
    this.#checkNewName(agent, name);
    if (name === agent.name) return;
    await agent.store.renameTo(name);
    this.#stamps.touch("children");
  }

  async removeAgent(agent: Agent): Promise<void> {
    if (!this.#agents.includes(agent)) return;
    this.#agents = this.#agents.filter((one) => one !== agent);
    this.#actor.send({ type: "REMOVE", id: actorId(agent) });
    agent.end();
    this.#stamps.touch("children");
    await agent.store.remove();
  }

  agentTemplate(maker?: Agent): string {
    const name = {
      check: () => {},
      help: "a file name of at most 128 bytes; empty: that of the agent config",
    };
    const backend = this.#services.defaultBackend;
    return template(
      { name, ...agentKeys },
      { agent: "default", cwd: maker?.profile.cwd() ?? this.cwd, backend },
    );
  }

  #reachChanged(): void {
    this.#stamps.touch("remote");
    this.recover();
  }

  /** The tools run somewhere else from now on; none has run there yet. */
  async #move(): Promise<void> {
    const left = this.reach.leave();
    if (this.store.json.locator) await this.store.update((json) => delete json.locator);
    if (left) void endThere(left, this.name, this.#services.log);
  }

  /** Goes on after a restart with what was under way on another host. */
  resume(): void {
    const unknown = this.#agents.some((agent) => agent.store.state.operations.size > 0);
    if (!this.target || !unknown) return;
    // A host that cannot be reached is tried again by itself, or when somebody asks for it.
    this.reach.remote?.hands.ready(this.#ending.signal, { lost() {}, back() {} }).catch(() => {});
  }

  /** Accounts for what turns have left on another host, as far as that can be asked. */
  recover(): void {
    if (this.target && !this.#removed) void recover(this, this.#services.log);
  }

  /** There is one more job, or one less. */
  jobsChanged(): void {
    this.#stamps.touch("jobs");
  }

  // Its own files.

  cfg(): string {
    const { cfg } = this.store.json;
    const shown: Record<string, string> = { ...cfg, name: this.name, cwd: this.cwd };
    return keyLines(Object.keys(sessionKeys).map((key) => [key, shown[key] ?? ""] as const));
  }

  shares(name: string): boolean {
    const listed = (this.store.json.cfg.share ?? "").split(",");
    return listed.some((one) => one.trim() === name);
  }

  async configure(keys: Keys, maker?: Agent): Promise<void> {
    const { name, ...set } = this.#checkConfigure(keys, maker);
    const before = this.target;
    if (name !== undefined) await this.rename(name);
    await this.store.update((json) => {
      for (const [key, value] of Object.entries(set)) {
        if (value === "") delete json.cfg[key];
        else json.cfg[key] = value;
      }
    });
    if (set.remote !== undefined && set.remote !== before) await this.#move();
    this.#stamps.touch("cfg");
    for (const agent of this.#agents) agent.touch("cfg", "turn");
  }

  #checkConfigure(keys: Keys, maker?: Agent): Record<string, string> {
    const wanted = keys.get("remote");
    const moves = wanted !== undefined && wanted !== this.target;
    if (moves) this.#checkMove();
    // A folder of one host says nothing of another one's.
    const all = moves && !keys.has("cwd") ? new Map([...keys, ["cwd", this.store.json.cfg.cwd ?? ""]]) : keys;
    const set = checkedSessionKeys(all, this.#services, { maker, remote: this.target });
    if (set.name !== undefined) this.runtime.checkFree(set.name, this);
    if (set.cwd !== undefined && set.cwd !== this.store.json.cfg.cwd)
      for (const agent of this.#agents) agent.refuseWhileBusy("a change of cwd");
    return set;
  }

  #checkMove(): void {
    if (this.#agents.some((agent) => agent.store.state.ranElsewhere))
      throw new Fault(
        "denied",
        `remote: tools of this session have run on ${this.target}, where its project is; make another session (session/new) for another host`,
      );
    for (const agent of this.#agents) agent.refuseWhileBusy("a change of remote");
  }

  envMap(): ReadonlyMap<string, string> {
    return new Map(Object.entries(this.store.json.env));
  }

  env(): string {
    return envLines([...this.envMap()].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  async changeEnv(keys: Keys): Promise<void> {
    checkEnv(keys);
    await this.store.update((json) => {
      for (const [key, value] of keys) {
        if (value === "") delete json.env[key];
        else json.env[key] = value;
      }
    });
    this.#stamps.touch("env");
  }

  /** Everything that a further write on the same `session/new` fid may add. */
  async amend(keys: Keys, maker?: Agent): Promise<void> {
    if (maker) {
      checkGiven(keys);
      // The owner may have taken it over meanwhile.
      childName(this.name, maker);
    }
    const { session, agent, env } = splitKeys(keys);
    const name = session.get("name");
    if (maker && name !== undefined) session.set("name", childName(name, maker));
    const [first] = this.#agents;
    this.#checkConfigure(session, maker);
    checkEnv(env);
    if (agent.size > 0) {
      if (!first)
        throw new Fault(
          "missing",
          `session ${this.name} has no agent that ${[...agent.keys()][0]} could be set on`,
        );
      first.checkConfigure(agent, maker);
    }
    if (env.size > 0) await this.changeEnv(env);
    if (session.size > 0) await this.configure(session, maker);
    if (agent.size > 0) await first!.configure(agent, maker);
  }

  plan(): Uint8Array {
    return this.store.plan();
  }

  async writePlan(text: Uint8Array): Promise<void> {
    this.#alive();
    await this.store.writePlan(text);
    this.#stamps.touch("plan");
  }

  checkCtl(line: string): void {
    this.#verb(line);
  }

  async ctl(line: string): Promise<void> {
    await this.#verb(line)();
  }

  /** What a line of `ctl` asks for. */
  #verb(line: string): () => Promise<void> {
    const [, word, argument] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(line)!;
    if (word === "rename" || word === "rn") {
      if (!argument) throw new Fault("invalid", "rename NAME: NAME is missing");
      return () => this.rename(argument);
    }
    const action = Object.hasOwn(this.#verbs, word!) ? this.#verbs[word!] : undefined;
    if (!action) {
      const known = Object.keys(this.#verbs).join(" ");
      throw new Fault("invalid", `unknown verb ${word || '""'}; there are ${known} rename`);
    }
    if (argument) throw new Fault("invalid", `${word} takes no argument`);
    return action;
  }

  readonly #verbs: Record<string, () => Promise<void>> = {
    stop: async () => {
      for (const agent of this.#agents) agent.stop();
    },
    kill: () => this.remove(),
    save: async () => {
      for (const agent of this.#agents) await agent.ctl("save");
    },
    reconnect: async () => this.reach.required("reconnect").reconnect(),
    sync: () => this.reach.required("sync").sync(),
  };

  // Its end.

  async rename(name: string): Promise<void> {
    this.runtime.checkFree(name, this);
    if (name === this.name) return;
    this.#alive();
    await this.store.renameTo(name);
    this.#stamps.touch("name");
    this.runtime.moved();
  }

  async remove(): Promise<void> {
    if (this.#removed) return;
    this.#removed = true;
    this.#ending.abort();
    if (this.jobs.busy) {
      // Their actors end with the session's, so they come first; and none is started meanwhile.
      for (const agent of this.#agents) agent.stop();
      await this.jobs.endAll();
    }
    this.#actor.send({ type: "KILL" });
    this.#actor.stop();
    for (const agent of this.#agents) agent.end();
    this.jobs.retire();
    this.runtime.forget(this);
    const { locator } = this.store.json;
    const there = this.reach.opened ?? (locator && this.#lastWay());
    this.reach.leave();
    this.reach.end();
    if (there) void endThere(there, this.name, this.#services.log);
    await this.servicePool.close();
    await this.store.remove();
  }

  /** To a host that this server has not needed yet. */
  #lastWay(): SessionRemote | undefined {
    try {
      return this.reach.remote;
    } catch {
      return undefined;
    }
  }

  #alive(): void {
    if (this.#removed) throw new Fault("missing", `session ${this.name} has been removed`);
  }
}

/** An agent's actor keeps its id when the agent is renamed. */
function actorId(agent: Agent): string {
  return `agent:${agent.store.state.id}`;
}
