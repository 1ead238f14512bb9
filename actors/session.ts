/**
 * A session: the parent of its agents. A root actor of its own, since thousands of children under one parent cost quadratic time.
 */
import { type ActorRefFrom, type ErrorActorEvent, enqueueActions, setup } from "xstate";
import { type AgentWork, agentMachine } from "./agent.ts";

export const sessionMachine = setup({
  types: {
    events: {} as
      | { type: "ADD"; id: string; work: AgentWork }
      | { type: "REMOVE"; id: string }
      | { type: "STOP" }
      | { type: "KILL" }
      | ErrorActorEvent,
  },
  actors: { agent: agentMachine },
  actions: {
    "add agent": enqueueActions(({ event, enqueue }) => {
      if (event.type === "ADD") enqueue.spawnChild("agent", { id: event.id, input: { work: event.work } });
    }),
    "remove agent": enqueueActions(({ event, enqueue }) => {
      if (event.type !== "REMOVE") return;
      enqueue.sendTo(event.id, { type: "KILL" });
      enqueue.stopChild(event.id);
    }),
    "tell agents": enqueueActions(({ event, self, enqueue }) => {
      for (const id of Object.keys(self.getSnapshot().children)) enqueue.sendTo(id, { type: event.type });
    }),
  },
}).createMachine({
  id: "session",
  initial: "open",
  states: {
    open: {
      on: {
        ADD: { actions: "add agent" },
        REMOVE: { actions: "remove agent" },
        STOP: { actions: "tell agents" },
        KILL: { target: "closed", actions: "tell agents" },
        // Without a transition for it, an agent that broke would break its session and with it all the others.
        "xstate.error.actor.*": {},
      },
    },
    closed: { type: "final" },
  },
});

export type SessionRef = ActorRefFrom<typeof sessionMachine>;
