/** The registry of live sessions: each a root actor of its own. */
import type { Approvals } from "../elevate/approvals.ts";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import type { Store } from "../store/store.ts";
import type { Agent } from "./agent.ts";
import { agentPlan, checkEnv, checkedSessionKeys, splitKeys } from "./checked.ts";
import { agentKeys, checkName, newSessionKeys, sessionKeys, template } from "./keys.ts";
import { checkGiven, childKey, childName } from "./limits.ts";
import type { Keys, Runtime as LiveRuntime, Stamp } from "./live.ts";
import { metricsText } from "./metrics.ts";
import type { Services } from "./services.ts";
import { Session } from "./session.ts";
import { Stamps } from "./stamps.ts";

/** The root's texts that come from elsewhere; none of them waits for the network. */
export interface Reports {
  version(): string;
  backends(ask: boolean): string;
  models(ask: boolean): string;
  agents(): string;
  tools(): string;
  skills(): string;
  /** 9P requests by type and open connections. */
  ninep(): { ops: Record<string, number>; connections: number };
}

export class Runtime implements LiveRuntime {
  readonly #sessions = new Map<string, Session>();
  /** What `restore` found lost or could not open: a sentence each. */
  readonly damage: string[] = [];
  /** Sorted by name; made anew when somebody asks after a change. */
  #sorted?: Session[];
  readonly #stamps = new Stamps(Date.now());
  readonly version: () => string;
  readonly backends: (ask: boolean) => string;
  readonly models: (ask: boolean) => string;
  readonly agents: () => string;
  readonly tools: () => string;
  readonly skills: () => string;

  constructor(
    readonly store: Store,
    readonly services: Services,
    readonly reports: Reports,
  ) {
    ({
      version: this.version,
      backends: this.backends,
      models: this.models,
      agents: this.agents,
      tools: this.tools,
      skills: this.skills,
    } = reports);
  }

  get approvals(): Approvals {
    return this.services.elevation.approvals;
  }

  /** Brings back every session on disk. Returns one sentence for each thing that had to be mended or is lost. */
  async restore(): Promise<string[]> {
    const report: string[] = [];
    for (const name of this.store.names()) {
      try {
        const { session, report: mended, damage } = await this.store.loadSession(name);
        report.push(...mended);
        this.damage.push(...damage);
        const live = new Session(this, session, this.services);
        this.#sessions.set(name, live);
        report.push(...live.jobs.restore());
        live.resume();
      } catch (error) {
        this.damage.push(`session ${name} could not be opened: ${toFault(error).message}`);
      }
    }
    this.moved();
    return [...report, ...this.damage];
  }

  sessions(): readonly Session[] {
    this.#sorted ??= [...this.#sessions.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#sorted;
  }

  session(name: string): Session | undefined {
    return this.#sessions.get(name);
  }

  async createSession(keys: Keys, maker?: Agent): Promise<Session> {
    if (maker) checkGiven(keys);
    if (keys.get("from")) throw new Fault("invalid", "from: forking a session is not built in yet");
    const { session, agent, env } = splitKeys(keys);
    if (maker && !session.has("cwd")) session.set("cwd", "");
    const remote = maker?.session.target ?? session.get("remote") ?? "";
    const about = { maker, remote };
    const { name = "", ...cfg } = checkedSessionKeys(session, this.services, {
      ...about,
      known: newSessionKeys,
    });
    checkEnv(env);
    const first = agentPlan(agent, this.services, (wanted) => wanted, about);
    const sessionName = maker ? childName(name, maker) : name || newId();
    this.checkFree(sessionName);
    const store = await this.store.createSession(
      sessionName,
      { cfg: unset({ ...cfg, ...maker?.session.inherited }), env: unset(Object.fromEntries(env)) },
      [{ name: first.name, config: first.set.agent ?? "default", cfg: first.set }],
    );
    const live = new Session(this, store, this.services);
    this.#sessions.set(sessionName, live);
    for (const one of live.agents()) live.welcome(one);
    this.moved();
    return live;
  }

  amendSession(session: Session, keys: Keys, maker?: Agent): Promise<void> {
    return session.amend(keys, maker);
  }

  sessionTemplate(maker?: Agent): string {
    const { defaultBackend, defaultModel } = this.services;
    const cwd = maker?.profile.cwd() ?? this.services.cwd;
    const defaults = { agent: "default", backend: defaultBackend, model: defaultModel ?? "", cwd };
    if (maker) return template({ name: childKey(maker), ...agentKeys }, defaults);
    const variable = { check: () => {}, help: "a variable for the tools; any number of them" };
    return template({ ...sessionKeys, ...agentKeys, "env.NAME": variable }, defaults);
  }

  stamp(topic: "children"): Stamp {
    return this.#stamps.of(topic);
  }

  metrics(): string {
    const agents = this.sessions().flatMap((session) => session.agents());
    return metricsText(this.services.counters, {
      sessions: this.#sessions.size,
      agents: agents.length,
      busy: agents.filter((agent) => agent.busy).length,
      queued: agents.reduce((sum, agent) => sum + agent.queue().length, 0),
      jobs: this.sessions().reduce((sum, session) => sum + session.jobs.running.length, 0),
      remotes: countedBy(this.sessions().flatMap(({ reach, target }) => (target ? [reach.state] : []))),
      ...this.reports.ninep(),
    });
  }

  /** Refuses a name that is no name or that another session has. */
  checkFree(name: string, self?: Session): void {
    checkName(name);
    const other = this.#sessions.get(name);
    if (other && other !== self) throw new Fault("exists", `session ${name} exists`);
  }

  /** A session has another name, or there is one more. */
  moved(): void {
    for (const [name, session] of this.#sessions) {
      if (name === session.name) continue;
      this.#sessions.delete(name);
      this.#sessions.set(session.name, session);
    }
    this.#sorted = undefined;
    this.#stamps.touch("children");
  }

  forget(session: Session): void {
    // Looked for by itself: its name may just be changing.
    for (const [name, one] of this.#sessions) if (one === session) this.#sessions.delete(name);
    this.#sorted = undefined;
    this.#stamps.touch("children");
  }

  /** Interrupts every running turn and waits until all of them are on disk, at most `limit` milliseconds. Jobs go on. */
  async close(limit: number): Promise<void> {
    const agents = this.sessions().flatMap((session) => session.agents());
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, limit);
    await Promise.race([Promise.all(agents.map((agent) => agent.halt())), late]);
    for (const session of this.sessions()) session.jobs.letGo();
    await Promise.race([Promise.all(this.sessions().map((session) => session.reach.leave()?.close())), late]);
    clearTimeout(timer);
    await Promise.all(this.sessions().map((session) => session.servicePool.close()));
  }
}

function countedBy(words: readonly string[]): Record<string, number> {
  const counted: Record<string, number> = {};
  for (const word of words) counted[word] = (counted[word] ?? 0) + 1;
  return counted;
}

function unset(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}
