/** The agent machine with its actors: what `actors/agent.ts` only names, done by Turns and Call. */
import { type CallbackActorLogic, fromCallback, fromPromise } from "xstate";
import { type AgentWork, type Answer, agentMachine, type TurnEnding } from "../../actors/agent.ts";
import { sessionMachine } from "../../actors/session.ts";
import { type StopEvent, toolcallMachine } from "../../actors/toolcall.ts";
import { Fault, toFault } from "../fault.ts";
import type { CallOutcome } from "../tools/tool.ts";
import type { Call } from "./call.ts";
import type { Turns } from "./turns.ts";

type Input = { work: AgentWork };
const turnsOf = (input: Input): Turns => input.work as Turns;

const execute: CallbackActorLogic<StopEvent, { work: unknown }> = fromCallback(
  ({ input, sendBack, receive }) => {
    const call = input.work as Call;
    const stop = new AbortController();
    receive(({ why }) =>
      stop.abort(why ? new Fault("interrupted", `ended with the turn (${why})`) : call.whyStopped()),
    );
    const link = {
      lost: (host: string) => sendBack({ type: "LOST", host }),
      back: () => sendBack({ type: "BACK" }),
    };
    call.execute(stop.signal, link).then(
      (outcome) => sendBack({ type: "EXECUTED", outcome }),
      (error) => sendBack({ type: "BROKE", reason: toFault(error).message }),
    );
    return () => stop.abort(call.whyStopped());
  },
);

const reachHands: CallbackActorLogic<{ type: "none" }, Input> = fromCallback(({ input, sendBack }) => {
  const left = new AbortController();
  const link = {
    lost: (host: string) => sendBack({ type: "HANDS.LOST", host }),
    back: () => sendBack({ type: "HANDS.BACK" }),
  };
  turnsOf(input)
    .reach(left.signal, link)
    .then(
      () => sendBack({ type: "HANDS.READY" }),
      (error) => sendBack({ type: "HANDS.FAILED", error }),
    );
  return () => left.abort();
});

const liveToolcall = toolcallMachine.provide({
  actors: {
    admit: fromPromise<boolean, { work: unknown }>(({ input }) => (input.work as Call).admit()),
    approve: fromPromise<CallOutcome | undefined, { work: unknown }>(({ input, signal }) =>
      (input.work as Call).approve(signal),
    ),
    execute,
  },
});

export const liveAgent = agentMachine.provide({
  actors: {
    toolcall: liveToolcall,
    openTurn: fromPromise<void, Input>(({ input }) => turnsOf(input).open()),
    reachHands,
    askModel: fromPromise<Answer, Input & { attempt: number }>(({ input, signal }) =>
      turnsOf(input).ask(input.attempt, signal),
    ),
    closeTurn: fromPromise<void, Input & { end: TurnEnding }>(({ input }) => turnsOf(input).close(input.end)),
  },
});

export const liveSession = sessionMachine.provide({ actors: { agent: liveAgent } });
