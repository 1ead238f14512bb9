/** What an agent is at the end of its journal: the fold of its records. Small, since thousands of idle agents are held in memory. */
import type { Usage } from "../backends/backend.ts";
import type { Place } from "./journal-lines.ts";
import type { JournalRecord, Waiting } from "./records.ts";

/** A waiting text and where its record stands in the journal. */
export interface Held extends Waiting {
  place: Place;
}

export interface RunningTurn {
  id: string;
  /** Id of the prompt it began with. */
  prompt: string;
  /** Milliseconds since 1970. */
  at: number;
  /** Its user block in chat, in bytes. */
  chatAt: number;
  offset: number;
  /** Where its first record stands in the journal. */
  from: number;
}

export interface EndedTurn extends RunningTurn {
  how: Extract<JournalRecord, { t: "end" }>["how"];
  reason?: string;
  /** Where its last record ends in the journal. */
  to: number;
}

export interface Totals {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  requests: number;
  /** Whether any of the numbers is a guess. */
  estimated: boolean;
  /** USD; undefined as soon as the price of one request is unknown. */
  cost?: number;
}

export interface AgentState {
  /** Empty until the first record is read. */
  id: string;
  /** Milliseconds since 1970. */
  created: number;
  /** Name of the agent config it was made with. */
  config: string;
  /** Settings that differ from the config's. */
  cfg: Map<string, string>;
  /** What comes next is first: injects, then the others in the order they came. */
  waiting: Held[];
  running?: RunningTurn;
  last?: EndedTurn;
  /** Where the prompt of the running or last turn stands in the journal, and its id. */
  prevPrompt?: { id: string; place: Place };
  /** Of all requests ever. */
  total: Totals;
  /** Of the running or last turn. */
  turn: Totals;
  /** The last request since the history began. */
  lastRequest?: { backend: string; model: string; usage: Usage };
  /** Tools that differ from what the config loads. */
  loaded: Set<string>;
  unloaded: Set<string>;
  /** Answers of the model in the running or last turn, broken ones not counted. */
  steps: number;
  /**
   * Operations on another host that nothing is known of yet, with the ids of their calls; those of an earlier turn without, since other calls
   * may have the same.
   */
  operations: Map<string, string>;
  /** A tool of this agent has run on another host. */
  ranElsewhere: boolean;
  /** Byte of the journal from which the history can be read: the last clear, or the oldest text that waited then. */
  historyFrom: number;
}

function noUsage(): Totals {
  return {
    input: 0,
    cacheRead: 0,
    cacheWrite: 0,
    output: 0,
    reasoning: 0,
    requests: 0,
    estimated: false,
    cost: 0,
  };
}

export function emptyState(): AgentState {
  return {
    id: "",
    created: 0,
    config: "",
    cfg: new Map(),
    waiting: [],
    total: noUsage(),
    turn: noUsage(),
    loaded: new Set(),
    unloaded: new Set(),
    steps: 0,
    operations: new Map(),
    ranElsewhere: false,
    historyFrom: 0,
  };
}

/** Takes one more record into `state`, in place. `place` is where its line stands in the journal. */
export function fold(state: AgentState, record: JournalRecord, place: Place): void {
  switch (record.t) {
    case "agent":
      if (state.id !== "") return;
      state.id = record.id;
      state.created = record.at;
      state.config = record.config;
      return;
    case "cfg":
      for (const [key, value] of Object.entries(record.set))
        if (value === null) state.cfg.delete(key);
        else state.cfg.set(key, value);
      return;
    case "tools":
      for (const name of record.load) move(name, state.unloaded, state.loaded);
      for (const name of record.unload) move(name, state.loaded, state.unloaded);
      return;
    case "prompt":
      wait(state.waiting, { id: record.id, text: record.text, how: record.how, place });
      return;
    case "dequeue":
      take(state.waiting, record.id);
      return;
    case "inject":
      take(state.waiting, record.prompt);
      return;
    case "turn":
      begin(state, record, place);
      return;
    case "assistant":
      if (!record.partial) state.steps++;
      return;
    case "usage":
      add(state.total, record);
      if (state.running) add(state.turn, record);
      state.lastRequest = { backend: record.backend, model: record.model, usage: record.usage };
      return;
    case "end":
      end(state, record, place);
      return;
    case "clear":
      state.historyFrom = Math.min(place.at, ...state.waiting.map((held) => held.place.at));
      state.lastRequest = undefined;
      return;
    case "call":
      if (record.op === undefined) return;
      state.operations.set(record.op, record.id);
      state.ranElsewhere = true;
      return;
    case "result":
      for (const [op, id] of state.operations) if (id === record.id) state.operations.delete(op);
      return;
    case "op":
      state.operations.delete(record.op);
      return;
    case "note":
      return;
  }
}

function move(name: string, from: Set<string>, to: Set<string>): void {
  from.delete(name);
  to.add(name);
}

function wait(waiting: Held[], held: Held): void {
  if (held.how !== "inject") waiting.push(held);
  else {
    const behind = waiting.findIndex((other) => other.how !== "inject");
    waiting.splice(behind < 0 ? waiting.length : behind, 0, held);
  }
}

function take(waiting: Held[], id: string): Held | undefined {
  const index = waiting.findIndex((held) => held.id === id);
  return index < 0 ? undefined : waiting.splice(index, 1)[0];
}

function begin(state: AgentState, record: Extract<JournalRecord, { t: "turn" }>, place: Place): void {
  const { id, prompt, at, chatAt, offset } = record;
  const held = take(state.waiting, prompt);
  state.prevPrompt = held && { id: prompt, place: held.place };
  state.running = { id, prompt, at, chatAt, offset, from: place.at };
  state.turn = noUsage();
  state.steps = 0;
  for (const op of state.operations.keys()) state.operations.set(op, "");
}

function end(state: AgentState, record: Extract<JournalRecord, { t: "end" }>, place: Place): void {
  if (state.running?.id !== record.turn) return;
  const to = place.at + place.bytes;
  state.last = { ...state.running, how: record.how, reason: record.reason, to };
  state.running = undefined;
}

function add(totals: Totals, record: Extract<JournalRecord, { t: "usage" }>): void {
  const { usage } = record;
  totals.input += usage.input;
  totals.cacheRead += usage.cacheRead;
  totals.cacheWrite += usage.cacheWrite;
  totals.output += usage.output;
  totals.reasoning += usage.reasoning ?? 0;
  totals.requests++;
  totals.estimated ||= usage.estimated === true;
  totals.cost =
    totals.cost === undefined || record.cost === undefined ? undefined : totals.cost + record.cost;
}
