/** What a session needs of the way to another host; `src/remote/client` makes it, `cli/server/serve.ts` brings the two together. */
import type { InspectionEvent } from "xstate";
import type { RemoteJobs } from "../remote/client/jobs.ts";
import type { Hands } from "../tools/hands.ts";

/** Says which session on which host this is, so that a later server finds it. Some of it is secret: it is shown nowhere. */
export type Locator = Record<string, unknown>;

/** The session that asks, as it is when it is asked. */
export interface RemoteOwner {
  readonly name: string;
  /** What `remote=` says. */
  readonly target: string;
  /** Working folder there: absolute, below `~`, or empty for the home folder. */
  readonly cwd: string;
  /** The session's env file. */
  env(): Record<string, string>;
  /** Sandbox config of its calls; empty: the default one. */
  sandbox(): string;
  /** Takes secrets out of what is logged. */
  mask(text: string): string;
  /** As it was kept last; absent: it has never been there. */
  readonly locator: Locator | undefined;
  /** Durable when it resolves. */
  keep(locator: Locator): Promise<void>;
  /** `remoteSession=ID`: a session that is there already. It is attached or the way fails; another one is never made. */
  readonly attach: string | undefined;
  /** Something to be told in chat, once. */
  say(text: string): void;
  /** What the actor of the way goes through. */
  inspect(event: InspectionEvent): void;
}

export interface SessionRemote {
  readonly hands: Hands;
  readonly jobs: RemoteJobs;
  /** One line for people: state, target, and what there is to say. */
  readonly line: string;
  /** The host can be used now. */
  readonly ready: boolean;
  /** What is known of its state machine, without secrets. */
  snapshot(): unknown;
  /** Milliseconds that a call waits for a lost host before that is told. */
  readonly grace: number;
  /** Called after every change of `line`. */
  watch(listener: () => void): () => void;
  /** At once, whatever it waits for; also out of a failure. */
  reconnect(): void;
  /** Resolves when the tools there are those of here. @throws Fault */
  sync(): Promise<void>;
  /** Lets go: what runs there goes on. */
  close(): Promise<void>;
  /** Ends what runs there and removes the session there, if ollie has made it. @throws Fault where the host cannot be reached */
  destroy(signal: AbortSignal): Promise<void>;
}

/** The other hosts of a server. */
export interface RemoteHosts {
  /** @throws Fault that says what a target looks like */
  check(target: string): void;
  /** Nothing is connected yet: the first question to its hands does that. */
  open(owner: RemoteOwner): SessionRemote;
}
