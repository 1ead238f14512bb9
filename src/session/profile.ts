/** What an agent runs on: its own settings over its config's, over the environment's, over the backend's defaults. */
import type { AgentConfig } from "../config/agents.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { AgentSettings } from "../turn/host.ts";
import { agentKeys, generation, keyLines } from "./keys.ts";
import { real } from "./limits.ts";
import type { Services } from "./services.ts";

/** Settings that a running turn stands on. */
const groundKeys = ["backend", "model", "agent", "cwd"];

export class Profile {
  constructor(
    readonly store: AgentStore,
    readonly services: Services,
    /** The session's folder, which holds where the agent has none of its own. */
    readonly session: { readonly cwd: string; readonly within?: string },
  ) {}

  /** @throws Fault where the config is gone or makes no sense */
  config(): AgentConfig {
    return this.services.agentConfig(this.#set("agent") ?? this.store.state.config);
  }

  /** @throws Fault where the config or the backend is gone */
  settings(): AgentSettings {
    const config = this.config();
    const backend = this.#set("backend") ?? config.backend ?? this.services.defaultBackend;
    const maxSteps = this.#set("maxSteps") ?? config.maxSteps;
    return {
      backend,
      model: this.#set("model") ?? ownModel(config, backend) ?? this.#defaultModel(backend),
      agent: config.name,
      cwd: this.cwd(),
      maxSteps: maxSteps === undefined ? undefined : Number(maxSteps),
      params: { ...config.params, ...generation((key) => this.#set(key)) },
    };
  }

  cwd(): string {
    return this.#set("cwd") ?? this.session.cwd;
  }

  /** The folder that `cwd` has to stay in, links resolved: what a tool chose it in, or what it led to when the owner chose it. */
  within(): string | undefined {
    return this.#set("cwd") ? this.#set("within") : this.session.within;
  }

  /** What agents made by tools of this one have to stay in: as far as itself may go, not only as far as it has gone. */
  bound(): string {
    return this.within() ?? real(this.cwd());
  }

  /** For a list of agents, which must not fail because the config or backend of one is gone. */
  describe(): { backend: string; model: string; cwd: string } {
    try {
      const { backend, model, cwd } = this.settings();
      return { backend, model, cwd };
    } catch {
      return { backend: this.#set("backend") ?? "?", model: this.#set("model") ?? "?", cwd: this.cwd() };
    }
  }

  /** `key=value` lines, all keys, empty = unset. */
  text(): string {
    const settings = this.settings();
    const shown: Record<string, unknown> = { ...settings, ...settings.params };
    return keyLines(Object.keys(agentKeys).map((key) => [key, printed(shown[key])] as const));
  }

  /** The settings that a running turn stands on and that `set` would change; the first, if any. */
  groundMoved(set: Record<string, string | null>): string | undefined {
    return groundKeys.find((key) => key in set && (set[key] ?? undefined) !== this.#set(key));
  }

  /** What was set on this agent itself; undefined where nothing was. */
  #set(key: string): string | undefined {
    return this.store.state.cfg.get(key) || undefined;
  }

  /** `OLLIE_MODEL` belongs to `OLLIE_BACKEND`; another backend has a default of its own. */
  #defaultModel(backend: string): string {
    const { defaultBackend, defaultModel } = this.services;
    return (backend === defaultBackend && defaultModel) || this.services.backend(backend).defaultModel;
  }
}

/** A config that names a backend and a model means the two together. */
function ownModel(config: AgentConfig, backend: string): string | undefined {
  return config.backend === undefined || config.backend === backend ? config.model : undefined;
}

function printed(value: unknown): string {
  if (value === undefined) return "";
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}
