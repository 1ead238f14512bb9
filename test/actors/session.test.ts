import { describe, expect, test } from "bun:test";
import { createActor, fromPromise } from "xstate";
import { type AgentRef, type AgentWork, agentMachine } from "../../actors/agent.ts";
import { sessionMachine } from "../../actors/session.ts";

const work = (over: Partial<AgentWork> = {}): AgentWork => ({
  promptWaits: () => true,
  anythingWaits: () => true,
  elsewhere: () => false,
  settled: () => {},
  verdict: () => ({ next: "ask" }),
  ...over,
});
const never = fromPromise(() => new Promise(() => {})) as never;

function start() {
  const agent = agentMachine.provide({ actors: { openTurn: never, askModel: never, closeTurn: never } });
  const actor = createActor(sessionMachine.provide({ actors: { agent } })).start();
  const child = (id: string) => actor.getSnapshot().children[id] as AgentRef | undefined;
  const add = (id: string, over?: Partial<AgentWork>) => {
    actor.send({ type: "ADD", id, work: work(over) });
    return child(id)!;
  };
  return { actor, child, add };
}

describe("a session", () => {
  test("adds agents and removes them, whatever they do", () => {
    const { actor, child, add } = start();
    const [a, b] = [add("a"), add("b")];
    a.send({ type: "WAKE" });
    actor.send({ type: "REMOVE", id: "a" });
    expect(child("a")).toBeUndefined();
    expect(a.getSnapshot().status).not.toBe("active");
    expect(b.getSnapshot()).toMatchObject({ status: "active", value: "idle" });
  });

  test("passes a stop on to all its agents, and a kill ends them with it", () => {
    const { actor, add } = start();
    const agents = [add("a"), add("b")];
    for (const agent of agents) agent.send({ type: "WAKE" });
    actor.send({ type: "STOP" });
    expect(agents.map((agent) => agent.getSnapshot().value)).toEqual(["closing", "closing"]);
    actor.send({ type: "KILL" });
    expect(agents.map((agent) => agent.getSnapshot().value)).toEqual(["dead", "dead"]);
    expect(actor.getSnapshot().status).toBe("done");
  });

  test("outlives an agent that breaks, and takes another in its place", () => {
    const { actor, child, add } = start();
    const neighbour = add("b");
    const broken = add("a", {
      anythingWaits: () => {
        throw new Error("a mistake");
      },
    });
    const errors: unknown[] = [];
    broken.subscribe({ error: (error) => errors.push(error) });
    broken.send({ type: "WAKE" });
    expect(errors).toHaveLength(1);
    expect(actor.getSnapshot().status).toBe("active");
    expect(neighbour.getSnapshot().status).toBe("active");
    const next = add("a");
    expect(child("a")).toBe(next);
    next.send({ type: "WAKE" });
    expect(next.getSnapshot().value).toBe("opening");
  });
});
