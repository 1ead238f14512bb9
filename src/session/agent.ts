/** A live agent: an actor, its store, and the views and verbs that the tree shows of them. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import type { Logger } from "pino";
import type { AgentRef } from "../../actors/agent.ts";
import { agentMachine } from "../../actors/agent.ts";
import { machineJson, machineMermaid, snapshotJson, stateLine } from "../../actors/view.ts";
import type { Backend, Usage } from "../backends/backend.ts";
import type { AgentConfig } from "../config/agents.ts";
import { Fault } from "../fault.ts";
import { newId } from "../ids.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { CallContext, Tool, ToolRegistry } from "../tools/tool.ts";
import { systemPrompt } from "../turn/context.ts";
import type { Gate } from "../turn/gate.ts";
import type { AgentSettings, TurnHost } from "../turn/host.ts";
import { Turn } from "../turn/turn.ts";
import { agentKeys, checkKeys, generation, keyLines } from "./keys.ts";
import type { Keys, LiveAgent, Stamp, Topic } from "./live.ts";
import type { Counters } from "./metrics.ts";
import type { Services } from "./services.ts";
import type { Session } from "./session.ts";
import { Stamps } from "./stamps.ts";
import { contextSize, costText, estimateTokens, lastContext, usageText } from "./tokens.ts";
import { Trace } from "./trace.ts";
import { runAgentVerb } from "./verbs.ts";

/** Settings that a running turn stands on. */
const groundKeys = ["backend", "model", "agent", "cwd"];

export class Agent implements LiveAgent, TurnHost {
  readonly qid: number;
  readonly turn: Turn;
  readonly #services: Services;
  readonly #stamps: Stamps;
  #ref?: AgentRef;
  #line = "idle";
  #changes = 0;
  #listeners?: Set<() => void>;
  #trace?: Trace;
  #removed = false;

  constructor(
    readonly session: Session,
    readonly store: AgentStore,
    services: Services,
  ) {
    this.#services = services;
    this.qid = services.nextQid();
    this.#stamps = new Stamps(store.state.created);
    this.turn = new Turn(this);
  }

  get name(): string {
    return this.store.name;
  }

  get created(): number {
    return this.store.state.created;
  }

  get removed(): boolean {
    return this.#removed;
  }

  // The actor.

  /** Called once, when the session's actor has spawned this agent's. */
  attach(ref: AgentRef): void {
    this.#ref = ref;
    ref.subscribe((snapshot) => this.#see(stateLine(snapshot)));
    ref.send({ type: "RESUME" });
  }

  #see(line: string): void {
    if (line === this.#line) return;
    this.#line = line;
    this.#changes++;
    this.touch("state");
    this.#notify();
  }

  #notify(): void {
    for (const listener of [...(this.#listeners ?? [])]) listener();
  }

  get state(): string {
    return this.#line;
  }

  get changes(): number {
    return this.#changes;
  }

  get settled(): boolean {
    return this.#line === "idle";
  }

  watch(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }

  /** A turn runs, or is about to. */
  get busy(): boolean {
    return this.#line !== "idle";
  }

  get trace(): Trace {
    this.#trace ??= new Trace();
    return this.#trace;
  }

  machine(): string {
    return machineJson(agentMachine);
  }

  mermaid(): string {
    return machineMermaid(agentMachine);
  }

  snapshot(): string {
    return snapshotJson(this.#actor().getSnapshot());
  }

  #actor(): AgentRef {
    if (!this.#ref) throw new Fault("io", `agent ${this.name} has no actor`);
    return this.#ref;
  }

  // What it is told.

  async submit(text: string): Promise<void> {
    await this.#accept(text, "prompt");
    this.#actor().send({ type: "WAKE" });
  }

  async enqueue(text: string): Promise<void> {
    await this.#accept(text, "queue");
  }

  /** Into the running turn with its next results; where no turn runs, a prompt like any other. */
  async inject(text: string): Promise<void> {
    await this.#accept(text, "inject");
    this.#actor().send({ type: "WAKE" });
  }

  async #accept(text: string, how: "prompt" | "queue" | "inject"): Promise<void> {
    this.#alive();
    this.store.append({ t: "prompt", id: newId(), text, how });
    this.touch("queue");
    await this.store.sync();
    this.#alive();
  }

  #alive(): void {
    if (this.#removed) throw new Fault("missing", `agent ${this.name} has been removed`);
  }

  stop(): void {
    this.#actor().send({ type: "STOP" });
  }

  /** The server ends: interrupts the turn and begins no other. Resolves when all of it is on disk. */
  halt(): Promise<void> {
    this.turn.halt();
    if (!this.busy) return Promise.resolve();
    this.stop();
    return new Promise((resolve) => {
      const unwatch = this.watch(() => {
        if (this.busy) return;
        unwatch();
        resolve();
      });
    });
  }

  async ctl(line: string): Promise<void> {
    await runAgentVerb(this, line);
  }

  async slash(line: string): Promise<void> {
    const answer = await runAgentVerb(this, line.slice(1));
    if (this.#removed) return;
    this.store.chat.block("info", {}, answer);
    this.touch("chat");
  }

  async clear(): Promise<void> {
    this.refuseWhileBusy("clear");
    this.store.append({ t: "clear" });
    this.store.chat.block(
      "info",
      {},
      "The history begins anew here; nothing above is sent to the model any more.",
    );
    this.touch("turn", "chat", "usage");
    await this.store.sync();
  }

  /** Takes the Nth waiting text (from 1) out of the queue, the first if none is named; returns it. */
  async dequeue(n = 1): Promise<string> {
    const waiting = this.store.state.waiting;
    const taken = waiting[n - 1];
    if (!taken)
      throw new Fault(
        "invalid",
        waiting.length === 0 ? "the queue is empty" : `the queue has no entry ${n}, only ${waiting.length}`,
      );
    this.store.append({ t: "dequeue", id: taken.id });
    this.touch("queue");
    await this.store.sync();
    return taken.text;
  }

  refuseWhileBusy(what: string): void {
    if (this.busy)
      throw new Fault("busy", `${what} has to wait for the end of the running turn; stop ends it`);
  }

  // Views.

  get chat() {
    return this.store.chat;
  }

  promptPrev(): string {
    return this.store.prevPrompt();
  }

  queue(): readonly { id: string; text: string }[] {
    return this.store.state.waiting;
  }

  reply(): Promise<string> {
    return this.store.reply();
  }

  offset(): number {
    const { running, last } = this.store.state;
    return (running ?? last)?.offset ?? 0;
  }

  cost(): string {
    return costText(this.store.state);
  }

  usage(): string {
    return usageText(this.store.state);
  }

  async ctxsz(): Promise<string> {
    const { backend, model } = this.settings();
    const tokens = lastContext(this.store.state) ?? estimateTokens(await this.#requestLength());
    return contextSize(tokens, this.#services.knownWindow(backend, model));
  }

  /** Characters that the next request would carry. */
  async #requestLength(): Promise<number> {
    return (await this.context()).length + (await this.systemPrompt()).length;
  }

  async context(): Promise<string> {
    let lines = "";
    for (const message of await this.store.history()) lines += `${JSON.stringify(message)}\n`;
    return lines;
  }

  models(): string {
    return this.#services.knownModels(this.settings().backend);
  }

  // Settings.

  config(): AgentConfig {
    return this.#services.agentConfig(this.#set("agent") ?? this.store.state.config);
  }

  /** What was set on this agent itself; undefined where nothing was. */
  #set(key: string): string | undefined {
    return this.store.state.cfg.get(key) || undefined;
  }

  settings(): AgentSettings {
    const config = this.config();
    const backend = this.#set("backend") ?? config.backend ?? this.#services.defaultBackend();
    const maxSteps = this.#set("maxSteps") ?? config.maxSteps;
    return {
      backend,
      model: this.#set("model") ?? config.model ?? this.#defaultModel(backend),
      agent: config.name,
      cwd: this.#set("cwd") ?? this.session.cwd,
      maxSteps: maxSteps === undefined ? undefined : Number(maxSteps),
      params: { ...config.params, ...generation((key) => this.#set(key)) },
    };
  }

  /** `OLLIE_MODEL` belongs to `OLLIE_BACKEND`; another backend has a default of its own. */
  #defaultModel(backend: string): string {
    const { defaultBackend, defaultModel } = this.#services;
    return (backend === defaultBackend() && defaultModel()) || this.#services.backend(backend).defaultModel;
  }

  describe(): { backend: string; model: string; cwd: string } {
    try {
      const { backend, model, cwd } = this.settings();
      return { backend, model, cwd };
    } catch {
      // The config or backend it was made with is gone; a list of agents must not fail for that.
      return {
        backend: this.#set("backend") ?? "?",
        model: this.#set("model") ?? "?",
        cwd: this.#set("cwd") ?? this.session.cwd,
      };
    }
  }

  cfg(): string {
    const settings = this.settings();
    const shown: Record<string, unknown> = { ...settings, ...settings.params };
    return keyLines(
      Object.keys(agentKeys).map((key) => {
        const value = shown[key];
        return [
          key,
          value === undefined ? "" : Array.isArray(value) ? JSON.stringify(value) : String(value),
        ] as const;
      }),
    );
  }

  async configure(keys: Keys): Promise<void> {
    const set = this.checkConfigure(keys);
    this.store.append({ t: "cfg", set });
    this.touch("cfg", "tools", "turn");
    await this.store.sync();
  }

  /** Refuses what makes no sense or comes at a bad time; returns what is to be set. */
  checkConfigure(keys: Keys): Record<string, string | null> {
    const set = checkedSettings(keys, this.#services);
    const moved = groundKeys.find((key) => key in set && (set[key] ?? undefined) !== this.#set(key));
    if (moved) this.refuseWhileBusy(`a change of ${moved}`);
    return set;
  }

  // Tools.

  loadedTools(): Tool[] {
    const { loaded, unloaded } = this.store.state;
    const names = new Set(this.#autoLoad().filter((name) => !unloaded.has(name)));
    for (const name of loaded) names.add(name);
    return this.registry.list().filter((tool) => names.has(tool.name) && this.#allowed(tool.name));
  }

  /** What the config loads: a cold tool is only listed until somebody asks for it. */
  #autoLoad(): string[] {
    return this.config().autoLoad.filter((name) => this.registry.get(name)?.tier === "hot");
  }

  /** What the config wants loaded and this host does not have. */
  missingTools(): string[] {
    return this.config().autoLoad.filter((name) => !this.registry.get(name));
  }

  #allowed(name: string): boolean {
    const { allowTools } = this.config();
    return allowTools.length === 0 || allowTools.includes(name);
  }

  tools(): readonly string[] {
    return this.loadedTools().map((tool) => tool.name);
  }

  async changeTools(words: readonly string[]): Promise<void> {
    const load: string[] = [];
    const unload: string[] = [];
    const loaded = new Set(this.tools());
    for (const word of words) {
      const name = word.replace(/^[-+]/, "");
      if (word.startsWith("-")) {
        if (!loaded.has(name)) throw new Fault("missing", `tool ${name} is not loaded`);
        unload.push(name);
        continue;
      }
      if (!this.registry.get(name))
        throw new Fault("missing", `no tool ${name} on this host; the file tools of the root lists them`);
      if (!this.#allowed(name))
        throw new Fault("denied", `tool ${name} is not in allowTools of agent ${this.config().name}`);
      load.push(name);
    }
    this.store.append({ t: "tools", load, unload });
    this.touch("tools");
    await this.store.sync();
  }

  // What a turn needs.

  get registry(): ToolRegistry {
    return this.#services.registry;
  }

  get gate(): Gate {
    return this.session.gate;
  }

  get log(): Logger {
    return this.#services.log;
  }

  get transcripts(): string {
    return this.#services.transcripts;
  }

  backend(name: string): Backend {
    return this.#services.backend(name);
  }

  async systemPrompt(): Promise<string> {
    const loaded = new Set(this.tools());
    return systemPrompt({
      config: this.config(),
      cwd: this.settings().cwd,
      prompts: this.#services.prompts(),
      loadable: this.registry.list().filter((tool) => !loaded.has(tool.name) && this.#allowed(tool.name)),
    });
  }

  callContext(): CallContext {
    const { toolsPath, memoryPath, addr } = this.#services;
    return {
      session: this.session.name,
      agent: this.name,
      cwd: this.settings().cwd,
      env: Object.fromEntries(this.session.envMap()),
      tmp: this.session.store.tmp,
      addr,
      toolsPath,
      memoryPath,
    };
  }

  retryDelay(error: unknown, attempt: number): number | undefined {
    return this.#services.retryDelay(error, attempt);
  }

  whyNot(error: unknown, attempt: number): string | undefined {
    return this.#services.whyNot(error, attempt);
  }

  costOf(usage: Usage, backend: string, model: string): number | undefined {
    return this.#services.costOf(usage, backend, model);
  }

  stamp(topic: Topic): Stamp {
    return this.#stamps.of(topic);
  }

  touch(...topics: Topic[]): void {
    for (const topic of topics) this.#stamps.touch(topic);
  }

  count(what: keyof Counters, n = 1): void {
    this.#services.counters[what] += n;
  }

  // Its end.

  async rename(name: string): Promise<void> {
    await this.session.renameAgent(this, name);
  }

  async remove(): Promise<void> {
    await this.session.removeAgent(this);
  }

  /** The actor is gone; whoever waits for this agent learns that it will not come back. */
  end(): void {
    this.#removed = true;
    this.turn.dispose();
    this.#notify();
  }
}

/** Checks agent keys as a create or cfg write gives them; null unsets. */
export function checkedSettings(keys: Keys, services: Services): Record<string, string | null> {
  checkKeys(keys, agentKeys);
  const set: Record<string, string | null> = {};
  for (const [key, value] of keys) set[key] = value === "" ? null : value;
  if (set.backend) services.backend(set.backend);
  if (set.agent) services.agentConfig(set.agent);
  if (set.cwd) set.cwd = checkFolder(set.cwd);
  return set;
}

/** An absolute path of an existing folder; `~` is the home folder. */
export function checkFolder(path: string): string {
  const full = path === "~" || path.startsWith("~/") ? homedir() + path.slice(1) : path;
  if (!full.startsWith("/")) throw new Fault("invalid", `cwd=${path}: an absolute path is right`);
  let isFolder = false;
  try {
    isFolder = statSync(full).isDirectory();
  } catch {}
  if (!isFolder) throw new Fault("missing", `cwd=${path}: there is no such folder`);
  return full;
}
