/** What the host's end asks the policy of a session. */
import type { Step } from "../protocol/operation.ts";
import type { EffectivePolicy } from "./effective.ts";

export interface ResolvedProgram {
  /** Absolute, links not resolved: what a program is may hang on the name of the link. */
  path: string;
  argv0: string;
}

/** Things of the host and the session that a policy is held against. */
export interface PolicyGround {
  /** The host user's home and environment, as the daemon was started with. */
  home: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** Folder of the session, `ROOT/sessions/ID`; CARGO_HOME and SQLite files are made in it. */
  folder: string;
  /** Globs of what is ollie's own in the working folder: sessions and their keys, programs, tools. */
  own?: readonly string[];
  /** The PATH of the user's login shell: for hosts on which every program is allowed. */
  loginPath?: string;
}

export type EnvRefs = Readonly<Record<string, { kind: "host" | "session_sqlite" }>>;

export interface HostPolicy {
  readonly policy: EffectivePolicy;
  readonly hash: string;
  readonly envRefHash: string;
  /** Folders below the session's that programs have to be able to write: CARGO_HOME, SQLite files. They exist. */
  readonly folders: readonly string[];
  /**
   * Which file a program of a step is.
   * @param cwd for programs with a slash in their names
   * @throws CodedFault `policy.program` where it is not allowed, `op.program` where there is none of that name
   */
  checkProgram(program: string, cwd: string): ResolvedProgram;
  /**
   * Number and length of arguments, whether steps of that kind are allowed.
   * @throws CodedFault of the family `policy`
   */
  checkStep(step: Step): void;
  /**
   * The whole environment of a step's program.
   * @param own variables of the step
   * @throws CodedFault `policy.env`, `policy.env_ref`
   */
  environmentFor(own: Readonly<Record<string, string>>): Record<string, string>;
  /** @param rel path below the working folder, without `.` and `..`; empty = that folder itself. @throws CodedFault `file.denied` */
  checkPath(rel: string, access: "read" | "write"): void;
  /** As `checkPath`, for lists from which something is left out. */
  allowsPath(rel: string, access: "read" | "write"): boolean;
  /** Whether something below a folder that may not be read itself could be read. */
  mayHold(rel: string): boolean;
  /** @throws CodedFault `policy.elevated` */
  checkElevated(): void;
}
