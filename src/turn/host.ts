/** What a turn needs: of the agent it belongs to, and of the server. */
import type { Logger } from "pino";
import type { Backend, Generation } from "../backends/backend.ts";
import type { Elevation } from "../elevate/elevation.ts";
import type { AgentStore } from "../store/agent-store.ts";
import type { Hands, ProjectSurvey } from "../tools/hands.ts";
import type { CallContext, Tool } from "../tools/tool.ts";
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
  /** This machine's. */
  readonly hands: Hands;
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
  /** The session's tools run on another host. */
  readonly elsewhere: boolean;
  /** The session's. @throws Fault where no other host can be reached at all */
  readonly hands: Hands;
  /** Those that run this tool: some tools run where the server is, wherever the session's others do. */
  handsFor(tool: Tool): Hands;
  /** Milliseconds that a lost host is waited for before that is told. */
  readonly grace: number;
  settings(): AgentSettings;
  /** The loaded tools that exist on the session's host, sorted by name. */
  loadedTools(): Tool[];
  /** Of the working folder, on the session's host. */
  survey(signal: AbortSignal): Promise<ProjectSurvey>;
  systemPrompt(project: ProjectSurvey): string;
  callContext(tool: Tool): CallContext;
  /** Told of what has changed, so that the files which show it have another time and version. */
  touch(...topics: ("queue" | "turn" | "chat" | "usage")[]): void;
}
