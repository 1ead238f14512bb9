/** Where the tools of a session are found and run: this machine (`here.ts`), or another one (`src/remote/client`). */
import type { CallContext, CallOutcome, Prepared, ToolRegistry } from "./tool.ts";

/** What a call tells while it runs. */
export interface CallListener extends Link {
  /** What was printed, cleaned for display. */
  output(text: string): void;
}

/** What whoever waits for another host is told of the way to it. */
export interface Link {
  /** The host is out of reach; the call waits, and what it runs goes on there. */
  lost(host: string): void;
  back(): void;
}

/** What sudo wants on a machine before it runs something as root. */
export interface SudoDoor {
  /** `refused`: why it will not do it, whatever it is given. */
  probe(signal: AbortSignal): Promise<{ program: string; password: boolean } | { refused: string }>;
  /** Whether a password is right, without running anything. */
  check(password: Uint8Array, signal: AbortSignal): Promise<"right" | "wrong" | { refused: string }>;
}

export interface Hands {
  /** The other machine, for people; undefined: this one. */
  readonly host?: string;
  /** sudo there, for the operation of that id; absent: what is asked is this machine's. */
  sudo?(opId: string): SudoDoor;
  /** The tools of that machine, its variants weighed there; of another one empty until it has been reached once. */
  readonly registry: ToolRegistry;
  /**
   * Resolves when tools are known and can be run.
   * @throws CodedFault where the machine cannot be used and waiting does not help
   */
  ready(signal: AbortSignal, listener: Link): Promise<void>;
  /**
   * As `callTool`.
   * @param opId names the call for ever: asked for again, it is not run again. `again`: a server that has ended since may have asked for it,
   *   and so it is only looked for
   * @throws CodedFault where nobody knows how the call has gone; never as the result of a tool
   */
  call(
    prepared: Prepared,
    ctx: CallContext,
    call: { callId: string; opId: string; again?: boolean },
    signal: AbortSignal,
    listener: CallListener,
  ): Promise<CallOutcome>;
  /** What every request tells the model of the project. */
  survey(cwd: string, signal: AbortSignal): Promise<ProjectSurvey>;
}

export interface ProjectSurvey {
  /** As in `linux x64`. */
  platform: string;
  /** The repository and its branch, in words. */
  git: string;
  /** AGENTS.md and the like that apply to the folder, outermost first. */
  files: { path: string; text: string }[];
}
