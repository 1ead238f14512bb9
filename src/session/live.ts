/**
 * What the tree shows: live sessions and agents, as the namespace sees them. Each is an actor with its store behind it; the files read
 * these views and call these verbs, and know nothing else.
 *
 * Every method that changes something has checked everything before it changes anything, and has carried it out (durably, where the
 * contract says so) when its promise resolves. It rejects with a Fault.
 */

import type { Approvals } from "../elevate/approvals.ts";
import type { TextLog } from "../store/text-log.ts";

/** `key=value` words of a create or cfg write, in the order given; a later one wins. `env.NAME` keys are still spelled so. */
export type Keys = Map<string, string>;

/** What a file's content depends on: when a topic is touched, `qid.vers` and `mtime` of its files move. */
export type Topic =
  | "state"
  | "chat"
  | "queue"
  | "turn" // prompt.prev, reply, offset, context
  | "usage" // cost, usage, ctxsz
  | "cfg"
  | "tools"
  | "plan"
  | "env"
  | "name"
  | "children" // the list of agents
  | "remote" // remote, remotewait
  | "jobs"; // the list of jobs

export interface Stamp {
  /** Counts changes; becomes `qid.vers`. */
  vers: number;
  /** Milliseconds since 1970. */
  mtime: number;
}

export interface LiveAgent {
  readonly session: LiveSession;
  readonly name: string;
  /** First number of a block of qid paths that is this agent's alone; see `qidBlock`. */
  readonly qid: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** True once the agent has been removed: its files do not exist any more. */
  readonly removed: boolean;
  stamp(topic: Topic): Stamp;

  /** The one line of `state`, without newline. */
  readonly state: string;
  /** Counts changes of `state`. */
  readonly changes: number;
  /** Idle, and nothing about to start by itself. */
  readonly settled: boolean;
  /** Calls back after every change of `state` or `settled`, and when the agent is removed. Returns how to stop that. */
  watch(listener: () => void): () => void;

  /** A prompt: on disk, and the state has left idle (or the prompt waits behind a running turn), when this resolves. */
  submit(text: string): Promise<void>;
  /** Waits in the queue without starting a turn; durable when this resolves. */
  enqueue(text: string): Promise<void>;
  /** Throws a Fault where `ctl` would refuse the line at any time: no such verb, or not with such arguments. */
  checkCtl(line: string): void;
  /** An agent verb of `ctl`, one line. */
  ctl(line: string): Promise<void>;
  /** A slash line typed into `prompt` (with its slash); the answer goes into chat as an info block. */
  slash(line: string): Promise<void>;

  readonly chat: TextLog;
  /** The ring of transitions; `read` counts offsets from the first line ever, lines that fell out of the ring are skipped. */
  readonly trace: TextLog;
  promptPrev(): string;
  queue(): readonly { id: string; text: string }[];
  reply(): Promise<string>;
  offset(): number;
  cost(): string;
  usage(): string;
  /** `ask` as in `models`. */
  ctxsz(ask: boolean): Promise<string>;
  /** JSON lines. */
  context(): Promise<string>;
  systemPrompt(): Promise<string>;
  /** What is known so far. Never waits; with `ask`, what is unknown or old is asked for meanwhile. */
  models(ask: boolean): string;
  /** Names of loaded tools, sorted. */
  tools(): readonly string[];
  /** `NAME` loads, `-NAME` unloads; all or nothing. */
  changeTools(words: readonly string[]): Promise<void>;
  /** `key=value` lines, all keys, empty = unset. */
  cfg(): string;
  configure(keys: Keys): Promise<void>;
  /** What the agent runs on now, as `idx` lists it. */
  describe(): { backend: string; model: string; cwd: string };
  machine(): string;
  mermaid(): string;
  snapshot(): string;

  rename(name: string): Promise<void>;
  remove(): Promise<void>;
}

export interface LiveJob {
  readonly session: LiveSession;
  /** A number; no other job of the session ever has it. */
  readonly id: string;
  readonly qid: number;
  readonly created: number;
  readonly removed: boolean;
  stamp(topic: Topic): Stamp;

  /** The one line of `state`, without newline. */
  readonly state: string;
  readonly changes: number;
  /** The state will not change any more. */
  readonly ended: boolean;
  /** Calls back after every change of `state`, and when the job's files are removed. Returns how to stop that. */
  watch(listener: () => void): () => void;

  cmd(): string;
  readonly out: TextLog;
  exit(): string;
  /** As for agents. */
  checkCtl(line: string): void;
  ctl(line: string): Promise<void>;
  /** Ends it if it runs. */
  remove(): Promise<void>;
}

export interface LiveSession {
  readonly name: string;
  readonly qid: number;
  readonly created: number;
  readonly removed: boolean;
  stamp(topic: Topic): Stamp;

  /** In order of creation; the first is what `s/` shows. */
  agents(): readonly LiveAgent[];
  agent(name: string): LiveAgent | undefined;
  /** `maker`: the agent whose tool asks for it, and which limits what it may be; undefined: the owner. So it is below. */
  createAgent(keys: Keys, maker?: LiveAgent): Promise<LiveAgent>;
  /** Further writes on the same `agent/new` fid. */
  amendAgent(agent: LiveAgent, keys: Keys, maker?: LiveAgent): Promise<void>;
  /** What a read of `agent/new` gives before a write. */
  agentTemplate(maker?: LiveAgent): string;
  /** Whether its key `share` lists a session of that name, whose tools then may prompt it. */
  shares(name: string): boolean;

  cfg(): string;
  configure(keys: Keys): Promise<void>;
  env(): string;
  changeEnv(keys: Keys): Promise<void>;
  plan(): Uint8Array;
  /** The whole new text; atomically and durably. */
  writePlan(text: Uint8Array): Promise<void>;
  /** Where its tools run: `line` is that of the file `remote`. */
  readonly remote: {
    readonly line: string;
    readonly changes: number;
    watch(listener: () => void): () => void;
  };
  readonly jobs: { all(): readonly LiveJob[]; get(id: string): LiveJob | undefined };
  /** As `LiveAgent.checkCtl`. */
  checkCtl(line: string): void;
  /** A session verb of `ctl`, one line. */
  ctl(line: string): Promise<void>;

  rename(name: string): Promise<void>;
  remove(): Promise<void>;
}

export interface Runtime {
  /** What waits to be allowed by the user. */
  readonly approvals: Approvals;
  sessions(): readonly LiveSession[];
  session(name: string): LiveSession | undefined;
  /** Creates everything or nothing. */
  createSession(keys: Keys, maker?: LiveAgent): Promise<LiveSession>;
  amendSession(session: LiveSession, keys: Keys, maker?: LiveAgent): Promise<void>;
  sessionTemplate(maker?: LiveAgent): string;
  stamp(topic: "children"): Stamp;

  /** The root's text files, ready to read; `ask` as in `LiveAgent.models`. */
  version(): string;
  backends(ask: boolean): string;
  models(ask: boolean): string;
  agents(): string;
  tools(): string;
  skills(): string;
  metrics(): string;
}

/** How many qid paths belong to one session, agent or job: its folder is the first, its files follow in the order of the tables. Block 0 is the root's. */
export const qidBlock = 64;
