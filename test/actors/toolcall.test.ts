/** Every path of a tool call, with a gate and a program that the test moves by hand. */
import { describe, expect, test } from "bun:test";
import { createActor, fromCallback, fromPromise, SimulatedClock, sendTo, setup } from "xstate";
import { type ToolcallEvent, toolcallMachine } from "../../actors/toolcall.ts";
import type { CallOutcome } from "../../src/tools/tool.ts";

type Told = { type: string; id: string; outcome?: CallOutcome };

function start(options: { mustBeAllowed?: boolean } = {}) {
  const clock = new SimulatedClock();
  const told: Told[] = [];
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const answer = Promise.withResolvers<CallOutcome | undefined>();
  let end: (outcome: CallOutcome) => void = () => {};
  let tell: (event: ToolcallEvent) => void = () => {};
  const toolcall = toolcallMachine.provide({
    actors: {
      admit: fromPromise(() => gate.promise.then(() => options.mustBeAllowed === true)),
      approve: fromPromise(({ signal }) => {
        log.push("asks");
        signal.addEventListener("abort", () => log.push("withdraws"));
        return answer.promise;
      }),
      execute: fromCallback(({ sendBack, receive }) => {
        log.push("executes");
        tell = sendBack as typeof tell;
        end = (outcome) => sendBack({ type: "EXECUTED", outcome });
        receive(({ type }) => log.push(type));
        return () => log.push("left");
      }) as never,
    },
  });
  const parent = setup({ actors: { toolcall } }).createMachine({
    invoke: { src: "toolcall", id: "call:1", input: { id: "1", name: "shell", work: null } },
    on: {
      STOP: { actions: sendTo("call:1", ({ event }) => event) },
      "CALL.*": { actions: ({ event }) => void told.push(event as Told) },
    },
  });
  const actor = createActor(parent, { clock }).start();
  return {
    clock,
    told,
    gate,
    log,
    answer,
    tell: (event: ToolcallEvent) => tell(event),
    stop: (why?: string) => actor.send({ type: "STOP", why } as never),
    end: (how: CallOutcome["how"]) => end({ ok: how === "done", how, text: how }),
    get state() {
      return actor.getSnapshot().children["call:1"]?.getSnapshot().value;
    },
  };
}

const settle = () => Bun.sleep(1);

async function executing() {
  const call = start();
  call.gate.resolve();
  await settle();
  return call;
}

describe("a tool call", () => {
  test("waits until it is let in, says that it runs, and ends once with its outcome", async () => {
    const call = start();
    await settle();
    expect([call.state, call.told]).toEqual(["queued", []]);
    call.gate.resolve();
    await settle();
    expect(call.state).toEqual({ executing: "running" });
    expect(call.told).toEqual([{ type: "CALL.RUNNING", id: "1" }]);
    call.end("done");
    call.end("failed");
    expect(call.told.slice(1)).toEqual([
      { type: "CALL.SETTLED", id: "1", outcome: { ok: true, how: "done", text: "done" } },
    ]);
  });

  for (const how of ["failed", "timedOut", "cancelled", "refused"] as const)
    test(`that ended as ${how} says so`, async () => {
      const call = await executing();
      call.end(how);
      expect(call.told[1]).toMatchObject({ outcome: { ok: false, how } });
    });

  test("that is stopped in line never runs", async () => {
    const call = start();
    call.stop();
    expect(call.told).toMatchObject([{ type: "CALL.SETTLED", outcome: { how: "cancelled" } }]);
    call.gate.resolve();
    await settle();
    expect(call.log).toEqual([]);
    expect(call.told).toHaveLength(1);
  });

  test("that stands in line when the turn fails is not said to be cancelled by the user", () => {
    const call = start();
    call.stop("the key of h1 has changed");
    const { text } = call.told[0]!.outcome!;
    expect(text).toContain("the key of h1 has changed");
    expect(text).not.toContain("by the user");
  });

  test("that cannot be let in has failed", async () => {
    const call = start();
    call.gate.reject(new Error("no"));
    await settle();
    expect(call.told).toMatchObject([{ type: "CALL.SETTLED", outcome: { ok: false, how: "failed" } }]);
  });

  test("that is stopped while it runs is given time to end, and keeps its outcome", async () => {
    const call = await executing();
    call.stop();
    call.stop();
    expect(call.log).toEqual(["executes", "STOP"]);
    call.clock.increment(500);
    call.end("cancelled");
    expect(call.told[1]).toMatchObject({ outcome: { how: "cancelled", text: "cancelled" } });
  });

  test("that does not end when it is stopped is given up", async () => {
    const call = await executing();
    call.stop();
    call.clock.increment(1000);
    expect(call.told[1]).toMatchObject({ outcome: { ok: false, how: "cancelled" } });
    expect(call.log).toEqual(["executes", "STOP", "left"]);
    call.end("done");
    expect(call.told).toHaveLength(2);
  });
});

describe("a tool call that somebody has to allow", () => {
  async function approving() {
    const call = start({ mustBeAllowed: true });
    call.gate.resolve();
    await settle();
    return call;
  }
  const denial: CallOutcome = { ok: false, how: "refused", text: "denied" };

  test("asks once it is let in, and runs when it is allowed", async () => {
    const call = await approving();
    expect(call.state).toBe("approving");
    expect(call.told).toEqual([{ type: "CALL.APPROVING", id: "1" }]);
    call.answer.resolve(undefined);
    await settle();
    expect(call.state).toEqual({ executing: "running" });
    expect(call.told[1]).toEqual({ type: "CALL.RUNNING", id: "1" });
    expect(call.log).toEqual(["asks", "executes"]);
  });

  test("never runs when it is denied, and ends with what it is denied with", async () => {
    const call = await approving();
    call.answer.resolve(denial);
    await settle();
    expect(call.told.slice(1)).toEqual([{ type: "CALL.SETTLED", id: "1", outcome: denial }]);
    expect(call.log).toEqual(["asks"]);
  });

  test("withdraws the question when it is stopped, at once, whatever is answered later", async () => {
    const call = await approving();
    call.stop();
    expect(call.log).toEqual(["asks", "withdraws"]);
    expect(call.told.slice(1)).toMatchObject([{ type: "CALL.SETTLED", outcome: { how: "cancelled" } }]);
    call.answer.resolve(undefined);
    await settle();
    expect(call.log).toEqual(["asks", "withdraws"]);
    expect(call.told).toHaveLength(2);
  });

  test("has failed where nobody could be asked", async () => {
    const call = await approving();
    call.answer.reject(new Error("no"));
    await settle();
    expect(call.told[1]).toMatchObject({ type: "CALL.SETTLED", outcome: { ok: false, how: "failed" } });
  });
});

describe("a tool call on another host", () => {
  const lost = { type: "LOST", host: "h1" } as const;

  test("says that it is cut off and that it runs again, and ends with its outcome", async () => {
    const call = await executing();
    call.tell(lost);
    expect(call.state).toEqual({ executing: "cutOff" });
    call.tell({ type: "BACK" });
    expect(call.state).toEqual({ executing: "running" });
    call.end("done");
    expect(call.told.map(({ type }) => type)).toEqual([
      "CALL.RUNNING",
      "CALL.CUTOFF",
      "CALL.RUNNING",
      "CALL.SETTLED",
    ]);
  });

  test("that is stopped while it is cut off is over at once, and whoever runs it is left", async () => {
    const call = await executing();
    call.tell(lost);
    call.stop();
    expect(call.told.at(-1)).toMatchObject({ type: "CALL.SETTLED", outcome: { how: "cancelled" } });
    expect(call.told.at(-1)!.outcome!.text).toContain("h1 was out of reach");
    expect(call.log).toEqual(["executes", "left"]);
  });

  test.each(["running", "cutOff"])("whose host is lost for good has no outcome (%s)", async (state) => {
    const call = await executing();
    if (state === "cutOff") call.tell(lost);
    call.tell({ type: "BROKE", reason: "no key fits" });
    expect(call.told.at(-1)).toEqual({ type: "CALL.BROKE", id: "1", reason: "no key fits" } as never);
    expect(call.told.some(({ type }) => type === "CALL.SETTLED")).toBe(false);
  });
});
