/**
 * One tool call: queued → (approving →) executing → done | failed | cancelled | timedOut | refused | broken.
 *
 * `admit` waits until the call may run (an exclusive call is alone in its session) and says whether somebody has to allow it first;
 * `approve` asks, and gives an outcome where the answer is no; `execute` runs it and answers STOP by ending the process group, so that
 * what was printed so far still becomes the result. On another host it goes on while that is out of reach (`cutOff`); where nobody will ever
 * learn how it went, the call is `broken`, which is no result but the end of its turn.
 */
import {
  assign,
  type CallbackActorLogic,
  fromCallback,
  fromPromise,
  sendParent,
  sendTo,
  setup,
} from "xstate";
import type { CallOutcome } from "../src/tools/tool.ts";

/** What a call is, to its actor: a name to show and a handle that only the provided actors look into. */
export interface ToolcallInput {
  id: string;
  name: string;
  work: unknown;
}

/** `why`: what has ended the turn, where nobody has stopped it. */
export type StopEvent = { type: "STOP"; why?: string };

export type ToolcallEvent =
  | StopEvent
  | { type: "EXECUTED"; outcome: CallOutcome }
  /** The host that it runs on is out of reach, and back again. */
  | { type: "LOST"; host: string }
  | { type: "BACK" }
  /** The way to that host is broken for good. */
  | { type: "BROKE"; reason: string };

interface ToolcallContext extends ToolcallInput {
  outcome?: CallOutcome;
  /** Where it runs, while that is out of reach. */
  host?: string;
  /** Why it is broken. */
  reason?: string;
}

/** How long an execution may take to end after STOP before its result is given up: TERM, 500 ms, KILL, and some slack. */
const stopLimit = 900;

export const toolcallMachine = setup({
  types: {
    context: {} as ToolcallContext,
    input: {} as ToolcallInput,
    events: {} as ToolcallEvent,
  },
  actors: {
    admit: fromPromise<boolean, { work: unknown }>(() => Promise.reject(new Error("admit is not provided"))),
    approve: fromPromise<CallOutcome | undefined, { work: unknown }>(() =>
      Promise.reject(new Error("approve is not provided")),
    ),
    execute: fromCallback(() => {}) as CallbackActorLogic<StopEvent, { work: unknown }>,
  },
  actions: {
    "tell parent: approving": sendParent(({ context }: { context: ToolcallInput }) => ({
      type: "CALL.APPROVING",
      id: context.id,
    })),
    "tell parent: running": sendParent(({ context }: { context: ToolcallInput }) => ({
      type: "CALL.RUNNING",
      id: context.id,
    })),
    "tell parent: cut off": sendParent(({ context }: { context: ToolcallContext }) => ({
      type: "CALL.CUTOFF",
      id: context.id,
      host: context.host,
    })),
    "tell parent: settled": sendParent(({ context }: { context: ToolcallContext }) => ({
      type: "CALL.SETTLED",
      id: context.id,
      outcome: context.outcome,
    })),
    "tell parent: broken": sendParent(({ context }: { context: ToolcallContext }) => ({
      type: "CALL.BROKE",
      id: context.id,
      reason: context.reason,
    })),
    "keep host": assign(({ event }) => (event.type === "LOST" ? { host: event.host } : {})),
    "keep reason": assign(({ event }) => (event.type === "BROKE" ? { reason: event.reason } : {})),
    "keep outcome": assign(({ event }) => (event.type === "EXECUTED" ? { outcome: event.outcome } : {})),
    "outcome: denied": assign((_, outcome: CallOutcome) => ({ outcome })),
    "outcome: never ran": assign(({ event }) => {
      const why = event.type === "STOP" ? event.why : undefined;
      const text = why
        ? `It was not run: the turn had ended (${why}).`
        : "Cancelled by the user before it ran.";
      return { outcome: { ok: false, how: "cancelled" as const, text } };
    }),
    "outcome: would not end": assign({
      outcome: {
        ok: false,
        how: "cancelled",
        text: "Cancelled by the user; the process did not end in time and its output is lost.",
      },
    }),
    "outcome: out of reach": assign(({ context }) => ({
      outcome: {
        ok: false,
        how: "cancelled" as const,
        text: `Cancelled by the user while ${context.host} was out of reach; what still runs there is ended as soon as it is back.`,
      },
    })),
    "outcome: not admitted": assign({
      outcome: { ok: false, how: "failed", text: "The call could not be started." },
    }),
  },
  guards: {
    "must be allowed": (_, approval: boolean) => approval,
    "was denied": (_, outcome: CallOutcome | undefined) => outcome !== undefined,
    "ended as": ({ event }, how: CallOutcome["how"]) =>
      event.type === "EXECUTED" && event.outcome.how === how,
  },
  delays: { "stop limit": stopLimit },
}).createMachine({
  id: "toolcall",
  context: ({ input }) => input,
  initial: "queued",
  states: {
    queued: {
      invoke: {
        src: "admit",
        input: ({ context }) => ({ work: context.work }),
        onDone: [
          {
            guard: { type: "must be allowed", params: ({ event }) => event.output },
            target: "approving",
          },
          { target: "executing" },
        ],
        onError: { target: "failed", actions: "outcome: not admitted" },
      },
      on: { STOP: { target: "cancelled", actions: "outcome: never ran" } },
    },
    approving: {
      entry: "tell parent: approving",
      invoke: {
        src: "approve",
        input: ({ context }) => ({ work: context.work }),
        onDone: [
          {
            guard: {
              type: "was denied",
              params: ({ event }: { event: { output: CallOutcome | undefined } }) => event.output,
            },
            target: "refused",
            actions: { type: "outcome: denied", params: ({ event }) => event.output! },
          },
          { target: "executing" },
        ],
        onError: { target: "failed", actions: "outcome: not admitted" },
      },
      on: { STOP: { target: "cancelled", actions: "outcome: never ran" } },
    },
    executing: {
      invoke: { src: "execute", id: "execution", input: ({ context }) => ({ work: context.work }) },
      on: {
        EXECUTED: [
          { guard: { type: "ended as", params: "done" }, target: "done", actions: "keep outcome" },
          { guard: { type: "ended as", params: "timedOut" }, target: "timedOut", actions: "keep outcome" },
          { guard: { type: "ended as", params: "cancelled" }, target: "cancelled", actions: "keep outcome" },
          { guard: { type: "ended as", params: "refused" }, target: "refused", actions: "keep outcome" },
          { target: "failed", actions: "keep outcome" },
        ],
        BROKE: { target: "broken", actions: "keep reason" },
      },
      initial: "running",
      states: {
        running: {
          entry: "tell parent: running",
          on: {
            LOST: { target: "cutOff", actions: "keep host" },
            STOP: { target: "ending", actions: sendTo("execution", ({ event }) => event) },
          },
        },
        cutOff: {
          entry: "tell parent: cut off",
          on: {
            BACK: "running",
            // Nobody can be waited for there; leaving tells the execution, which ends what runs when it can.
            STOP: { target: "#toolcall.cancelled", actions: "outcome: out of reach" },
          },
        },
        ending: {
          after: {
            "stop limit": { target: "#toolcall.cancelled", actions: "outcome: would not end" },
          },
        },
      },
    },
    done: { type: "final", entry: "tell parent: settled" },
    failed: { type: "final", entry: "tell parent: settled" },
    cancelled: { type: "final", entry: "tell parent: settled" },
    timedOut: { type: "final", entry: "tell parent: settled" },
    refused: { type: "final", entry: "tell parent: settled" },
    broken: { type: "final", entry: "tell parent: broken" },
  },
});
