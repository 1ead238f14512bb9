/** A running server: store, sessions, tree and listeners, put together and taken apart again. */
import { join } from "node:path";
import type { Logger } from "pino";
import { BackendRegistry } from "../backends/registry.ts";
import { retryDelay } from "../backends/retry.ts";
import { type AgentConfig, listAgents, loadAgent } from "../config/agents.ts";
import type { Config } from "../config/config.ts";
import { listSkills } from "../config/skills.ts";
import { build } from "../config/version.ts";
import { sweepStale } from "../exec/family.ts";
import { Fault } from "../fault.ts";
import { Tree } from "../namespace/tree.ts";
import { parseAddress } from "../ninep/dial.ts";
import { type Listener, listenUnix } from "../ninep/listen.ts";
import { requestName } from "../ninep/messages.ts";
import { Server } from "../ninep/server.ts";
import { Store } from "../store/store.ts";
import { createRegistry } from "../tools/registry.ts";
import { qidBlock } from "./live.ts";
import { Counters } from "./metrics.ts";
import { Runtime } from "./runtime.ts";
import type { Services } from "./services.ts";

export interface ServeOptions {
  config: Config;
  /** Reads the configuration anew; for `reload`. */
  readConfig(): Config;
  /** Dial strings; the first one is what tools get as `OLLIE_ADDR`. */
  listen: string[];
  log: Logger;
}

export interface Serving {
  /** Re-reads env file and configs; new sessions and turns use them at once. Throws the Fault of a configuration that is wrong. */
  reload(): void;
  /** Interrupts turns, saves, closes; within 5 s. */
  close(): Promise<void>;
}

/** Milliseconds for which an agent config counts as unchanged. */
const configFresh = 1000;
/** Milliseconds that running turns get to end when the server does. */
const closeLimit = 3000;

/** @throws Fault: the state folder or a socket is in use (says by whom), an address is wrong, a folder cannot be used */
export async function serve({ config, readConfig, listen, log }: ServeOptions): Promise<Serving> {
  for (const address of listen) requireUnix(address);
  const { store, report } = await Store.open(config.paths.state);
  const swept = sweepStale();
  if (swept > 0) report.push(`${swept} processes of tools had outlived their server and were ended`);
  try {
    const current = new Current(config, log);
    const tree = await open(store, current, listen[0]!, report);
    const server = new Server(tree.root, {
      onRefused: tree.onRefused,
      onBadFrame: (peer, error) => log.warn({ pid: peer.pid, err: error }, "bad frame"),
    });
    current.server = server;
    const listeners: Listener[] = [];
    for (const address of listen) {
      const { path } = requireUnix(address);
      const onDenied = (who: object, reason: string) => log.warn({ ...who, reason }, "connection refused");
      listeners.push(await listenUnix(path, server, { checkUid: true, onDenied }));
      log.info({ address }, "listening");
    }
    return {
      reload: () => current.reload(readConfig()),
      async close() {
        for (const listener of listeners) listener.stop();
        await current.runtime!.close(closeLimit);
        current.close();
        await server.close();
        await store.release();
      },
    };
  } catch (error) {
    await store.release();
    throw error;
  }
}

async function open(store: Store, current: Current, addr: string, report: string[]): Promise<Tree> {
  const runtime = new Runtime(store, current.services(addr), current.reports());
  current.runtime = runtime;
  for (const sentence of [...report, ...(await runtime.restore())]) current.log.warn(sentence);
  return new Tree(runtime, { spoolDir: join(store.folder, "spool") });
}

function requireUnix(address: string): { path: string } {
  const parsed = parseAddress(address);
  if (parsed.net !== "unix")
    throw new Fault("invalid", `cannot listen on ${address}: only unix!PATH is built in yet`);
  return parsed;
}

/** What a reload replaces. */
class Current {
  runtime?: Runtime;
  server?: Server;
  #backends: BackendRegistry;
  #tools;
  readonly #agents = new Map<string, { config: AgentConfig; read: number }>();

  constructor(
    private config: Config,
    readonly log: Logger,
  ) {
    this.#backends = this.#makeBackends();
    this.#tools = createRegistry(this.#toolsPath());
  }

  reload(config: Config): void {
    // A configuration that makes no sense must not take the place of one that does.
    const backends = new BackendRegistry(config.environment);
    backends.close();
    this.config = config;
    this.#backends.close();
    this.#backends = this.#makeBackends();
    this.#tools.close();
    this.#tools = createRegistry(this.#toolsPath());
    this.#agents.clear();
    for (const warning of config.warnings) this.log.warn(warning);
    this.log.info("configuration read again");
  }

  close(): void {
    this.#backends.close();
    this.#tools.close();
  }

  #makeBackends(): BackendRegistry {
    const backends = new BackendRegistry(this.config.environment);
    backends.refresh();
    return backends;
  }

  #toolsPath(): string {
    return this.config.paths.tools.join(":");
  }

  #agentConfig(name: string): AgentConfig {
    const now = Date.now();
    const known = this.#agents.get(name);
    if (known && now - known.read < configFresh) return known.config;
    const config = loadAgent(name, this.config.paths.agents);
    this.#agents.set(name, { config, read: now });
    return config;
  }

  services(addr: string): Services {
    const self = this;
    // Block 0 is the root's. Beginning at the present time keeps paths of earlier servers from coming back.
    let qid = Math.floor(Date.now() / 1000) * 2 ** 20;
    return {
      log: this.log,
      get registry() {
        return self.#tools;
      },
      counters: new Counters(),
      addr,
      cwd: process.cwd(),
      get toolsPath() {
        return self.#toolsPath();
      },
      get memoryPath() {
        return self.config.paths.memory;
      },
      get transcripts() {
        const { environment, paths } = self.config;
        return environment.OLLIE_TRANSCRIPTS_PATH || join(paths.state, "transcripts");
      },
      prompts: () => self.config.paths.prompts,
      agentConfig: (name) => self.#agentConfig(name),
      backend: (name) => self.#backends.get(name),
      defaultBackend: () => self.#backends.defaultName,
      defaultModel: () => self.config.settings.model,
      knownModels: (backend, ask) => self.#backends.modelsOf(backend, ask),
      knownWindow: (backend, model, ask) => self.#backends.knownWindow(backend, model, ask),
      retryDelay,
      nextQid: () => {
        qid += qidBlock;
        return qid;
      },
    };
  }

  reports(): ConstructorParameters<typeof Runtime>[2] {
    return {
      version: () =>
        `name: ollie\nversion: ${build.version}\ncommit: ${build.commit}\nprotocol: 9P2000\nsandbox: off\n`,
      backends: (ask) => this.#backends.backends(ask),
      models: (ask) => this.#backends.models(ask),
      agents: () => table(listAgents(this.config.paths.agents)),
      tools: () => table(this.#tools.list()),
      skills: () => table(listSkills(this.config.paths.skills)),
      ninep: () => {
        const { ops = [], connections = 0 } = this.server?.counters ?? {};
        const counted = [...ops].flatMap((n, type) => (n > 0 ? [[requestName(type), n] as const] : []));
        return { ops: Object.fromEntries(counted), connections };
      },
    };
  }
}

/** `name TAB description` lines. */
function table(rows: readonly { name: string; description: string }[]): string {
  return rows
    .map(({ name, description }) => `${name}\t${description.replace(/\s+/g, " ").trim()}\n`)
    .join("");
}
