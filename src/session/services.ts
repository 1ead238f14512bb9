/** What all sessions of a server share. */
import type { Logger } from "pino";
import type { Backend, Usage } from "../backends/backend.ts";
import type { AgentConfig } from "../config/agents.ts";
import type { ToolRegistry } from "../tools/tool.ts";
import type { Counters } from "./metrics.ts";

export interface Services {
  log: Logger;
  registry: ToolRegistry;
  counters: Counters;
  /** Dial string of the server, for `OLLIE_ADDR`. */
  addr: string;
  /** Where agents work whose session names no folder. */
  cwd: string;
  /** As in `OLLIE_TOOLS_PATH`, `OLLIE_MEMORY_PATH`. */
  toolsPath: string;
  memoryPath: string;
  /** Folders of `OLLIE_PROMPTS_PATH`. */
  prompts(): readonly string[];
  /** Folder that `save` writes to. */
  transcripts: string;
  /** @throws Fault that lists the agents there are, or names the file and key that is wrong */
  agentConfig(name: string): AgentConfig;
  /** @throws Fault that lists the backends there are, or says what is missing */
  backend(name: string): Backend;
  /** `OLLIE_BACKEND` and `OLLIE_MODEL`, or what stands in for them. */
  defaultBackend(): string;
  defaultModel(): string | undefined;
  /** Model ids of a backend as far as known, one per line; never asks the network. */
  knownModels(backend: string): string;
  /** Context window in tokens, as far as known. */
  knownWindow(backend: string, model: string): number | undefined;
  retryDelay(error: unknown, attempt: number): number | undefined;
  /** Why an error that looks as if it would pass is not waited for. */
  whyNot(error: unknown, attempt: number): string | undefined;
  costOf(usage: Usage, backend: string, model: string): number | undefined;
  /** The next block of qid paths. */
  nextQid(): number;
}
