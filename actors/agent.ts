/**
 * An agent: idle → opening → thinking ⇄ calling → closing → idle, with `limitretry` while a provider asks to wait, and `reaching` between
 * opening and thinking where its tools are on another host.
 *
 * The machine decides what happens next; what happens is done by the actors that `src/turn` provides. Texts, history and queue live
 * in the agent's store behind `work`, never in the context, which is copied at every step.
 */
import {
  type ActorRefFrom,
  assign,
  type CallbackActorLogic,
  enqueueActions,
  fromCallback,
  fromPromise,
  setup,
} from "xstate";
import { CodedFault } from "../src/fault.ts";
import type { CallOutcome, Concurrency } from "../src/tools/tool.ts";
import { type Scheduled, startable } from "./schedule.ts";
import { toolcallMachine } from "./toolcall.ts";

/** How a turn ended; what the journal's `end` record says. */
export type TurnEnd = "done" | "stopped" | "failed";

/** One call as the model asked for it, on its way through the turn. */
export interface TurnCall extends Scheduled {
  id: string;
  name: string;
  concurrency: Concurrency;
  /** Handed to the toolcall actor. */
  work: unknown;
  /** The host that it runs on, while that is out of reach. */
  host?: string;
}

/** What the model answered: nothing to run, or calls. */
export interface Answer {
  calls: { id: string; name: string; concurrency: Concurrency; work: unknown }[];
}

/** What the turn does after a round of calls: ask again, or end with a reason. */
export type Verdict = { next: "ask" } | { next: "end"; how: TurnEnd; reason: string };

/** A request that failed but may be sent again after `delay` milliseconds. Thrown by `askModel`. */
export class RetryLater extends Error {
  constructor(
    readonly delay: number,
    reason: string,
  ) {
    super(reason);
  }
}

/** The questions the machine asks synchronously. */
export interface AgentWork {
  /** A text waits that starts a turn by itself (after a restart). */
  promptWaits(): boolean;
  /** Any text waits. */
  anythingWaits(): boolean;
  /** The tools are on another host, which has to be reached before the model is asked. */
  elsewhere(): boolean;
  /** Told of every result; journals it. Never throws. */
  settled(id: string, outcome: CallOutcome): void;
  /** Asked when all calls of a round are settled; a pure question, which may be asked twice. */
  verdict(): Verdict;
}

export interface AgentContext {
  work: AgentWork;
  /** Counts sendings of the present request, from 0. */
  attempt: number;
  /** When a delayed request goes out; milliseconds since 1970. */
  retryAt?: number;
  retryDelay: number;
  calls: TurnCall[];
  /** The host that is waited for, while it is out of reach. */
  host?: string;
  end: TurnEnding;
}

export interface TurnEnding {
  how: TurnEnd;
  reason?: string;
  /** What has failed is the way to another host, so what waits would fail as well: no turn begins until somebody asks for one. */
  halts?: boolean;
}

export type AgentEvent =
  | { type: "WAKE" }
  | { type: "RESUME" }
  | { type: "STOP" }
  | { type: "KILL" }
  | { type: "CALL.APPROVING"; id: string }
  | { type: "CALL.RUNNING"; id: string }
  | { type: "CALL.CUTOFF"; id: string; host: string }
  | { type: "CALL.BROKE"; id: string; reason: string }
  | { type: "HANDS.LOST"; host: string }
  | { type: "HANDS.BACK" }
  | { type: "HANDS.READY" }
  | { type: "HANDS.FAILED"; error: unknown }
  | { type: "CALL.SETTLED"; id: string; outcome: CallOutcome };

type WorkInput = { work: AgentWork };

const unprovided = (name: string) => () => Promise.reject(new Error(`${name} is not provided`));

/** Slack over the toolcall's own limit; only a call whose actor is broken gets here. */
const stoppingLimit = 1500;

export const agentMachine = setup({
  types: {
    context: {} as AgentContext,
    input: {} as WorkInput,
    events: {} as AgentEvent,
    children: {} as Record<string, "toolcall">,
  },
  actors: {
    openTurn: fromPromise<void, WorkInput>(unprovided("openTurn")),
    /** Answers with HANDS events, of which the last is READY or FAILED. */
    reachHands: fromCallback(() => {}) as CallbackActorLogic<{ type: "none" }, WorkInput>,
    askModel: fromPromise<Answer, WorkInput & { attempt: number }>(unprovided("askModel")),
    closeTurn: fromPromise<void, WorkInput & { end: TurnEnding }>(unprovided("closeTurn")),
    toolcall: toolcallMachine,
  },
  actions: {
    "begin afresh": assign({ attempt: 0, retryAt: undefined, calls: [], end: { how: "done" } }),
    "host is away": assign(({ event }) => (event.type === "HANDS.LOST" ? { host: event.host } : {})),
    "host is here": assign({ host: undefined }),
    "count attempt": assign({ attempt: ({ context }) => context.attempt + 1 }),
    "forget attempts": assign({ attempt: 0, retryAt: undefined }),
    "note retry": assign((_, delay: number) => ({ retryDelay: delay, retryAt: Date.now() + delay })),
    "end as": assign((_, end: TurnEnding) => ({ end })),
    "end as the verdict says": assign(({ context }) => {
      const verdict = context.work.verdict();
      return verdict.next === "end" ? { end: { how: verdict.how, reason: verdict.reason } } : {};
    }),
    // What the calls carry would otherwise stay in memory for as long as the agent is idle.
    "let go of calls": assign({ calls: [] }),
    "take calls": assign((_, answer: Answer) => ({
      calls: answer.calls.map((call) => ({ ...call, status: "waiting" as const })),
    })),
    "start calls": enqueueActions(({ context, enqueue }) => {
      const starting = startable(context.calls);
      if (starting.length === 0) return;
      enqueue.assign({
        calls: context.calls.map((c) => (starting.includes(c) ? { ...c, status: "queued" as const } : c)),
      });
      for (const { id, name, work } of starting)
        enqueue.spawnChild("toolcall", { id: callActor(id), input: { id, name, work } });
    }),
    "call asks": assign(({ context, event }) =>
      event.type === "CALL.APPROVING" ? { calls: withStatus(context.calls, event.id, "approving") } : {},
    ),
    "call runs": assign(({ context, event }) =>
      event.type === "CALL.RUNNING" ? { calls: withStatus(context.calls, event.id, "running") } : {},
    ),
    "call is cut off": assign(({ context, event }) =>
      event.type === "CALL.CUTOFF"
        ? { calls: withStatus(context.calls, event.id, "cutOff", event.host) }
        : {},
    ),
    // It has no result: its actor is over, and the turn with it.
    "call broke": enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "CALL.BROKE") return;
      enqueue.assign({
        calls: withStatus(context.calls, event.id, "settled"),
        end:
          context.end.how === "stopped" ? context.end : { how: "failed", reason: event.reason, halts: true },
      });
      enqueue.stopChild(callActor(event.id));
    }),
    "call settled": enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== "CALL.SETTLED") return;
      context.work.settled(event.id, event.outcome);
      enqueue.assign({ calls: withStatus(context.calls, event.id, "settled") });
      enqueue.stopChild(callActor(event.id));
    }),
    "stop calls": enqueueActions(({ context, enqueue }) => {
      const why = context.end.how === "failed" ? context.end.reason : undefined;
      for (const call of context.calls)
        if (call.status !== "waiting" && call.status !== "settled")
          enqueue.sendTo(callActor(call.id), { type: "STOP", why });
    }),
  },
  guards: {
    "a prompt waits": ({ context }) => context.work.promptWaits(),
    "something waits": ({ context }) => context.work.anythingWaits(),
    "may begin another": ({ context }) => context.end.halts !== true && context.work.anythingWaits(),
    "hands are elsewhere": ({ context }) => context.work.elsewhere(),
    "all calls settled": ({ context }) => context.calls.every((c) => c.status === "settled"),
    "no call in flight": ({ context }) =>
      context.calls.every((c) => c.status === "settled" || c.status === "waiting"),
    "has calls": (_, answer: Answer) => answer.calls.length > 0,
    "may go on": ({ context }) => context.work.verdict().next === "ask",
    "may retry": (_, error: unknown) => error instanceof RetryLater,
  },
  delays: {
    retry: ({ context }) => context.retryDelay,
    "stopping limit": stoppingLimit,
  },
}).createMachine({
  id: "agent",
  context: ({ input }) => ({
    work: input.work,
    attempt: 0,
    retryDelay: 0,
    calls: [],
    end: { how: "done" },
  }),
  initial: "idle",
  on: { KILL: ".dead" },
  states: {
    idle: {
      on: {
        WAKE: { guard: "something waits", target: "opening" },
        RESUME: { guard: "a prompt waits", target: "opening" },
      },
    },
    opening: {
      entry: "begin afresh",
      invoke: {
        src: "openTurn",
        input: ({ context }) => ({ work: context.work }),
        onDone: [{ guard: "hands are elsewhere", target: "reaching" }, { target: "thinking" }],
        onError: {
          target: "closing",
          actions: { type: "end as", params: ({ event }) => failure(event.error) },
        },
      },
      on: { STOP: { target: "closing", actions: { type: "end as", params: { how: "stopped" } } } },
    },
    reaching: {
      invoke: { src: "reachHands", input: ({ context }) => ({ work: context.work }) },
      exit: "host is here",
      on: {
        "HANDS.LOST": { actions: "host is away" },
        "HANDS.BACK": { actions: "host is here" },
        "HANDS.READY": "thinking",
        "HANDS.FAILED": {
          target: "closing",
          actions: { type: "end as", params: ({ event }) => failure(event.error) },
        },
        STOP: { target: "closing", actions: { type: "end as", params: { how: "stopped" } } },
      },
    },
    thinking: {
      invoke: {
        src: "askModel",
        input: ({ context }) => ({ work: context.work, attempt: context.attempt }),
        onDone: [
          {
            guard: { type: "has calls", params: ({ event }) => event.output },
            target: "calling",
            actions: ["forget attempts", { type: "take calls", params: ({ event }) => event.output }],
          },
          { target: "closing", actions: { type: "end as", params: { how: "done" } } },
        ],
        onError: [
          {
            guard: { type: "may retry", params: ({ event }: { event: { error: unknown } }) => event.error },
            target: "limitretry",
            actions: { type: "note retry", params: ({ event }) => (event.error as RetryLater).delay },
          },
          {
            target: "closing",
            actions: { type: "end as", params: ({ event }) => failure(event.error) },
          },
        ],
      },
      on: { STOP: { target: "closing", actions: { type: "end as", params: { how: "stopped" } } } },
    },
    limitretry: {
      after: { retry: { target: "thinking", actions: "count attempt" } },
      on: { STOP: { target: "closing", actions: { type: "end as", params: { how: "stopped" } } } },
    },
    calling: {
      entry: "start calls",
      on: {
        "CALL.APPROVING": { actions: "call asks" },
        "CALL.RUNNING": { actions: "call runs" },
        "CALL.CUTOFF": { actions: "call is cut off" },
        "CALL.SETTLED": { actions: ["call settled", "start calls"] },
        "CALL.BROKE": { target: "stopping", actions: "call broke" },
        STOP: { target: "stopping", actions: { type: "end as", params: { how: "stopped" } } },
      },
      always: { guard: "all calls settled", target: "weighing" },
    },
    weighing: {
      always: [
        { guard: "may go on", target: "thinking" },
        { target: "closing", actions: "end as the verdict says" },
      ],
    },
    stopping: {
      entry: "stop calls",
      on: {
        "CALL.APPROVING": { actions: "call asks" },
        "CALL.RUNNING": { actions: "call runs" },
        "CALL.CUTOFF": { actions: "call is cut off" },
        "CALL.SETTLED": { actions: "call settled" },
        "CALL.BROKE": { actions: "call broke" },
      },
      always: { guard: "no call in flight", target: "closing" },
      after: { "stopping limit": "closing" },
    },
    closing: {
      invoke: {
        src: "closeTurn",
        input: ({ context }) => ({ work: context.work, end: context.end }),
        onDone: [{ guard: "may begin another", target: "opening" }, { target: "idle" }],
        onError: "idle",
      },
      exit: "let go of calls",
    },
    dead: { type: "final" },
  },
});

export type AgentRef = ActorRefFrom<typeof agentMachine>;

function callActor(id: string): string {
  return `call:${id}`;
}

function withStatus(calls: TurnCall[], id: string, status: TurnCall["status"], host?: string): TurnCall[] {
  return calls.map((call) => (call.id === id ? { ...call, status, host } : call));
}

function failure(error: unknown): TurnEnding {
  const reason = error instanceof Error ? error.message : String(error);
  return error instanceof CodedFault ? { how: "failed", reason, halts: true } : { how: "failed", reason };
}
