/** Walks every path that the agent's statechart allows, each step on a live actor whose world is a puppet. */
import { describe, expect, test } from "bun:test";
import { getShortestPaths } from "@xstate/graph";
import { createActor, type EventFromLogic, fromCallback, fromPromise, SimulatedClock } from "xstate";
import { type AgentWork, agentMachine, RetryLater } from "../../actors/agent.ts";
import { CodedFault } from "../../src/fault.ts";

const outcome = { ok: true, how: "done" as const, text: "" };
const oneCall = { calls: [{ id: "a", name: "shell", concurrency: "write" as const, work: null }] };

/** Every event of the machine, the ones that XState makes for its actors and delays included. */
const events = [
  { type: "WAKE" },
  { type: "RESUME" },
  { type: "STOP" },
  { type: "KILL" },
  { type: "xstate.done.actor.0.agent.opening" },
  { type: "xstate.error.actor.0.agent.opening", error: new Error("disk full") },
  { type: "HANDS.LOST", host: "h" },
  { type: "HANDS.BACK" },
  { type: "HANDS.READY" },
  { type: "HANDS.FAILED", error: new CodedFault("denied", "ssh.auth", "no key fits") },
  { type: "xstate.done.actor.0.agent.thinking", output: { calls: [] } },
  { type: "xstate.done.actor.0.agent.thinking", output: oneCall },
  { type: "xstate.error.actor.0.agent.thinking", error: new RetryLater(1000, "429") },
  { type: "xstate.error.actor.0.agent.thinking", error: new Error("402") },
  { type: "xstate.after.retry.agent.limitretry" },
  { type: "CALL.APPROVING", id: "a" },
  { type: "CALL.RUNNING", id: "a" },
  { type: "CALL.CUTOFF", id: "a", host: "h" },
  { type: "CALL.BROKE", id: "a", reason: "no key fits" },
  { type: "CALL.SETTLED", id: "a", outcome },
  { type: "xstate.after.stopping limit.agent.stopping" },
  { type: "xstate.done.actor.0.agent.closing" },
  { type: "xstate.error.actor.0.agent.closing", error: new Error("disk full") },
] as unknown as EventFromLogic<typeof agentMachine>[];

/** A world in which nothing happens unless a test says so. */
class Puppet {
  readonly clock = new SimulatedClock();
  #pending: { resolve(value: unknown): void; reject(error: unknown): void } | undefined;
  /** Speaks for the one tool call, whose actor does nothing by itself. */
  #call: ((event: { type: string }) => void) | undefined;
  /** Speaks for the hands. */
  #hands: ((event: { type: string }) => void) | undefined;

  readonly actor = createActor(
    agentMachine.provide({
      actors: {
        openTurn: this.#puppetPromise() as never,
        reachHands: fromCallback(({ sendBack }) => {
          this.#hands = sendBack;
        }) as never,
        askModel: this.#puppetPromise() as never,
        closeTurn: this.#puppetPromise() as never,
        toolcall: fromCallback(({ sendBack }) => {
          this.#call = sendBack;
        }) as never,
      },
    }),
    { input: { work }, clock: this.clock },
  ).start();

  #puppetPromise() {
    return fromPromise(() => new Promise((resolve, reject) => (this.#pending = { resolve, reject })));
  }

  /** Makes happen in the world what the machine will be told as `event`. */
  async enact(event: { type: string; output?: unknown; error?: unknown }): Promise<void> {
    if (event.type.startsWith("xstate.done.actor")) this.#pending!.resolve(event.output);
    else if (event.type.startsWith("xstate.error.actor")) this.#pending!.reject(event.error);
    else if (event.type.startsWith("xstate.after.retry")) this.clock.increment(1000);
    else if (event.type.startsWith("xstate.after.stopping")) this.clock.increment(2000);
    else if (event.type.startsWith("HANDS.")) this.#hands!(event);
    else if (event.type.startsWith("CALL.")) this.#call!(event);
    else this.actor.send(event as never);
    await Bun.sleep(0);
  }
}

/** Whether the tools are on another host. */
let elsewhere = false;

const work: AgentWork = {
  promptWaits: () => true,
  anythingWaits: () => true,
  elsewhere: () => elsewhere,
  settled: () => {},
  verdict: () => ({ next: "ask" }),
};

type Context = { calls: { status: string }[]; host?: string; end: { halts?: boolean } };

const pathsFor = (remote: boolean) => {
  elsewhere = remote;
  return getShortestPaths(agentMachine, {
    input: { work },
    events,
    serializeState: (snapshot) => {
      const { calls, host, end } = (snapshot as { context: Context }).context;
      return JSON.stringify([snapshot.value, calls.map((call) => call.status), host, end.halts]);
    },
  }).map((path) => ({ ...path, remote }));
};
const paths = [...pathsFor(false), ...pathsFor(true)];

describe("every path through the agent's statechart", () => {
  const states = new Set(paths.map((path) => JSON.stringify(path.state.value)));

  test("the paths reach every state in which something can be waited for", () => {
    const all = Object.keys(agentMachine.config.states!).filter((state) => state !== "weighing");
    expect([...states].map((state) => JSON.parse(state)).sort()).toEqual(all.sort());
  });

  for (const path of paths) {
    const told = path.steps.map((step) => step.event.type as string).filter((type) => type !== "xstate.init");
    test(`${path.remote ? "elsewhere: " : ""}${told.join(" → ") || "at the start"} ⇒ ${JSON.stringify(path.state.value)}`, async () => {
      elsewhere = path.remote;
      const world = new Puppet();
      for (const { event } of path.steps)
        if ((event.type as string) !== "xstate.init") await world.enact(event);
      const snapshot = world.actor.getSnapshot();
      expect(snapshot.value).toEqual(path.state.value as never);
      if (snapshot.value !== "dead") {
        world.actor.send({ type: "KILL" });
        expect(world.actor.getSnapshot().status).toBe("done");
      }
    });
  }
});
