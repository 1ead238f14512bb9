/** What a tool is: its sidecar, parsed and with this host's variant laid over it. */
import type { ToolSpec } from "../backends/backend.ts";
import type { Secrets } from "../config/secrets.ts";
import type { Cage } from "../sandbox/cage.ts";
import type { Execution } from "./execution.ts";
import type { ServicePool } from "./service.ts";
import type { SudoAccess } from "./sudo.ts";

export type Concurrency = "read" | "write" | "exclusive";

export interface Tool {
  name: string;
  description: string;
  documentation: string;
  schema: Record<string, unknown>;
  /** Absolute path of the executable. */
  path: string;
  /** The folder it was found in. */
  folder: string;
  tier: "hot" | "cold";
  concurrency: Concurrency;
  readOnly: boolean;
  elevated: boolean;
  sudo: boolean;
  /** Seconds. */
  timeout: number;
  remote: boolean;
  /** A program that has to run beside its calls. */
  service?: ToolService;
}

export interface ToolService {
  /** Absolute path of the executable. */
  path: string;
  /** Seconds without a call after which it is ended. */
  idle: number;
  /** Name of a variable of the session's env that holds another number. */
  idleVariable?: string;
}

/** Starts a call's program as a background job of the session; see `src/session/jobs.ts`. */
export interface JobStarter {
  /** Resolves when the job runs and a restart would find it. */
  start(execution: Execution, about: JobRequest): Promise<{ id: string }>;
  /**
   * The same for a program on another host, which `begin` starts there as the operation of that id. A restart finds it from before `begin`
   * on; where that rejects there is no job.
   */
  startThere(opId: string, about: JobRequest, begin: () => Promise<void>): Promise<{ id: string }>;
}

export interface JobRequest {
  agent: string;
  tool: string;
  /** For people: the command line where the tool has one, else its arguments. */
  command: string;
  /** The agent is told of the end by a prompt, else by an info block. */
  notify: boolean;
  /** To be called when it has ended, if this server still runs then. Sentences for who is told of the end. */
  after?(): Promise<string[]>;
}

/** What the user has said to a call that wants out of the sandbox; see `src/elevate`. */
export interface Approval {
  scope: "once" | "session";
  /** For a tool that runs as root. */
  sudo?: SudoAccess;
}

/** Where a call runs and for whom. */
export interface CallContext {
  session: string;
  agent: string;
  cwd: string;
  /** The session's env file. */
  env: Record<string, string>;
  /** What no result may hold. */
  secrets: Secrets;
  /** The session's private folder for TMPDIR and kept outputs. */
  tmp: string;
  /** Where its tools find their tree: OLLIE_ADDR, and OLLIE_TOKEN for a port of the loopback. Absent on a host that has none. @throws Fault */
  address?(over: "unix" | "tcp"): { addr: string; token?: string };
  toolsPath: string;
  memoryPath: string;
  skillsPath: string;
  /** Sandbox config, for hands that look it up on another machine; empty = the default one. */
  sandbox?: string;
  /** What confines its programs. Rejects with a Fault where that is not possible here and nobody has said to do without. */
  cage(): Promise<Cage | undefined>;
  /** The same for services: what runs between the calls, when nobody looks, may not write to the project. */
  serviceCage(): Promise<Cage | undefined>;
  /** To be told after a call that somebody has let out: what it changed in protected places is to stay. */
  changesAllowed?(): void;
  /** Of this one call; without it one that needs it does not run. */
  approval?: Approval;
  jobs?: JobStarter;
  /** Where services of its tools run; without it tools that need one are refused. */
  services?: ServicePool;
}

export interface CallOutcome {
  ok: boolean;
  how: "done" | "failed" | "cancelled" | "timedOut" | "refused";
  /** As the model gets it. */
  text: string;
  /** The lines at the end of `text` that were not printed by the tool: what else there is to say, and how it ended. */
  closing?: string;
}

/** A call whose arguments have been read, repaired where that is unambiguous, and checked against the schema. */
export type Prepared =
  | { ok: true; tool: Tool; args: Record<string, unknown>; repaired?: string }
  | { ok: false; text: string };

export interface ToolRegistry {
  /** All tools of this host, sorted by name. Notices changed folders by itself (within 2 s). */
  list(): Tool[];
  get(name: string): Tool | undefined;
  /** Sidecars that could not be used: file and reason. */
  problems(): { file: string; reason: string }[];
  spec(tool: Tool): ToolSpec;
  close(): void;
}
