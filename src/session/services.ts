/** What all sessions of a server share. */
import type { AgentConfig } from "../config/agents.ts";
import type { Cage } from "../sandbox/cage.ts";
import type { SandboxConfigs } from "../sandbox/configs.ts";
import type { CageRequest } from "../sandbox/sandbox.ts";
import type { TurnServices } from "../turn/host.ts";
import type { LiveAgent } from "./live.ts";
import type { RemoteHosts } from "./remote.ts";

/** Where the tools of an agent find the tree as it is for them; made when first asked for, and gone with the agent. */
export interface ToolAddresses {
  /** Dial string of a unix socket. @throws Fault */
  unix(agent: LiveAgent): string;
  /** The same for who may have no unix socket: dial string of a port of the loopback, and what to show there. @throws Fault */
  tcp(agent: LiveAgent): { addr: string; token: string };
}

export interface Services extends TurnServices {
  /** Absent where no other host can be reached. */
  readonly remotes?: RemoteHosts;
  readonly addresses: ToolAddresses;
  /** Sandbox configs. */
  readonly sandboxConfigs: SandboxConfigs;
  /** As in `Sandbox.cageFor`. */
  cageFor(request: CageRequest): Cage | undefined;
  /** As in `Sandbox.acceptChanges`. */
  acceptChanges(): void;
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
