/** Sandbox configs on this host: which there are, and what one comes to for a call. */
import type { Paths } from "../config/paths.ts";
import type { Policy } from "./policy.ts";

/** What every policy of a server is made from. */
export interface SandboxGround {
  paths: Paths;
  /** The server's environment, for templates such as `{GOPATH}`. Sessions' own variables are not trusted with paths. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Sockets of the server and of whoever answers for the user; none is ever granted. */
  sockets: readonly string[];
}

/** Whose policy. */
export interface PolicyRequest {
  /** Of a config: the session's key `sandbox`, else the agent config's; empty = `default`. */
  name?: string;
  cwd: string;
  /** The session's private folder, `STATE/tmp/ID`, which exists. */
  tmp: string;
  /** Who is told remarks, each once: `SESSION/AGENT`. */
  listener: string;
}

export interface Confinement {
  policy: Policy;
  /** Sentences for the result of this call, such as of a project file that nobody has approved. */
  remarks: string[];
  /** The file of the user's own config in which a missing right would be granted, whether it exists or not. */
  rulesFile: string;
}

/** What a session, a launcher and the commands need of sandbox configs; changed files are noticed within 2 s. */
export interface SandboxConfigs {
  /** Names of all configs, sorted; `default` is always among them. */
  names(): string[];
  /** @throws Fault "missing" that lists the configs there are, "invalid" that names file and key */
  check(name: string): void;
  /**
   * @throws Fault as `check` does, and "denied" or "invalid" where no sandbox can be made around `cwd`: it lies in a place that is
   *   protected, or holds everything; the sentence says what to choose instead
   */
  policyFor(request: PolicyRequest): Confinement;
}
