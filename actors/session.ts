/**
 * A session: the parent of its agents and jobs. A root actor of its own, since thousands of children under one parent cost quadratic time.
 */
import { type ActorRefFrom, type ErrorActorEvent, enqueueActions, setup } from "xstate";
import { type AgentWork, agentMachine } from "./agent.ts";
import { type JobInput, jobMachine } from "./job.ts";

export const sessionMachine = setup({
  types: {
    events: {} as
      | { type: "ADD"; id: string; work: AgentWork }
      | { type: "REMOVE"; id: string }
      | ({ type: "ADD JOB"; id: string } & JobInput)
      | { type: "REMOVE JOB"; id: string }
      | { type: "STOP" }
      | { type: "KILL" }
      | ErrorActorEvent,
  },
  actors: { agent: agentMachine, job: jobMachine },
  actions: {
    "add agent": enqueueActions(({ event, enqueue }) => {
      if (event.type === "ADD") enqueue.spawnChild("agent", { id: event.id, input: { work: event.work } });
    }),
    "remove agent": enqueueActions(({ event, enqueue }) => {
      if (event.type !== "REMOVE") return;
      enqueue.sendTo(event.id, { type: "KILL" });
      enqueue.stopChild(event.id);
    }),
    "add job": enqueueActions(({ event, enqueue }) => {
      if (event.type !== "ADD JOB") return;
      const { id, work, ending } = event;
      enqueue.spawnChild("job", { id, input: { work, ending } });
    }),
    "remove job": enqueueActions(({ event, enqueue }) => {
      if (event.type === "REMOVE JOB") enqueue.stopChild(event.id);
    }),
    "tell all": enqueueActions(({ event, self, enqueue }) => {
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
        "ADD JOB": { actions: "add job" },
        "REMOVE JOB": { actions: "remove job" },
        // Jobs do not know what STOP is: they outlive it.
        STOP: { actions: "tell all" },
        KILL: { target: "closed", actions: "tell all" },
        // Without a transition for it, an agent or job that broke would break its session and with it all the others.
        "xstate.error.actor.*": {},
      },
    },
    closed: { type: "final" },
  },
});

export type SessionRef = ActorRefFrom<typeof sessionMachine>;
