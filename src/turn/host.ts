/** What a turn needs: of the agent it belongs to, and of the server. */
import type { Logger } from "pino";
import type { Backend, Generation } from "../backends/backend.ts";
import type { Elevation } from "../elevate/elevation.ts";
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

/** What turns share with all others of the server. */
export interface TurnServices {
  readonly log: Logger;
  readonly registry: ToolRegistry;
  readonly elevation: Elevation;
  readonly counters: Record<"turns" | "requests" | "toolCalls" | "tokensIn" | "tokensOut", number>;
  /** @throws Fault that lists the backends there are, or says what is missing */
  backend(name: string): Backend;
  /** Milliseconds until a failed request may be sent again, or undefined: give up. */
  retryDelay(error: unknown, attempt: number): number | undefined;
}

/** Implemented by `src/session/host.ts`. */
export interface TurnHost {
  readonly services: TurnServices;
  readonly name: string;
  readonly store: AgentStore;
  readonly gate: Gate;
  settings(): AgentSettings;
  /** The loaded tools that exist on this host, sorted by name. */
  loadedTools(): Tool[];
  systemPrompt(): Promise<string>;
  callContext(): CallContext;
  /** Told of what has changed, so that the files which show it have another time and version. */
  touch(...topics: ("queue" | "turn" | "chat" | "usage")[]): void;
}
