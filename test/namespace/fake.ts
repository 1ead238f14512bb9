/** Sessions and agents that keep what they are told in memory, and whose state a test moves by hand. */
import pino from "pino";
import { Approvals } from "../../src/elevate/approvals.ts";
import { Fault } from "../../src/fault.ts";
import type { Keys, LiveAgent, LiveSession, Runtime, Stamp, Topic } from "../../src/session/live.ts";

import type { FakeJob } from "./fake-job.ts";
import { FakeLog, nextQid, Stamps, started } from "./fake-parts.ts";

const knownKeys = new Set(["name", "cwd", "model", "temperature", "agent", "share"]);

export class FakeAgent implements LiveAgent {
  readonly qid = nextQid();
  readonly created = started;
  readonly #stamps = new Stamps();
  readonly #listeners = new Set<() => void>();
  readonly chat = new FakeLog();
  readonly trace = new FakeLog();
  state = "idle";
  changes = 0;
  settled = true;
  removed = false;
  /** What it was told, in order. */
  readonly told: string[] = [];
  readonly prompts: string[] = [];
  readonly waiting: string[] = [];
  readonly keys: Keys = new Map();
  readonly loaded = new Set<string>(["shell"]);
  replyText = "";
  /** How often the context was put together. */
  contexts = 0;

  constructor(
    readonly session: FakeSession,
    public name: string,
  ) {}

  stamp(topic: Topic): Stamp {
    return this.#stamps.stamp(topic);
  }

  touch(topic: Topic): void {
    this.#stamps.touch(topic);
  }

  become(state: string, settled = state === "idle"): void {
    if (state !== this.state) this.changes++;
    this.state = state;
    this.settled = settled;
    this.touch("state");
    this.notify();
  }

  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  get watchers(): number {
    return this.#listeners.size;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async submit(text: string): Promise<void> {
    this.prompts.push(text);
    this.touch("turn");
    this.become("thinking");
  }

  async enqueue(text: string): Promise<void> {
    this.waiting.push(text);
    this.touch("queue");
  }

  checkCtl(line: string): void {
    if (!/^(stop|clear|model \S+|inject .*)$/s.test(line))
      throw new Fault("invalid", `unknown verb ${line}; there are stop clear model inject`);
  }

  async ctl(line: string): Promise<void> {
    await Bun.sleep(1);
    this.checkCtl(line);
    if (line === "model busy") throw new Fault("busy", "not now");
    this.told.push(line);
  }

  async slash(line: string): Promise<void> {
    await this.ctl(line.slice(1));
    this.chat.add(`[[[info]]]\n${line}\n[[[end]]]\n`);
  }

  promptPrev(): string {
    return this.prompts.at(-1) ?? "";
  }

  queue() {
    return this.waiting.map((text, index) => ({ id: `${index}`, text }));
  }

  async reply(): Promise<string> {
    return this.replyText;
  }

  offset(): number {
    return this.chat.length;
  }

  cost(): string {
    return "costLast=unknown\ncostSession=unknown\n";
  }

  usage(): string {
    return "in=0 out=0\n";
  }

  async ctxsz(): Promise<string> {
    return "0 / 100 (0%)";
  }

  async context(): Promise<string> {
    this.contexts++;
    return this.prompts.map((text) => `${JSON.stringify({ role: "user", text })}\n`).join("");
  }

  async systemPrompt(): Promise<string> {
    return `You are ${this.name}.`;
  }

  models(): string {
    return "small\nlarge\n";
  }

  tools(): readonly string[] {
    return [...this.loaded].sort();
  }

  async changeTools(words: readonly string[]): Promise<void> {
    for (const word of words)
      if (word === "nonesuch") throw new Fault("missing", "no tool nonesuch; the root's tools lists them");
    for (const word of words) {
      if (word.startsWith("-")) this.loaded.delete(word.slice(1));
      else this.loaded.add(word);
    }
    this.touch("tools");
  }

  cfg(): string {
    if (this.keys.get("agent") === "gone") throw new Fault("missing", "no agent config gone");
    return cfgText(this.keys);
  }

  async configure(keys: Keys): Promise<void> {
    check(keys);
    for (const [key, value] of keys) this.keys.set(key, value);
    this.touch("cfg");
  }

  describe() {
    return { backend: "script", model: this.keys.get("model") ?? "m", cwd: this.keys.get("cwd") ?? "/" };
  }

  machine(): string {
    return '{"id":"agent"}';
  }

  mermaid(): string {
    return "stateDiagram-v2";
  }

  snapshot(): string {
    return JSON.stringify({ value: this.state });
  }

  async rename(name: string): Promise<void> {
    checkName(name);
    if (this.session.agent(name)) throw new Fault("exists", `agent ${name} exists`);
    this.name = name;
    this.session.touch("children");
  }

  async remove(): Promise<void> {
    this.session.list = this.session.list.filter((agent) => agent !== this);
    this.session.touch("children");
    this.end();
  }

  end(): void {
    this.removed = true;
    this.notify();
  }
}

/** Where the tools of a session run. */
class FakeReach {
  line = "local";
  changes = 0;
  readonly #listeners = new Set<() => void>();

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get watchers(): number {
    return this.#listeners.size;
  }

  become(line: string): void {
    this.line = line;
    this.changes++;
    for (const listener of [...this.#listeners]) listener();
  }
}

export class FakeSession implements LiveSession {
  readonly qid = nextQid();
  readonly created = started;
  readonly #stamps = new Stamps();
  removed = false;
  list: FakeAgent[] = [];
  readonly keys: Keys = new Map();
  readonly vars: Keys = new Map();
  text: Uint8Array = new Uint8Array(0);
  readonly told: string[] = [];
  jobList: FakeJob[] = [];
  readonly remote = new FakeReach();
  readonly jobs = {
    all: () => this.jobList,
    get: (id: string) => this.jobList.find((job) => job.id === id),
  };

  constructor(
    readonly runtime: FakeRuntime,
    public name: string,
  ) {}

  stamp(topic: Topic): Stamp {
    return this.#stamps.stamp(topic);
  }

  touch(topic: Topic): void {
    this.#stamps.touch(topic);
  }

  agents(): readonly FakeAgent[] {
    return this.list;
  }

  agent(name: string): FakeAgent | undefined {
    return this.list.find((agent) => agent.name === name);
  }

  async createAgent(keys: Keys): Promise<FakeAgent> {
    check(keys);
    const name = keys.get("name") ?? "default";
    if (this.agent(name)) throw new Fault("exists", `agent ${name} exists`);
    const agent = new FakeAgent(this, name);
    this.list.push(agent);
    for (const [key, value] of keys) agent.keys.set(key, value);
    this.touch("children");
    return agent;
  }

  async amendAgent(agent: LiveAgent, keys: Keys): Promise<void> {
    await agent.configure(keys);
  }

  agentTemplate(): string {
    return "name=\n";
  }

  shares(name: string): boolean {
    return (this.keys.get("share") ?? "").split(",").includes(name);
  }

  cfg(): string {
    return cfgText(this.keys);
  }

  async configure(keys: Keys): Promise<void> {
    check(keys);
    for (const [key, value] of keys) this.keys.set(key, value);
    this.touch("cfg");
  }

  env(): string {
    return cfgText(this.vars);
  }

  async changeEnv(keys: Keys): Promise<void> {
    for (const [key, value] of keys) {
      if (value === "") this.vars.delete(key);
      else this.vars.set(key, value);
    }
    this.touch("env");
  }

  plan(): Uint8Array {
    return this.text;
  }

  async writePlan(text: Uint8Array): Promise<void> {
    await Bun.sleep(1);
    this.text = text;
    this.touch("plan");
  }

  checkCtl(line: string): void {
    if (line !== "stop" && line !== "save") throw new Fault("invalid", `unknown verb ${line}`);
  }

  async ctl(line: string): Promise<void> {
    this.checkCtl(line);
    this.told.push(line);
  }

  async rename(name: string): Promise<void> {
    checkName(name);
    if (this.runtime.session(name)) throw new Fault("exists", `session ${name} exists`);
    this.name = name;
    this.touch("name");
    this.runtime.stamps.touch("children");
  }

  async remove(): Promise<void> {
    this.removed = true;
    this.runtime.list = this.runtime.list.filter((session) => session !== this);
    for (const agent of this.list) agent.end();
    this.runtime.stamps.touch("children");
  }
}

export class FakeRuntime implements Runtime {
  readonly approvals = new Approvals({
    log: pino({ level: "silent" }),
    socket: () => undefined,
    limit: () => undefined,
  });
  list: FakeSession[] = [];
  readonly stamps = new Stamps();
  modelList = "backend=script model=m";
  #count = 0;

  sessions(): readonly FakeSession[] {
    return this.list;
  }

  session(name: string): FakeSession | undefined {
    return this.list.find((session) => session.name === name);
  }

  async createSession(keys: Keys): Promise<FakeSession> {
    check(keys);
    const name = keys.get("name") ?? `id${++this.#count}`;
    checkName(name);
    if (this.session(name)) throw new Fault("exists", `session ${name} exists`);
    const session = new FakeSession(this, name);
    await session.createAgent(new Map());
    this.list.push(session);
    for (const [key, value] of keys) session.keys.set(key, value);
    this.stamps.touch("children");
    return session;
  }

  async amendSession(session: LiveSession, keys: Keys): Promise<void> {
    await session.configure(keys);
  }

  sessionTemplate(): string {
    return "# what the session is called\nname=\ncwd=/srv\n";
  }

  stamp(topic: "children"): Stamp {
    return this.stamps.stamp(topic);
  }

  version = () => "ollie 0";
  backends = () => "script m reachable";
  models = () => this.modelList;
  agents = () => "default\tdoes things";
  tools = () => "shell\truns a command";
  skills = () => "";
  metrics = () => "ollie_sessions 0";
}

function check(keys: Keys): void {
  for (const [key, value] of keys) {
    if (!knownKeys.has(key) && !key.startsWith("env."))
      throw new Fault("invalid", `unknown key ${key}; there are ${[...knownKeys].join(" ")}`);
    if (key === "temperature" && !(Number(value) >= 0))
      throw new Fault("invalid", `temperature=${value}: a number is right`);
  }
}

function checkName(name: string): void {
  if (name.includes("/") || name === "new" || name === "idx")
    throw new Fault("invalid", `name=${name}: a file name is right`);
}

function cfgText(keys: Keys): string {
  return [...keys].map(([key, value]) => `${key}=${value}\n`).join("");
}
