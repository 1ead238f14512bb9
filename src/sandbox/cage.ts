/** A policy on this host: how a call's program is started, and what is to be said of it. */
import type { Launch } from "../exec/launch.ts";

export interface Cage {
  /** For a result's status line: `unsandboxed`, `sandbox: partial (…)`; undefined = all that the policy says is enforced. */
  readonly notice?: string;
  /** The same where all that it allows is the same. */
  readonly terms: string;
  /** It lets no unix socket through: a tool finds its tree over the loopback. */
  readonly noUnixSockets?: boolean;
  /** Whether a program gets this variable of the server's environment. */
  allows(variable: string): boolean;
  /** @param options.memory as in `plainLaunch`; `outlives`: the program goes on when the server ends */
  launch(options?: { memory?: number; outlives?: boolean }): Launch;
  /**
   * To be called after the call, however it ended: undoes changes in protected places and explains what was denied. Sentences for the
   * result, none = nothing to say; none also when called again.
   */
  after(output: string): Promise<string[]>;
}
