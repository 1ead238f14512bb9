import { describe, expect, test } from "bun:test";
import { createActor, fromCallback, fromPromise, SimulatedClock } from "xstate";
import { type AgentEvent, type Answer, agentMachine, RetryLater, type Verdict } from "../../actors/agent.ts";
import { toolcallMachine } from "../../actors/toolcall.ts";
import { stateLine } from "../../actors/view.ts";
import { CodedFault } from "../../src/fault.ts";
import type { CallOutcome } from "../../src/tools/tool.ts";

type Script = (Answer | Error)[];
const nothing: Answer = { calls: [] };
const call = (id: string, name: string, concurrency: "read" | "write" = "write") => ({
  id,
  name,
  concurrency,
  work: id,
});

/** An agent whose model answers from a script and whose tools end when the test says so. */
function start(
  script: Script,
  options: {
    waiting?: number;
    verdict?: () => Verdict;
    asks?: (id: unknown) => boolean;
    elsewhere?: boolean;
  } = {},
) {
  let waiting = options.waiting ?? 1;
  const log: string[] = [];
  const ends = new Map<string, (outcome: CallOutcome) => void>();
  const lines: string[] = [];
  const clock = new SimulatedClock();
  const toolcall = toolcallMachine.provide({
    actors: {
      admit: fromPromise<boolean, { work: unknown }>(
        async ({ input }) => options.asks?.(input.work) === true,
      ),
      approve: fromPromise(() => new Promise(() => {})),
      execute: fromCallback(({ input, sendBack, receive }) => {
        const id = (input as unknown as { work: string }).work;
        ends.set(id, (outcome) => sendBack({ type: "EXECUTED", outcome }));
        receive(() => log.push(`stop ${id}`));
        return () => void ends.delete(id);
      }) as never,
    },
  });
  let hands: (event: AgentEvent) => void = () => {};
  const actor = createActor(
    agentMachine.provide({
      actors: {
        toolcall,
        openTurn: fromPromise(async () => {
          waiting--;
          log.push("open");
        }),
        reachHands: fromCallback(({ sendBack }) => {
          log.push("reach");
          hands = sendBack as typeof hands;
          return () => void log.push("reached");
        }) as never,
        askModel: fromPromise<Answer, { attempt: number }>(async ({ input }) => {
          log.push(`ask ${input.attempt}`);
          const next = script.shift();
          if (next === undefined) return new Promise(() => {});
          if (next instanceof Error) throw next;
          return next;
        }) as never,
        closeTurn: fromPromise<void, { end: { how: string; reason?: string } }>(async ({ input }) => {
          log.push(`close ${input.end.how}${input.end.reason ? `: ${input.end.reason}` : ""}`);
        }) as never,
      },
    }),
    {
      clock,
      input: {
        work: {
          promptWaits: () => waiting > 0,
          anythingWaits: () => waiting > 0,
          elsewhere: () => options.elsewhere === true,
          settled: (id, outcome) => void log.push(`settled ${id} ${outcome.how}`),
          verdict: options.verdict ?? (() => ({ next: "ask" })),
        },
      },
    },
  );
  actor.subscribe((snapshot) => {
    const line = stateLine(snapshot);
    if (line !== lines.at(-1)) lines.push(line);
  });
  actor.start();
  return {
    actor,
    log,
    lines,
    clock,
    hands: (event: AgentEvent) => hands(event),
    end: (id: string, how: CallOutcome["how"] = "done") =>
      ends.get(id)!({ ok: how === "done", how, text: "" }),
  };
}

const settle = () => Bun.sleep(1);

describe("an agent", () => {
  test("goes idle → thinking → idle for an answer without calls", async () => {
    const agent = start([nothing]);
    expect(agent.lines).toEqual(["idle"]);
    agent.actor.send({ type: "WAKE" });
    expect(agent.lines).toEqual(["idle", "thinking"]);
    await settle();
    expect(agent.lines).toEqual(["idle", "thinking", "idle"]);
    expect(agent.log).toEqual(["open", "ask 0", "close done"]);
  });

  test("stays idle when woken without anything to do", async () => {
    const agent = start([], { waiting: 0 });
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(agent.lines).toEqual(["idle"]);
  });

  test("begins the next waiting text without passing through idle", async () => {
    const agent = start([nothing, nothing], { waiting: 2 });
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(agent.lines).toEqual(["idle", "thinking", "idle"]);
    expect(agent.log.filter((entry) => entry === "open")).toHaveLength(2);
  });

  test("names running calls in call order, each once", async () => {
    const reads = [call("1", "grep", "read"), call("2", "glob", "read"), call("3", "grep", "read")];
    const agent = start([{ calls: reads }, nothing]);
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(stateLine(agent.actor.getSnapshot())).toBe("calling: grep, glob");
    for (const id of ["3", "1", "2"]) agent.end(id);
    await settle();
    expect(agent.log).toContain("settled 2 done");
    expect(agent.lines.at(-1)).toBe("idle");
  });

  test("runs writes one after another and asks again once all are settled", async () => {
    const agent = start([{ calls: [call("1", "edit"), call("2", "shell")] }, nothing]);
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(stateLine(agent.actor.getSnapshot())).toBe("calling: edit");
    agent.end("1", "failed");
    await settle();
    expect(stateLine(agent.actor.getSnapshot())).toBe("calling: shell");
    agent.end("2");
    await settle();
    expect(agent.log).toEqual(["open", "ask 0", "settled 1 failed", "settled 2 done", "ask 0", "close done"]);
  });

  test("waits for a rate limit in a state that says until when, and counts the tries", async () => {
    const agent = start([new RetryLater(5000, "429"), new RetryLater(9000, "429"), nothing]);
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(stateLine(agent.actor.getSnapshot())).toMatch(/^limitretry: \d{4}-.*Z$/);
    agent.clock.increment(4999);
    expect(agent.log).toEqual(["open", "ask 0"]);
    agent.clock.increment(1);
    await settle();
    agent.clock.increment(9000);
    await settle();
    expect(agent.log).toEqual(["open", "ask 0", "ask 1", "ask 2", "close done"]);
  });

  test("ends a turn whose request failed for good with the reason", async () => {
    const agent = start([new Error("402 no credits")]);
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(agent.log.at(-1)).toBe("close failed: 402 no credits");
    expect(agent.lines.at(-1)).toBe("idle");
  });

  test("ends a turn when the verdict on a round says so", async () => {
    const agent = start([{ calls: [call("1", "shell")] }], {
      verdict: () => ({ next: "end", how: "failed", reason: "in circles" }),
    });
    agent.actor.send({ type: "WAKE" });
    await settle();
    agent.end("1");
    await settle();
    expect(agent.log.at(-1)).toBe("close failed: in circles");
  });

  describe("stop", () => {
    test("ends a stream", async () => {
      const agent = start([]);
      agent.actor.send({ type: "WAKE" });
      await settle();
      agent.actor.send({ type: "STOP" });
      await settle();
      expect(agent.log).toEqual(["open", "ask 0", "close stopped"]);
      expect(agent.lines.at(-1)).toBe("idle");
    });

    test("ends a wait for a rate limit", async () => {
      const agent = start([new RetryLater(60_000, "429")]);
      agent.actor.send({ type: "WAKE" });
      await settle();
      agent.actor.send({ type: "STOP" });
      await settle();
      expect(agent.log.at(-1)).toBe("close stopped");
    });

    test("asks running calls to end, keeps their results, and never starts the waiting ones", async () => {
      const agent = start([{ calls: [call("1", "shell"), call("2", "shell")] }]);
      agent.actor.send({ type: "WAKE" });
      await settle();
      agent.actor.send({ type: "STOP" });
      await settle();
      expect(agent.log).toEqual(["open", "ask 0", "stop 1"]);
      agent.end("1", "cancelled");
      await settle();
      expect(agent.log).toEqual(["open", "ask 0", "stop 1", "settled 1 cancelled", "close stopped"]);
    });

    test("takes back at once what the user is asked, and says so of the call", async () => {
      const agent = start([{ calls: [call("1", "shell"), call("2", "shell")] }], {
        asks: (id) => id === "1",
      });
      agent.actor.send({ type: "WAKE" });
      await settle();
      expect(stateLine(agent.actor.getSnapshot())).toBe("approving: shell");
      agent.actor.send({ type: "STOP" });
      await settle();
      expect(agent.log).toEqual(["open", "ask 0", "settled 1 cancelled", "close stopped"]);
      expect(agent.lines.at(-1)).toBe("idle");
    });

    test("does not wait for ever for a call that will not end", async () => {
      const agent = start([{ calls: [call("1", "shell")] }]);
      agent.actor.send({ type: "WAKE" });
      await settle();
      agent.actor.send({ type: "STOP" });
      agent.clock.increment(2000);
      await settle();
      expect(agent.log).toContain("settled 1 cancelled");
      expect(agent.lines.at(-1)).toBe("idle");
    });

    test("does nothing to an idle agent", async () => {
      const agent = start([], { waiting: 0 });
      agent.actor.send({ type: "STOP" });
      expect(agent.lines).toEqual(["idle"]);
    });
  });

  test("resumes after a restart only what was submitted", async () => {
    const agent = start([nothing], { waiting: 1 });
    agent.actor.send({ type: "RESUME" });
    await settle();
    expect(agent.log).toEqual(["open", "ask 0", "close done"]);
  });
});

describe("an agent whose tools are on another host", () => {
  async function reaching() {
    const agent = start([{ calls: [] }], { elsewhere: true });
    agent.actor.send({ type: "WAKE" });
    await settle();
    return agent;
  }

  test("reaches it before the model is asked, and shows while that is not possible", async () => {
    const agent = await reaching();
    expect(agent.log).toEqual(["open", "reach"]);
    agent.hands({ type: "HANDS.LOST", host: "h1" });
    agent.hands({ type: "HANDS.BACK" });
    agent.hands({ type: "HANDS.READY" });
    await settle();
    expect(agent.lines).toEqual(["idle", "thinking", "unreachable: h1", "thinking", "idle"]);
    expect(agent.log).toEqual(["open", "reach", "reached", "ask 0", "close done"]);
  });

  test("is idle at once when it is stopped meanwhile", async () => {
    const agent = await reaching();
    agent.hands({ type: "HANDS.LOST", host: "h1" });
    agent.actor.send({ type: "STOP" });
    await settle();
    expect(agent.lines.at(-1)).toBe("idle");
    expect(agent.log.at(-1)).toBe("close stopped");
  });

  test("that cannot be used ends the turn, and what waits goes on waiting until somebody asks", async () => {
    const agent = start([], { elsewhere: true, waiting: 2 });
    agent.actor.send({ type: "WAKE" });
    await settle();
    agent.hands({ type: "HANDS.FAILED", error: new CodedFault("denied", "ssh.auth", "no key fits") });
    await settle();
    expect(agent.log).toEqual(["open", "reach", "reached", "close failed: no key fits"]);
    expect(agent.lines.at(-1)).toBe("idle");
    agent.actor.send({ type: "WAKE" });
    await settle();
    expect(agent.log.slice(-2)).toEqual(["open", "reach"]);
  });
});
