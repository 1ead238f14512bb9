/** The agent machine with its actors: what `actors/agent.ts` only names, done by Turns and Call. */
import { type CallbackActorLogic, fromCallback, fromPromise } from "xstate";
import { type AgentWork, type Answer, agentMachine, type TurnEnd } from "../../actors/agent.ts";
import { sessionMachine } from "../../actors/session.ts";
import { toolcallMachine } from "../../actors/toolcall.ts";
import type { CallOutcome } from "../tools/tool.ts";
import type { Call } from "./call.ts";
import type { Turns } from "./turns.ts";

const execute: CallbackActorLogic<{ type: "STOP" }, { work: unknown }> = fromCallback(
  ({ input, sendBack, receive }) => {
    const call = input.work as Call;
    const stop = new AbortController();
    receive(() => stop.abort(call.whyStopped()));
    call.execute(stop.signal).then((outcome) => sendBack({ type: "EXECUTED", outcome }));
    return () => stop.abort();
  },
);

const liveToolcall = toolcallMachine.provide({
  actors: {
    admit: fromPromise<boolean, { work: unknown }>(({ input }) => (input.work as Call).admit()),
    approve: fromPromise<CallOutcome | undefined, { work: unknown }>(({ input, signal }) =>
      (input.work as Call).approve(signal),
    ),
    execute,
  },
});

type Input = { work: AgentWork };
const turnsOf = (input: Input): Turns => input.work as Turns;

export const liveAgent = agentMachine.provide({
  actors: {
    toolcall: liveToolcall,
    openTurn: fromPromise<void, Input>(({ input }) => turnsOf(input).open()),
    askModel: fromPromise<Answer, Input & { attempt: number }>(({ input, signal }) =>
      turnsOf(input).ask(input.attempt, signal),
    ),
    closeTurn: fromPromise<void, Input & { end: { how: TurnEnd; reason?: string } }>(({ input }) =>
      turnsOf(input).close(input.end),
    ),
  },
});

export const liveSession = sessionMachine.provide({ actors: { agent: liveAgent } });
