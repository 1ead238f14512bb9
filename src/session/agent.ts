/** A live agent: an actor, its store, and the views and verbs that the tree shows of them. */
import { type AgentRef, agentMachine } from "../../actors/agent.ts";
import { machineJson, machineMermaid } from "../../actors/view.ts";
import { Fault, toFault } from "../fault.ts";
import { newId } from "../ids.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { Waiting } from "../store/records.ts";
import { Turns } from "../turn/turns.ts";
import { type ActorOwner, AgentActor } from "./actor.ts";
import { checkedSettings } from "./checked.ts";
import { Host } from "./host.ts";
import type { Keys, LiveAgent, Stamp, Topic } from "./live.ts";
import { Profile } from "./profile.ts";
import type { Services } from "./services.ts";
import type { Session } from "./session.ts";
import { Stamps } from "./stamps.ts";
import { contextSize, costText, estimateTokens, lastContext, sumOfCosts, usageText } from "./tokens.ts";
import { Toolbox } from "./toolbox.ts";
import { Trace } from "./trace.ts";
import { checkAgentVerb, runAgentVerb } from "./verbs.ts";

/** Milliseconds that a reader of the system prompt waits for another host. */
const surveyLimit = 10_000;

export class Agent implements LiveAgent, ActorOwner {
  readonly qid: number;
  readonly turns: Turns;
  readonly profile: Profile;
  readonly toolbox: Toolbox;
  readonly #services: Services;
  readonly #host: Host;
  readonly #stamps: Stamps;
  readonly #actor = new AgentActor(this);
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
    this.profile = new Profile(store, services, session);
    this.toolbox = new Toolbox(store, session.reach, this.profile);
    this.#host = new Host(this, services);
    this.turns = new Turns(this.#host);
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

  stamp(topic: Topic): Stamp {
    return this.#stamps.of(topic);
  }

  touch(...topics: Topic[]): void {
    for (const topic of topics) this.#stamps.touch(topic);
  }

  // The actor.

  /** Called once, when the session knows this agent. */
  start(): void {
    this.#actor.start();
  }

  spawn(): AgentRef {
    return this.session.spawn(this);
  }

  stateChanged(): void {
    this.touch("state");
    if (!this.busy && this.store.state.operations.size > 0) this.session.recover();
  }

  async actorBroke(error: unknown): Promise<boolean> {
    const { log } = this.#services;
    log.error({ err: error, session: this.session.name, agent: this.name }, "an agent's machine broke");
    await this.turns.abandon(`ollie made a mistake (${toFault(error).message}); its log tells more`);
    return !this.#removed;
  }

  get state(): string {
    return this.#actor.line;
  }

  get changes(): number {
    return this.#actor.changes;
  }

  get settled(): boolean {
    return !this.busy;
  }

  /** A turn runs. */
  get busy(): boolean {
    return this.#actor.busy;
  }

  watch(listener: () => void): () => void {
    return this.#actor.watch(listener);
  }

  get trace(): Trace {
    this.#trace ??= new Trace(this.store.secrets);
    return this.#trace;
  }

  machine(): string {
    return machineJson(agentMachine);
  }

  mermaid(): string {
    return machineMermaid(agentMachine);
  }

  snapshot(): string {
    return this.store.secrets.mask(this.#actor.snapshot(this.session.reach.opened?.snapshot()));
  }

  // What it is told.

  /** `id`: under which the journal keeps it. */
  async submit(text: string, id = newId()): Promise<void> {
    await this.#accept(text, "prompt", id);
    this.#askWindow();
    this.#actor.send({ type: "WAKE" });
  }

  async enqueue(text: string): Promise<void> {
    await this.#accept(text, "queue");
  }

  /** Into the running turn with its next results; where no turn runs, a prompt like any other. */
  async inject(text: string): Promise<void> {
    await this.#accept(text, "inject");
    this.#actor.send({ type: "WAKE" });
  }

  async #accept(text: string, how: Waiting["how"], id = newId()): Promise<void> {
    this.#alive();
    this.store.append({ t: "prompt", id, text, how });
    this.touch("queue");
    try {
      await this.store.sync();
    } catch (error) {
      this.#alive();
      // Whoever wrote it is told that it failed, and may write it again: it must not run as well.
      this.store.appendOrOwe({ t: "dequeue", id });
      throw error;
    }
    this.#alive();
  }

  /** So that `ctxsz` can tell it when the turn is over. What is wrong with the settings is told by the turn. */
  #askWindow(): void {
    const { backend, model } = this.profile.describe();
    this.#services.knownWindow(backend, model, true);
  }

  #alive(): void {
    if (this.#removed) throw new Fault("missing", `agent ${this.name} has been removed`);
  }

  stop(): void {
    this.#actor.send({ type: "STOP" });
  }

  /** The server ends: interrupts the turn and begins no other. Resolves when all of it is on disk. */
  halt(): Promise<void> {
    this.turns.halt();
    this.stop();
    return this.#actor.idle();
  }

  checkCtl(line: string): void {
    checkAgentVerb(line);
  }

  async ctl(line: string): Promise<void> {
    checkAgentVerb(line);
    await runAgentVerb(this, line);
  }

  async slash(line: string): Promise<void> {
    const answer = await runAgentVerb(this, line.slice(1));
    if (this.#removed || answer === "") return;
    this.inform({}, answer);
  }

  /** Says something in chat that the model does not get. */
  inform(attrs: Record<string, string>, text: string): void {
    this.store.chat.block("info", attrs, text);
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
    const { waiting } = this.store.state;
    const taken = waiting[n - 1];
    if (!taken) {
      const problem = waiting.length === 0 ? "is empty" : `has no entry ${n}, only ${waiting.length}`;
      throw new Fault("invalid", `the queue ${problem}`);
    }
    this.store.append({ t: "dequeue", id: taken.id });
    this.touch("queue");
    await this.store.sync();
    return taken.text;
  }

  refuseWhileBusy(what: string): void {
    if (this.busy)
      throw new Fault("busy", `${what} has to wait for the end of the running turn; stop ends it`);
  }

  // What it shows.

  get chat() {
    return this.store.chat;
  }

  promptPrev(): string {
    return this.store.prevPrompt();
  }

  queue(): readonly { id: string; text: string }[] {
    return this.store.state.waiting;
  }

  async reply(): Promise<string> {
    return this.store.secrets.mask(await this.store.reply());
  }

  offset(): number {
    const { running, last } = this.store.state;
    return (running ?? last)?.offset ?? 0;
  }

  cost(): string {
    const states = this.session.agents().map((agent) => agent.store.state);
    return costText(this.store.state.turn.cost, sumOfCosts(states));
  }

  usage(): string {
    return usageText(this.store.state);
  }

  async ctxsz(ask: boolean): Promise<string> {
    const { backend, model } = this.profile.settings();
    const tokens = lastContext(this.store.state) ?? estimateTokens(await this.#requestLength());
    return contextSize(tokens, this.#services.knownWindow(backend, model, ask));
  }

  /** Characters that the next request would carry. */
  async #requestLength(): Promise<number> {
    return (await this.context()).length + (await this.systemPrompt()).length;
  }

  async context(): Promise<string> {
    let lines = "";
    for (const message of this.store.masked(await this.store.history()))
      lines += `${JSON.stringify(message)}\n`;
    return lines;
  }

  async systemPrompt(): Promise<string> {
    return this.#host.systemPrompt(await this.#host.survey(AbortSignal.timeout(surveyLimit)));
  }

  models(ask: boolean): string {
    return this.#services.knownModels(this.profile.settings().backend, ask);
  }

  // What it runs on.

  cfg(): string {
    return this.profile.text();
  }

  describe(): { backend: string; model: string; cwd: string } {
    return this.profile.describe();
  }

  async configure(keys: Keys, maker?: Agent): Promise<void> {
    this.store.append({ t: "cfg", set: this.checkConfigure(keys, maker) });
    this.touch("cfg", "tools", "turn");
    await this.store.sync();
  }

  /** Refuses what makes no sense or comes at a bad time; returns what is to be set. */
  checkConfigure(keys: Keys, maker?: Agent): Record<string, string | null> {
    const set = checkedSettings(keys, this.#services, { maker, remote: this.session.target });
    const moved = this.profile.groundMoved(set);
    if (moved) this.refuseWhileBusy(`a change of ${moved}`);
    return set;
  }

  tools(): readonly string[] {
    return this.toolbox.loaded().map((tool) => tool.name);
  }

  async changeTools(words: readonly string[]): Promise<void> {
    this.toolbox.change(words);
    this.touch("tools");
    await this.store.sync();
  }

  /** The folder that `save` writes to. */
  get transcripts(): string {
    return this.#services.transcripts;
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
    this.turns.dispose();
    this.#actor.end();
  }
}
