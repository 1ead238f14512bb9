/** What a turn needs from the agent it belongs to. Implemented by `src/session/host.ts`. */
import type { Logger } from "pino";
import type { Backend, Generation, Usage } from "../backends/backend.ts";
import type { Topic } from "../session/live.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { CallContext, Tool, ToolRegistry } from "../tools/tool.ts";
import type { Gate } from "./gate.ts";

/** The settings of an agent after create keys, agent config, environment and backend defaults have been laid over each other. */
export interface AgentSettings {
  backend: string;
  model: string;
  /** Name of the agent config. */
  agent: string;
  cwd: string;
  /** Requests with tools a turn may make; then one last without. Unset = no limit. */
  maxSteps?: number;
  params: Generation;
}

export interface TurnHost {
  readonly name: string;
  readonly store: AgentStore;
  readonly registry: ToolRegistry;
  readonly gate: Gate;
  readonly log: Logger;
  settings(): AgentSettings;
  backend(name: string): Backend;
  /** The loaded tools that exist on this host, sorted by name. */
  loadedTools(): Tool[];
  systemPrompt(): Promise<string>;
  callContext(): CallContext;
  /** Milliseconds until a failed request may be sent again, or undefined: give up. */
  retryDelay(error: unknown, attempt: number): number | undefined;
  /** Why an error that looks as if it would pass is not waited for. */
  whyNot(error: unknown, attempt: number): string | undefined;
  /** USD, or undefined where no price is known. */
  costOf(usage: Usage, backend: string, model: string): number | undefined;
  touch(...topics: Topic[]): void;
  count(what: "turns" | "requests" | "toolCalls" | "tokensIn" | "tokensOut", n?: number): void;
}
