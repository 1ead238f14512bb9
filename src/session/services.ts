/** What all sessions of a server share. */
import type { AgentConfig } from "../config/agents.ts";
import type { TurnServices } from "../turn/host.ts";

export interface Services extends TurnServices {
  /** Dial string of the server, for `OLLIE_ADDR`. */
  readonly addr: string;
  /** Where agents work whose session names no folder. */
  readonly cwd: string;
  /** As in `OLLIE_TOOLS_PATH`, `OLLIE_MEMORY_PATH`, `OLLIE_SKILLS_PATH`. */
  readonly toolsPath: string;
  readonly memoryPath: string;
  readonly skillsPath: string;
  /** Folders of `OLLIE_PROMPTS_PATH`. */
  readonly prompts: readonly string[];
  /** Folder that `save` writes to. */
  readonly transcripts: string;
  /** `OLLIE_BACKEND` and `OLLIE_MODEL`, or what stands in for them. */
  readonly defaultBackend: string;
  readonly defaultModel: string | undefined;
  /** @throws Fault that lists the agents there are, or names the file and key that is wrong */
  agentConfig(name: string): AgentConfig;
  /** Model ids of a backend as far as known, one per line. `ask`: have what is unknown or old asked for, without waiting. */
  knownModels(backend: string, ask: boolean): string;
  /** Context window in tokens, as far as known; `ask` likewise. */
  knownWindow(backend: string, model: string, ask: boolean): number | undefined;
  /** The next block of qid paths. */
  nextQid(): number;
}
