/**
 * One tool call: queued → (approving →) executing → done | failed | cancelled | timedOut | refused.
 *
 * `admit` waits until the call may run (an exclusive call is alone in its session) and says whether somebody has to allow it first;
 * `approve` asks, and gives an outcome where the answer is no; `execute` runs it and answers STOP by ending the process group, so that
 * what was printed so far still becomes the result.
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

type ExecutionEvent = { type: "STOP" };

/** How long an execution may take to end after STOP before its result is given up: TERM, 500 ms, KILL, and some slack. */
const stopLimit = 900;

export const toolcallMachine = setup({
  types: {
    context: {} as ToolcallInput & { outcome?: CallOutcome },
    input: {} as ToolcallInput,
    events: {} as { type: "STOP" } | { type: "EXECUTED"; outcome: CallOutcome },
  },
  actors: {
    admit: fromPromise<boolean, { work: unknown }>(() => Promise.reject(new Error("admit is not provided"))),
    approve: fromPromise<CallOutcome | undefined, { work: unknown }>(() =>
      Promise.reject(new Error("approve is not provided")),
    ),
    execute: fromCallback(() => {}) as CallbackActorLogic<ExecutionEvent, { work: unknown }>,
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
    "tell parent: settled": sendParent(
      ({ context }: { context: ToolcallInput & { outcome?: CallOutcome } }) => ({
        type: "CALL.SETTLED",
        id: context.id,
        outcome: context.outcome,
      }),
    ),
    "keep outcome": assign(({ event }) => (event.type === "EXECUTED" ? { outcome: event.outcome } : {})),
    "outcome: denied": assign((_, outcome: CallOutcome) => ({ outcome })),
    "outcome: never ran": assign({
      outcome: { ok: false, how: "cancelled", text: "Cancelled by the user before it ran." },
    }),
    "outcome: would not end": assign({
      outcome: {
        ok: false,
        how: "cancelled",
        text: "Cancelled by the user; the process did not end in time and its output is lost.",
      },
    }),
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
      entry: "tell parent: running",
      invoke: { src: "execute", id: "execution", input: ({ context }) => ({ work: context.work }) },
      on: {
        EXECUTED: [
          { guard: { type: "ended as", params: "done" }, target: "done", actions: "keep outcome" },
          { guard: { type: "ended as", params: "timedOut" }, target: "timedOut", actions: "keep outcome" },
          { guard: { type: "ended as", params: "cancelled" }, target: "cancelled", actions: "keep outcome" },
          { guard: { type: "ended as", params: "refused" }, target: "refused", actions: "keep outcome" },
          { target: "failed", actions: "keep outcome" },
        ],
      },
      initial: "running",
      states: {
        running: {
          on: { STOP: { target: "ending", actions: sendTo("execution", { type: "STOP" }) } },
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
  },
});
