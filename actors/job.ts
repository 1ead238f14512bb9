/**
 * A background job: running → exited | killed | lost. It outlives turns, agents and the server; an actor is made anew for each at a
 * server's start, and goes at once to the state that the disk tells of.
 */
import { type ActorRefFrom, assign, fromPromise, type SnapshotFrom, setup } from "xstate";

/** How it ended: by itself, by a signal, or nobody knows. */
export interface JobEnding {
  how: "exited" | "killed" | "lost";
  /** The exit status, or the signal's name. */
  detail?: string;
}

/** What the machine needs of a job; whoever provides the actors looks into it. */
export interface JobWork {
  /** Ends a supervisor that does not notice that its program is gone. Never throws. */
  giveUp(): void;
  /** Told once, when it has ended; also of what has ended long ago. Never throws. */
  hasEnded(ending: JobEnding): void;
}

export interface JobInput {
  work: JobWork;
  /** Absent while it runs. */
  ending?: JobEnding;
}

/** A signal that somebody wants to send is no event: nothing here depends on it. */
export type JobEvent = { type: "KILL" };

type WorkInput = { work: JobWork };

/** Milliseconds for the supervisor to notice that all else of the job is gone. */
const noticingLimit = 3000;

const ended = (how: JobEnding["how"]) => ({ type: "ended as" as const, params: how });

export const jobMachine = setup({
  types: { context: {} as JobInput, input: {} as JobInput, events: {} as JobEvent },
  actors: {
    /** Resolves when the job has ended. */
    watchEnd: fromPromise<JobEnding, WorkInput>(() => Promise.reject(new Error("watchEnd is not provided"))),
    /** Ends all processes of the job; resolves with whether all are gone. */
    endTree: fromPromise<boolean, WorkInput>(() => Promise.reject(new Error("endTree is not provided"))),
  },
  actions: {
    "give up supervisor": ({ context }) => context.work.giveUp(),
    "keep ending": assign((_, ending: JobEnding) => ({ ending })),
    "tell ending": ({ context }) => context.work.hasEnded(context.ending!),
  },
  guards: {
    "ended as": ({ context }, how: JobEnding["how"]) => context.ending?.how === how,
    "all are gone": (_, gone: boolean) => gone,
  },
  delays: { "noticing limit": noticingLimit },
}).createMachine({
  id: "job",
  context: ({ input }) => input,
  initial: "weighing",
  states: {
    weighing: {
      always: [
        { guard: ended("exited"), target: "exited" },
        { guard: ended("killed"), target: "killed" },
        { guard: ended("lost"), target: "lost" },
        { target: "running" },
      ],
    },
    running: {
      invoke: {
        src: "watchEnd",
        input: ({ context }) => ({ work: context.work }),
        onDone: {
          target: "weighing",
          actions: { type: "keep ending", params: ({ event }) => event.output },
        },
        onError: { target: "lost", actions: { type: "keep ending", params: { how: "lost" } } },
      },
      initial: "free",
      states: {
        free: { on: { KILL: "ending" } },
        ending: {
          invoke: {
            src: "endTree",
            input: ({ context }) => ({ work: context.work }),
            onDone: [
              {
                guard: { type: "all are gone", params: ({ event }) => event.output },
                target: "noticing",
              },
              { target: "free" },
            ],
            onError: "free",
          },
        },
        noticing: {
          after: { "noticing limit": { actions: "give up supervisor" } },
        },
      },
    },
    exited: { type: "final", entry: "tell ending" },
    killed: { type: "final", entry: "tell ending" },
    lost: { type: "final", entry: "tell ending" },
  },
});

export type JobRef = ActorRefFrom<typeof jobMachine>;
export type JobSnapshot = SnapshotFrom<typeof jobMachine>;

/** The content of `state`: `running`, `exited: 0`, `killed: SIGTERM`, `lost`. */
export function jobLine({ context }: JobSnapshot): string {
  const { how, detail } = context.ending ?? { how: "running", detail: undefined };
  return detail === undefined ? how : `${how}: ${detail}`;
}
