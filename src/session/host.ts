/** What an agent lends to its turns. */
import type { CageRequest } from "../sandbox/sandbox.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { CallContext, Tool } from "../tools/tool.ts";
import { systemPrompt } from "../turn/context.ts";
import type { Gate } from "../turn/gate.ts";
import type { AgentSettings, TurnHost } from "../turn/host.ts";
import type { Agent } from "./agent.ts";
import { checkBound } from "./limits.ts";
import type { Topic } from "./live.ts";
import type { Services } from "./services.ts";

export class Host implements TurnHost {
  constructor(
    readonly agent: Agent,
    readonly services: Services,
  ) {}

  get name(): string {
    return this.agent.name;
  }

  get store(): AgentStore {
    return this.agent.store;
  }

  get gate(): Gate {
    return this.agent.session.gate;
  }

  settings(): AgentSettings {
    return this.agent.profile.settings();
  }

  loadedTools(): Tool[] {
    return this.agent.toolbox.loaded();
  }

  async systemPrompt(): Promise<string> {
    const { profile, toolbox } = this.agent;
    return systemPrompt({
      config: profile.config(),
      cwd: profile.cwd(),
      prompts: this.services.prompts,
      loadable: toolbox.loadable(),
    });
  }

  callContext(): CallContext {
    const { agent } = this;
    const { session, profile, name } = agent;
    const { toolsPath, memoryPath, skillsPath } = this.services;
    checkBound(profile.cwd(), profile.within());
    return {
      session: session.name,
      agent: name,
      cwd: profile.cwd(),
      env: Object.fromEntries(session.envMap()),
      secrets: session.store.secrets,
      tmp: session.store.tmp,
      address: (over) => this.#address(over),
      toolsPath,
      memoryPath,
      skillsPath,
      cage: async () => this.services.cageFor(this.#cageRequest()),
      serviceCage: async () =>
        this.services.cageFor({ ...this.#cageRequest(), service: true, listener: "nobody" }),
      changesAllowed: () => this.services.acceptChanges(),
      services: session.servicePool,
      jobs: session.jobs,
    };
  }

  #cageRequest(): CageRequest {
    const { session, profile, name } = this.agent;
    return {
      name: session.store.json.cfg.sandbox || profile.config().sandbox,
      cwd: profile.cwd(),
      bound: profile.within(),
      tmp: session.store.tmp,
      listener: `${session.name}/${name}`,
      address: (over) => this.#address(over),
    };
  }

  #address(over: "unix" | "tcp"): { addr: string; token?: string } {
    const { addresses } = this.services;
    return over === "unix" ? { addr: addresses.unix(this.agent) } : addresses.tcp(this.agent);
  }

  touch(...topics: Topic[]): void {
    this.agent.touch(...topics);
  }
}
