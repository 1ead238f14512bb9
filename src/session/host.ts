/** What an agent lends to its turns. */
import type { Logger } from "pino";
import type { Backend, Usage } from "../backends/backend.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { CallContext, Tool, ToolRegistry } from "../tools/tool.ts";
import { systemPrompt } from "../turn/context.ts";
import type { Gate } from "../turn/gate.ts";
import type { AgentSettings, TurnHost } from "../turn/host.ts";
import type { Agent } from "./agent.ts";
import type { Topic } from "./live.ts";
import type { Counters } from "./metrics.ts";
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

  get registry(): ToolRegistry {
    return this.services.registry;
  }

  get gate(): Gate {
    return this.agent.session.gate;
  }

  get log(): Logger {
    return this.services.log;
  }

  settings(): AgentSettings {
    return this.agent.profile.settings();
  }

  backend(name: string): Backend {
    return this.services.backend(name);
  }

  loadedTools(): Tool[] {
    return this.agent.toolbox.loaded();
  }

  async systemPrompt(): Promise<string> {
    const { profile, toolbox } = this.agent;
    return systemPrompt({
      config: profile.config(),
      cwd: profile.cwd(),
      prompts: this.services.prompts(),
      loadable: toolbox.loadable(),
    });
  }

  callContext(): CallContext {
    const { session, profile, name } = this.agent;
    const { toolsPath, memoryPath, addr } = this.services;
    return {
      session: session.name,
      agent: name,
      cwd: profile.cwd(),
      env: Object.fromEntries(session.envMap()),
      tmp: session.store.tmp,
      addr,
      toolsPath,
      memoryPath,
    };
  }

  retryDelay(error: unknown, attempt: number): number | undefined {
    return this.services.retryDelay(error, attempt);
  }

  whyNot(error: unknown, attempt: number): string | undefined {
    return this.services.whyNot(error, attempt);
  }

  costOf(usage: Usage, backend: string, model: string): number | undefined {
    return this.services.costOf(usage, backend, model);
  }

  touch(...topics: Topic[]): void {
    this.agent.touch(...topics);
  }

  count(what: keyof Counters, n = 1): void {
    this.services.counters[what] += n;
  }
}
