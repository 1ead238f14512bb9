/** What all sessions of a server share, as the present configuration has it; `reload` puts another one in its place. */
import { hostname } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Backend } from "../backends/backend.ts";
import { BackendRegistry } from "../backends/registry.ts";
import { retryDelay } from "../backends/retry.ts";
import { type AgentConfig, listAgents, loadAgent } from "../config/agents.ts";
import type { Config } from "../config/config.ts";
import { listSkills } from "../config/skills.ts";
import { build } from "../config/version.ts";
import { Approvals } from "../elevate/approvals.ts";
import { Elevation } from "../elevate/elevation.ts";
import { elevateSocket } from "../elevate/socket.ts";
import type { Cage } from "../sandbox/cage.ts";
import { SandboxConfigs } from "../sandbox/configs.ts";
import { confinementText } from "../sandbox/report.ts";
import type { CageRequest, Sandbox } from "../sandbox/sandbox.ts";
import type { Hands } from "../tools/hands.ts";
import { handsHere } from "../tools/here.ts";
import { createRegistry } from "../tools/registry.ts";
import type { ToolRegistry } from "../tools/tool.ts";
import { groundOf } from "./ground.ts";
import { Hosts } from "./hosts.ts";
import { qidBlock } from "./live.ts";
import { Counters } from "./metrics.ts";
import type { Reports } from "./runtime.ts";
import type { Services, ToolAddresses } from "./services.ts";

/** Milliseconds for which an agent config counts as unchanged. */
const configFresh = 1000;

export class Shared implements Services {
  readonly counters = new Counters();
  readonly cwd = process.cwd();
  readonly retryDelay = retryDelay;
  readonly elevation: Elevation;
  readonly remotes: Hosts;
  readonly hands: Hands = handsHere(() => this.#tools);
  #config: Config;
  #backends: BackendRegistry;
  #tools: ToolRegistry;
  #sandboxConfigs: SandboxConfigs;
  readonly #agents = new Map<string, { config: AgentConfig; read: number }>();
  /** Block 0 is the root's. Beginning at the present time keeps paths of earlier servers from coming back. */
  #qid = Math.floor(Date.now() / 1000) * 2 ** 20;

  constructor(
    config: Config,
    readonly addresses: ToolAddresses,
    readonly sandbox: Sandbox,
    readonly log: Logger,
    /** Addresses of the server itself. */
    readonly listen: readonly string[],
  ) {
    this.#config = config;
    this.#backends = backendsOf(config);
    this.#tools = toolsOf(config);
    this.#sandboxConfigs = this.#sandboxConfigsOf(config);
    const approvals = new Approvals({
      log,
      socket: () => elevateSocket(this.#config.environment),
      limit: () => this.#config.settings.elevateTimeout * 1000 || undefined,
    });
    this.elevation = new Elevation(approvals, hostname());
    this.remotes = new Hosts(config, approvals);
  }

  reload(config: Config): void {
    this.remotes.reload(config);
    this.close();
    this.#config = config;
    this.#backends = backendsOf(config);
    this.#tools = toolsOf(config);
    this.#sandboxConfigs = this.#sandboxConfigsOf(config);
    this.#agents.clear();
    for (const warning of config.warnings) this.log.warn(warning);
    this.log.info("configuration read again");
  }

  close(): void {
    this.#backends.close();
    this.#tools.close();
  }

  get sandboxConfigs(): SandboxConfigs {
    return this.#sandboxConfigs;
  }

  cageFor(request: CageRequest): Cage | undefined {
    return this.sandbox.cageFor(request, this.#sandboxConfigs);
  }

  acceptChanges(): void {
    this.sandbox.acceptChanges();
  }

  #sandboxConfigsOf(config: Config): SandboxConfigs {
    const covers = this.sandbox.confinement.sockets === "namespace";
    return new SandboxConfigs(groundOf(config, this.listen, covers), (warning) => this.log.warn(warning));
  }

  get toolsPath(): string {
    return this.#config.paths.tools.join(":");
  }

  get memoryPath(): string {
    return this.#config.paths.memory;
  }

  get skillsPath(): string {
    return this.#config.paths.skills.join(":");
  }

  get prompts(): readonly string[] {
    return this.#config.paths.prompts;
  }

  get transcripts(): string {
    const { environment, paths } = this.#config;
    return environment.OLLIE_TRANSCRIPTS_PATH || join(paths.state, "transcripts");
  }

  agentConfig(name: string): AgentConfig {
    const now = Date.now();
    const known = this.#agents.get(name);
    if (known && now - known.read < configFresh) return known.config;
    const config = loadAgent(name, this.#config.paths.agents);
    this.#agents.set(name, { config, read: now });
    return config;
  }

  backend(name: string): Backend {
    return this.#backends.get(name);
  }

  get defaultBackend(): string {
    return this.#backends.defaultName;
  }

  get defaultModel(): string | undefined {
    return this.#config.settings.model;
  }

  knownModels(backend: string, ask: boolean): string {
    return this.#backends.modelsOf(backend, ask);
  }

  knownWindow(backend: string, model: string, ask: boolean): number | undefined {
    return this.#backends.knownWindow(backend, model, ask);
  }

  nextQid(): number {
    this.#qid += qidBlock;
    return this.#qid;
  }

  reports(): Omit<Reports, "ninep"> {
    return {
      version: () =>
        `name: ollie\nversion: ${build.version}\ncommit: ${build.commit}\nprotocol: 9P2000\n${confinementText(this.sandbox.confinement)}`,
      backends: (ask) => this.#backends.backends(ask),
      models: (ask) => this.#backends.models(ask),
      agents: () => table(listAgents(this.#config.paths.agents)),
      tools: () => table(this.#tools.list()),
      skills: () => table(listSkills(this.#config.paths.skills)),
    };
  }
}

function backendsOf({ environment }: Config): BackendRegistry {
  const backends = new BackendRegistry(environment);
  backends.refresh();
  return backends;
}

function toolsOf({ paths }: Config): ToolRegistry {
  return createRegistry(paths.tools.join(":"));
}

/** `name TAB description` lines. */
function table(rows: readonly { name: string; description: string }[]): string {
  return rows
    .map(({ name, description }) => `${name}\t${description.replace(/\s+/g, " ").trim()}\n`)
    .join("");
}
