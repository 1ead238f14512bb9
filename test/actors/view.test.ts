import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createActor, createMachine } from "xstate";
import { type AgentWork, agentMachine, type TurnCall } from "../../actors/agent.ts";
import { jobMachine } from "../../actors/job.ts";
import { remoteMachine } from "../../actors/remote.ts";
import { sessionMachine } from "../../actors/session.ts";
import { toolcallMachine } from "../../actors/toolcall.ts";
import { machineJson, machineMermaid, snapshotJson, stateLine } from "../../actors/view.ts";

const work: AgentWork = {
  promptWaits: () => false,
  anythingWaits: () => false,
  elsewhere: () => false,
  settled: () => {},
  verdict: () => ({ next: "ask" }),
};

/** A snapshot of an agent in the middle of these calls: the one that runs first, the others behind it. */
function calling(...calls: [name: string, status: TurnCall["status"], host?: string][]) {
  const context = {
    work,
    attempt: 0,
    retryDelay: 0,
    end: { how: "done" as const, reason: "a secret reason" },
    calls: calls.map(([name, status, host], i) => ({
      host,
      id: `${i}`,
      name,
      status,
      concurrency: "read" as const,
      work: { args: "secret arguments" },
    })),
  };
  return agentMachine.resolveState({ value: "calling", context });
}

describe("the line of state", () => {
  test("names the calls that run, in call order, each once", () => {
    expect(stateLine(calling(["b", "running"], ["a", "running"], ["b", "running"], ["c", "waiting"]))).toBe(
      "calling: b, a",
    );
  });

  test("names those that stand in line where none runs", () => {
    expect(stateLine(calling(["a", "settled"], ["b", "queued"]))).toBe("calling: b");
  });

  test("names those that wait to be allowed before those that run", () => {
    expect(stateLine(calling(["a", "running"], ["b", "approving"], ["c", "approving"]))).toBe(
      "approving: b, c",
    );
  });

  test("names a host that is out of reach before calls that run, and after those that wait for a person", () => {
    expect(stateLine(calling(["a", "running"], ["b", "cutOff", "me@h1"]))).toBe("unreachable: me@h1");
    expect(stateLine(calling(["a", "approving"], ["b", "cutOff", "me@h1"]))).toBe("approving: a");
  });

  test("is one line of words, whatever a model calls a tool", () => {
    expect(stateLine(calling(["a b,\nc\u0007", "running"], ["x".repeat(1000), "running"]))).toBe(
      `calling: a_b_c_, ${"x".repeat(64)}`,
    );
  });
});

test("a snapshot holds states and names, no texts", () => {
  const view = snapshotJson(calling(["shell", "running"]));
  expect(JSON.parse(view)).toMatchObject({
    value: "calling",
    context: { calls: [{ id: "0", name: "shell", status: "running" }], end: "done" },
  });
  expect(view).not.toContain("secret");
});

describe("a machine as data", () => {
  test("can be made into a machine again", () => {
    const config = JSON.parse(machineJson(agentMachine));
    const again = createMachine(config);
    expect(Object.keys(again.states)).toEqual(Object.keys(agentMachine.states));
    expect(createActor(createMachine({ ...config, context: { calls: [] } })).getSnapshot().value).toBe(
      "idle",
    );
  });

  for (const machine of [agentMachine, toolcallMachine, sessionMachine])
    test(`draws ${machine.id} with every state and every arrow between states that exist`, () => {
      const lines = machineMermaid(machine).trim().split("\n");
      expect(lines[0]).toBe("stateDiagram-v2");
      const arrows = lines.flatMap((line) => /^ *(\S+) --> ([^\s:]+)(: .+)?$/.exec(line)?.slice(1, 3) ?? []);
      const states = new Set(Object.keys(machine.states));
      for (const { states: inner } of Object.values(machine.states))
        for (const name of Object.keys(inner)) states.add(name);
      for (const end of arrows) expect(["[*]", ...states]).toContain(end);
      for (const name of states) expect(arrows).toContain(name);
      const shown = lines.filter((line) => !/-->|^stateDiagram|^ *state \S+ \{$|^ *\}$/.test(line));
      expect(shown).toEqual([]);
    });

  test("keeps in a box only what is in it, and draws no arrow twice", () => {
    const drawing = machineMermaid(toolcallMachine);
    const box = /state executing \{\n([^}]*)\}/.exec(drawing)![1]!;
    expect(box.match(/[a-zA-Z]+(?= -->)|(?<=--> )[a-zA-Z]+/g)).toEqual([
      "running",
      "running",
      "cutOff",
      "running",
      "ending",
      "cutOff",
      "running",
    ]);
    expect(drawing).toContain("\n  ending --> cancelled: after stop limit\n");
    const arrows = drawing.split("\n").filter((line) => line.includes("-->"));
    expect(new Set(arrows).size).toBe(arrows.length);
  });

  test("is what the architecture's page shows", async () => {
    const page = await Bun.file(join(import.meta.dir, "../../doc/ARCHITECTURE.md")).text();
    const drawings = [...page.matchAll(/```mermaid\n([\s\S]*?)```/g)].map((match) => match[1]);
    const machines = [agentMachine, toolcallMachine, jobMachine, remoteMachine];
    const [agent, toolcall, job, remote] = machines.map(machineMermaid);
    // The page says in words that KILL and CLOSE lead from everywhere to the end.
    expect(drawings).toEqual([
      agent!.replace(/.*: KILL\n/g, ""),
      toolcall,
      job,
      remote!.replace(/.*: CLOSE\n/g, ""),
    ]);
  });
});
