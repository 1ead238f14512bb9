/**
 * The way to another host: idle → connecting → bootstrapping → attaching → ready, and back through reconnecting for as long as its session is
 * open. What only a person can mend leads to failed, from which RECONNECT goes on; CLOSE ends it from everywhere.
 *
 * `connect` makes the SSH connection, `bootstrap` has ollie-remote running at its other end, `attach` has tools and session there as this end
 * wants them, and `sync` brings the tools there again. Each can be left at any time.
 */
import { type ActorRefFrom, assign, fromPromise, type SnapshotFrom, setup } from "xstate";
import { CodedFault, type Fault, toFault } from "../src/fault.ts";

/** What the machine needs of a link; whoever provides the actors looks into it. */
export interface RemoteWork {
  /** As `remote=` has it. */
  readonly target: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** From 0 to 1. */
  random(): number;
  /** Told at each change: calls wait while it is away, and go on or fail with the fault. Never throws. */
  stands(how: "ready" | "away" | "failed" | "closed", fault?: Fault): void;
}

/** How far an upload is; see `src/remote/bootstrap/bootstrap.ts`. */
export interface RemoteProgress {
  doing: string;
  done?: number;
  total?: number;
  rate?: number;
  left?: number;
}

export interface RemoteInput {
  work: RemoteWork;
}

interface RemoteContext extends RemoteInput {
  progress?: RemoteProgress;
  /** Why it is not ready, or why the tools there are not those of here. */
  fault?: Fault;
  /** Tries since it was last ready for a while. */
  tries: number;
  /** Milliseconds until the next try, and when that is. */
  wait: number;
  next: number;
}

export type RemoteEvent =
  | { type: "CONNECT" }
  | { type: "LOST"; fault: Fault }
  /** At once, however long it would have waited. */
  | { type: "RECONNECT" }
  | { type: "SYNC" }
  | { type: "PROGRESS"; progress: RemoteProgress }
  | { type: "CLOSE" };

type WorkInput = { work: RemoteWork };

/** Milliseconds without a word of progress after which an attempt is given up. The actors have limits of their own, which are shorter. */
const silenceLimit = 120_000;
/** Milliseconds that it must have been ready for the next loss to be a new one. */
const steadyTime = 10_000;
/** Milliseconds from a loss to the tries after it. */
const waits = [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000];
/** Part of a wait by which it is made shorter or longer, so that many clients do not come at once. */
const jitter = 0.2;

const silent = new CodedFault("timeout", "ssh.timeout", "the host has not said a word for too long", {
  retry: true,
});

/**
 * Codes of faults that pass by themselves, beside those that say so. `session.superseded`: a command of the user's has the session for a while.
 */
const passing =
  /^(?:ssh\.(?:unreachable|timeout|refused|dropped)|boot\.(?:short|locked)|session\.superseded|proto\.(?!version).*)$/;

/** Whether another try makes sense without anybody having done something. */
export function passes(fault: Fault): boolean {
  if (fault instanceof CodedFault) return fault.more.retry === true || passing.test(fault.code);
  return fault.kind !== "denied" && fault.kind !== "invalid";
}

/** The inner state of one that is left when nothing has been heard for too long; to enter it anew is to wait anew. */
function untilSilent<Name extends string>(name: Name) {
  const silence = { target: "#remote.weighing", actions: { type: "keep fault", params: silent } } as const;
  const states = { [name]: { after: { "silence limit": silence } } };
  return { initial: name, states: states as Record<Name, { after: { "silence limit": typeof silence } }> };
}
const lost = { target: "weighing", actions: "keep loss" } as const;
const attempt = { entry: "forget progress", exit: "forget progress" } as const;

export const remoteMachine = setup({
  types: { context: {} as RemoteContext, input: {} as RemoteInput, events: {} as RemoteEvent },
  actors: {
    /** May wait for answers of people, for which nobody can set a limit. */
    connect: fromPromise<void, WorkInput>(() => Promise.reject(new Error("connect is not provided"))),
    bootstrap: fromPromise<void, WorkInput>(() => Promise.reject(new Error("bootstrap is not provided"))),
    attach: fromPromise<void, WorkInput>(() => Promise.reject(new Error("attach is not provided"))),
    sync: fromPromise<void, WorkInput>(() => Promise.reject(new Error("sync is not provided"))),
  },
  actions: {
    "keep fault": assign((_, fault: Fault) => ({ fault })),
    "keep loss": assign(({ event }) => (event.type === "LOST" ? { fault: event.fault } : {})),
    "forget fault": assign({ fault: undefined }),
    "keep progress": assign((_, progress: RemoteProgress) => ({ progress })),
    "forget progress": assign({ progress: undefined }),
    "begin anew": assign({ tries: 0 }),
    "plan next try": assign(({ context: { tries, work } }) => {
      const wait = waits[Math.min(tries, waits.length - 1)]! * (1 + jitter * (2 * work.random() - 1));
      return { wait, next: work.now() + wait, tries: tries + 1 };
    }),
    "tell: ready": ({ context }) => context.work.stands("ready"),
    "tell: away": ({ context }) => context.work.stands("away", context.fault),
    "tell: failed": ({ context }) => context.work.stands("failed", context.fault),
    "tell: closed": ({ context }) => context.work.stands("closed"),
  },
  guards: { passes: (_, fault: Fault) => passes(fault) },
  delays: {
    "silence limit": silenceLimit,
    "steady time": steadyTime,
    "next try": ({ context }) => context.wait,
  },
}).createMachine({
  id: "remote",
  context: ({ input }) => ({ ...input, tries: 0, wait: 0, next: 0 }),
  initial: "idle",
  on: { CLOSE: ".closed" },
  states: {
    idle: {
      on: { CONNECT: "connecting", RECONNECT: "connecting" },
    },
    connecting: {
      ...attempt,
      invoke: {
        src: "connect",
        input: ({ context }) => ({ work: context.work }),
        onDone: "bootstrapping",
        onError: {
          target: "weighing",
          actions: { type: "keep fault", params: ({ event }) => toFault(event.error) },
        },
      },
    },
    bootstrapping: {
      ...attempt,
      invoke: {
        src: "bootstrap",
        input: ({ context }) => ({ work: context.work }),
        onDone: "attaching",
        onError: {
          target: "weighing",
          actions: { type: "keep fault", params: ({ event }) => toFault(event.error) },
        },
      },
      ...untilSilent("booting"),
      on: {
        LOST: lost,
        // The limit begins anew.
        PROGRESS: {
          target: ".booting",
          actions: { type: "keep progress", params: ({ event }) => event.progress },
        },
      },
    },
    attaching: {
      ...attempt,
      invoke: {
        src: "attach",
        input: ({ context }) => ({ work: context.work }),
        onDone: { target: "ready", actions: "forget fault" },
        onError: {
          target: "weighing",
          actions: { type: "keep fault", params: ({ event }) => toFault(event.error) },
        },
      },
      ...untilSilent("entering"),
      on: {
        LOST: lost,
        // The limit begins anew.
        PROGRESS: {
          target: ".entering",
          actions: { type: "keep progress", params: ({ event }) => event.progress },
        },
      },
    },
    ready: {
      entry: "tell: ready",
      after: { "steady time": { actions: "begin anew" } },
      initial: "steady",
      states: {
        steady: { on: { SYNC: "syncing" } },
        syncing: {
          ...attempt,
          invoke: {
            src: "sync",
            input: ({ context }) => ({ work: context.work }),
            onDone: { target: "steady", actions: "forget fault" },
            onError: {
              target: "steady",
              actions: { type: "keep fault", params: ({ event }) => toFault(event.error) },
            },
          },
          ...untilSilent("bringing"),
          on: {
            SYNC: { target: "syncing", reenter: true },
            PROGRESS: {
              target: ".bringing",
              actions: { type: "keep progress", params: ({ event }) => event.progress },
            },
          },
        },
      },
      on: { LOST: lost, RECONNECT: { target: "reconnecting", actions: ["forget fault", "begin anew"] } },
    },
    weighing: {
      always: [
        { guard: { type: "passes", params: ({ context }) => context.fault! }, target: "reconnecting" },
        { target: "failed" },
      ],
    },
    reconnecting: {
      entry: ["plan next try", "tell: away"],
      after: { "next try": "connecting" },
      on: {
        CONNECT: "connecting",
        RECONNECT: "connecting",
      },
    },
    failed: {
      entry: "tell: failed",
      on: {
        CONNECT: { target: "connecting", actions: ["begin anew", "tell: away"] },
        RECONNECT: { target: "connecting", actions: ["begin anew", "tell: away"] },
      },
    },
    closed: { type: "final", entry: "tell: closed" },
  },
});

export type RemoteRef = ActorRefFrom<typeof remoteMachine>;
export type RemoteSnapshot = SnapshotFrom<typeof remoteMachine>;

/**
 * One line for people and programs: state, target, and what there is to say: `ready alice@h1`,
 * `bootstrapping alice@h1: uploading 12.3 of 51.3 MB, 4.1 MB/s, 9 s left`,
 * `reconnecting alice@h1: next try at 2026-01-02T03:04:05Z: nothing accepts connections at h1`.
 */
export function remoteLine(snapshot: RemoteSnapshot): string {
  const { context, value } = snapshot;
  const state = typeof value === "string" ? value : Object.keys(value)[0]!;
  const reason = context.fault?.message;
  const parts = [
    ...(context.progress ? [progressText(context.progress)] : []),
    ...(state === "reconnecting"
      ? [`next try at ${new Date(context.next).toISOString().replace(/\.\d+/, "")}`]
      : []),
    ...(reason && state !== "closed" ? [reason] : []),
  ];
  return `${state} ${context.work.target}${parts.map((part) => `: ${oneLine(part)}`).join("")}`;
}

function progressText({ doing, done, total, rate, left }: RemoteProgress): string {
  const parts = [
    ...(done !== undefined && total !== undefined ? [`${megabytes(done)} of ${megabytes(total)} MB`] : []),
    ...(rate !== undefined && rate > 0 ? [`${megabytes(rate)} MB/s`] : []),
    ...(left !== undefined && Number.isFinite(left) ? [`${Math.ceil(left)} s left`] : []),
  ];
  return parts.length > 0 ? `${doing} ${parts.join(", ")}` : doing;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, "; ");
}
