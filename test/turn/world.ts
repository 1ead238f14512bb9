/** Live sessions on a real store with real tools; only the model is a function of the test. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import {
  type Backend,
  BackendError,
  type ModelEvent,
  type ModelRequest,
} from "../../src/backends/backend.ts";
import { retryDelay } from "../../src/backends/retry.ts";
import type { AgentConfig } from "../../src/config/agents.ts";
import { Approvals } from "../../src/elevate/approvals.ts";
import { Elevation } from "../../src/elevate/elevation.ts";
import { Fault } from "../../src/fault.ts";
import type { SandboxConfigs } from "../../src/sandbox/configs.ts";
import type { Agent } from "../../src/session/agent.ts";
import { qidBlock } from "../../src/session/live.ts";
import { Counters } from "../../src/session/metrics.ts";
import type { RemoteHosts } from "../../src/session/remote.ts";
import { Runtime } from "../../src/session/runtime.ts";
import { Store } from "../../src/store/store.ts";
import { handsHere } from "../../src/tools/here.ts";
import { createRegistry } from "../../src/tools/registry.ts";

/** Answers a request; may wait for `signal`. */
export type Model = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;

export const say = (text: string): ModelEvent => ({ type: "text", text });
export const think = (text: string): ModelEvent => ({ type: "reasoning", text });
export const finish: ModelEvent = { type: "finish", reason: "stop" };
export const call = (id: string, name: string, args: unknown = {}): ModelEvent => ({
  type: "call",
  call: { id, name, args: typeof args === "string" ? args : JSON.stringify(args) },
});

/** A model that gives these answers one after another, and plain "ok" when they are used up. */
export function answers(...turns: (ModelEvent[] | Error)[]): Model {
  return async function* () {
    const next = turns.shift() ?? [say("ok"), finish];
    if (next instanceof Error) throw next;
    yield* next;
  };
}

export const broken = (text = "reset") => new BackendError(new Fault("io", text), { retryable: true });

/** Streams some events, then breaks. */
export function breaking(events: ModelEvent[]): Model {
  return async function* () {
    yield* events;
    throw broken();
  };
}

/** Uses the models one after another. */
export function sequence(...models: Model[]): Model {
  return (request, signal) => (models.length > 1 ? models.shift()! : models[0]!)(request, signal);
}

/** Streams some events, then says nothing until it is told to stop. */
export function hanging(events: ModelEvent[]): Model {
  return async function* (_, signal) {
    yield* events;
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
}

export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-turn-"));
  readonly cwd = join(this.folder, "cwd");
  readonly toolsFolder = join(this.folder, "tools");
  readonly requests: ModelRequest[] = [];
  /** What is asked of the user: without a reader, nobody is there to answer. */
  readonly approvals = new Approvals({
    log: pino({ level: "silent" }),
    socket: () => undefined,
    limit: () => undefined,
  });
  model: Model = answers();
  /** What is wrong with it, where it is a Fault. */
  config: Partial<AgentConfig> | Fault = {};
  /** Further agent configs, by their names. */
  configs: Record<string, Partial<AgentConfig>> = {};
  backend: Backend | Fault = this.#fakeBackend();
  /** Whether a failed request is repeated after a minute instead of at once. */
  slowRetry = false;
  /** Another host; absent: none can be reached. */
  remotes?: RemoteHosts;
  runtime!: Runtime;
  #store!: Store;

  constructor() {
    mkdirSync(this.cwd);
    mkdirSync(this.toolsFolder);
  }

  static async open(model?: Model): Promise<World> {
    const world = new World();
    if (model) world.model = model;
    await world.start();
    return world;
  }

  /** Adds a tool that is a shell script. */
  tool(name: string, script: string, meta: Record<string, unknown> = {}): void {
    const path = join(this.toolsFolder, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    const args = { type: "object", properties: {}, additionalProperties: true };
    writeFileSync(`${path}.meta`, JSON.stringify({ description: name, args, tier: "hot", ...meta }));
  }

  /** What a start of the server does; also again after `stop`. */
  async start(): Promise<string[]> {
    const { store, report } = await Store.open(join(this.folder, "state"));
    this.#store = store;
    let qid = 0;
    const registry = createRegistry(this.toolsFolder);
    this.runtime = new Runtime(
      store,
      {
        log: pino({ level: "silent" }),
        remotes: this.remotes,
        hands: handsHere(() => registry),
        elevation: new Elevation(this.approvals, "here"),
        counters: new Counters(),
        addresses: {
          unix: () => "unix!/nowhere",
          tcp: () => ({ addr: "tcp!127.0.0.1!1", token: "none" }),
        },
        sandboxConfigs: { names: () => ["default"], check: () => {} } as unknown as SandboxConfigs,
        cageFor: () => undefined,
        acceptChanges: () => {},
        cwd: this.cwd,
        toolsPath: this.toolsFolder,
        memoryPath: join(this.folder, "memory"),
        skillsPath: join(this.folder, "skills"),
        transcripts: join(this.folder, "transcripts"),
        prompts: [],
        agentConfig: (name) => this.#agentConfig(name),
        backend: (name) => {
          if (name !== "fake") throw new Fault("missing", `no backend ${name}; there is fake`);
          if (this.backend instanceof Fault) throw this.backend;
          return this.backend;
        },
        defaultBackend: "fake",
        defaultModel: undefined,
        knownModels: () => "fake-1\n",
        knownWindow: () => 1000,
        retryDelay: (error, attempt) =>
          retryDelay(error, attempt) === undefined ? undefined : this.slowRetry ? 60_000 : 5,
        nextQid: () => (qid += qidBlock),
      },
      {
        version: () => "",
        backends: () => "",
        models: () => "",
        agents: () => "",
        tools: () => "",
        skills: () => "",
        ninep: () => ({ ops: {}, connections: 0 }),
      },
    );
    return [...report, ...(await this.runtime.restore())];
  }

  #fakeBackend(): Backend {
    return {
      name: "fake",
      defaultModel: "fake-1",
      stream: (request, signal) => {
        this.requests.push(structuredClone(request));
        return this.model(request, signal);
      },
      models: async () => [{ id: "fake-1" }],
      window: async () => 1000,
    };
  }

  #agentConfig(name: string): AgentConfig {
    if (this.config instanceof Fault) throw this.config;
    if (name !== "default" && name !== "other" && !this.configs[name])
      throw new Fault("missing", `no agent ${name}: there are default, other`);
    const registry = createRegistry(this.toolsFolder);
    return {
      name,
      file: "",
      description: "",
      prompt: "You are a test.",
      autoLoad: registry.list().map((tool) => tool.name),
      allowTools: [],
      hooks: {},
      params: {},
      ...this.config,
      ...this.configs[name],
    };
  }

  async agent(keys: Record<string, string> = {}): Promise<Agent> {
    const session = await this.runtime.createSession(new Map(Object.entries(keys)));
    return session.agents()[0]!;
  }

  /** What a clean end of the server does. */
  async stop(): Promise<void> {
    await this.runtime.close(5000);
    await this.#store.release();
  }

  async remove(): Promise<void> {
    for (const session of [...this.runtime.sessions()]) await session.remove();
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Resolves when the agent is idle. */
export function idle(agent: Agent): Promise<void> {
  return until(agent, (state) => state === "idle");
}

/** Chat and state are looked at again and again: neither tells of every byte. */
export async function until(agent: Agent, right: (state: string) => boolean): Promise<void> {
  while (!right(agent.state)) await Bun.sleep(2);
}

export function chat(agent: Agent): string {
  return new TextDecoder().decode(agent.chat.read(0, agent.chat.length));
}

/** The chat without times, so that it can be compared whole. */
export function blocks(agent: Agent): string {
  return chat(agent).replace(/ time=\S+?(?=\]\]\]|\s)/g, "");
}
