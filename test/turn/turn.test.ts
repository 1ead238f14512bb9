import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BackendError, type ModelEvent } from "../../src/backends/backend.ts";
import { Fault } from "../../src/fault.ts";
import {
  answers,
  blocks,
  breaking,
  broken,
  call,
  chat,
  finish,
  hanging,
  idle,
  type Model,
  say,
  sequence,
  think,
  until,
  World,
} from "./world.ts";

let world: World;
afterEach(() => world.remove());

async function open(model?: Model) {
  world = await World.open(model);
  return world.agent();
}

describe("a turn", () => {
  test("streams the answer into chat and leaves it in reply and the history", async () => {
    const agent = await open(answers([think("hm"), say("Hel"), say("lo."), finish]));
    await agent.submit("hi");
    expect(agent.state).toBe("thinking");
    await idle(agent);
    expect(blocks(agent)).toBe(
      "[[[user]]]\nhi\n[[[end]]]\n[[[reasoning]]]\nhm\n[[[end]]]\n[[[assistant]]]\nHello.\n[[[end]]]\n",
    );
    expect(await agent.reply()).toBe("Hello.");
    expect(
      (await agent.context())
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual([
      { role: "user", text: "hi" },
      { role: "assistant", text: "Hello.", reasoning: "hm", calls: [] },
    ]);
  });

  test("sets offset right behind the user block", async () => {
    const agent = await open(answers([say("one"), finish], [say("two"), finish]));
    for (const [prompt, answer] of [
      ["first", "one"],
      ["second", "two"],
    ] as const) {
      await agent.submit(prompt);
      await idle(agent);
      const rest = new TextDecoder().decode(agent.chat.read(agent.offset(), 1000));
      expect(rest.replace(/^\[\[\[.*\n/gm, "")).toBe(`${answer}\n`);
    }
  });

  test("runs calls and gives their results to the model in call order", async () => {
    const agent = await open(answers([call("1", "slow"), call("2", "fast"), finish], [say("done"), finish]));
    world.tool("slow", "sleep 0.2; echo slow result", { readOnly: true });
    world.tool("fast", "echo fast result", { readOnly: true });
    await agent.submit("go");
    await idle(agent);
    const results = world.requests[1]!.messages.filter((message) => message.role === "tool");
    expect(results.map(({ id, ok }) => [id, ok])).toEqual([
      ["1", true],
      ["2", true],
    ]);
    expect(results[0]!.text).toContain("slow result");
    expect(results[1]!.text).toContain("fast result");
    const order = [...blocks(agent).matchAll(/^\[\[\[(call|tool) name=(\w+)/gm)].map((match) =>
      match.slice(1),
    );
    expect(order).toEqual([
      ["call", "slow"],
      ["call", "fast"],
      ["tool", "slow"],
      ["tool", "fast"],
    ]);
  });

  test("says of every result that no sandbox was around it", async () => {
    const agent = await open(answers([call("1", "hello"), finish]));
    world.tool("hello", "echo hello");
    await agent.submit("go");
    await idle(agent);
    const result = world.requests[1]!.messages.at(-1)!;
    expect(result).toMatchObject({ role: "tool" });
    expect((result as { text: string }).text).toContain("unsandboxed");
    expect(chat(agent)).toContain("unsandboxed");
  });

  test("tells the model of a tool that does not exist, of bad arguments and of a failure, and goes on", async () => {
    const agent = await open(
      answers(
        [call("1", "nosuch"), call("2", "strict", { n: "many" }), call("3", "bad"), finish],
        [say("understood"), finish],
      ),
    );
    world.tool("strict", "true", {
      args: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    });
    world.tool("bad", "echo no >&2; exit 3");
    await agent.submit("go");
    await idle(agent);
    const results = world.requests[1]!.messages.filter((message) => message.role === "tool");
    expect(results.map(({ ok }) => ok)).toEqual([false, false, false]);
    expect(results[0]!.text).toContain("nosuch");
    expect(results[1]!.text).toMatch(/\bn\b/);
    expect(results[2]!.text).toMatch(/no[\s\S]*exit 3/);
    expect(await agent.reply()).toBe("understood");
  });

  test("makes a tool that was loaded during the turn callable in its next request", async () => {
    const agent = await open(answers([call("1", "wait"), finish], [say("ok"), finish]));
    world.tool("wait", "sleep 0.3");
    world.tool("later", "echo later", { tier: "cold" });
    await agent.submit("go");
    await until(agent, (state) => state === "calling: wait");
    await agent.changeTools(["later"]);
    await idle(agent);
    expect(world.requests.map((request) => request.tools.map((tool) => tool.name))).toEqual([
      ["wait"],
      ["later", "wait"],
    ]);
  });

  test("never runs a call of an answer that was cut off at the token limit", async () => {
    const agent = await open(
      answers([call("1", "touch"), { type: "finish", reason: "length" }], [say("smaller"), finish]),
    );
    world.tool("touch", `touch "$OLLIE_CWD/ran"`);
    await agent.submit("go");
    await idle(agent);
    expect(() => readFileSync(join(world.cwd, "ran"))).toThrow();
    expect(world.requests[1]!.messages.at(-1)).toMatchObject({ role: "tool", id: "1", ok: false });
    expect(await agent.reply()).toBe("smaller");
  });
});

test("a NUL in an answer does not get into the history, which providers would refuse", async () => {
  const agent = await open(answers([say("a\0b"), finish]));
  await agent.submit("go");
  await idle(agent);
  expect(await agent.reply()).toBe("a\uFFFDb");
  expect(await agent.context()).not.toContain("\\u0000");
});

describe("the queue", () => {
  test("keeps prompts that come during a turn and runs them in order", async () => {
    const agent = await open(hanging([say("busy")]));
    await agent.submit("one");
    await agent.submit("two");
    await agent.submit("three");
    expect(agent.queue().map((item) => item.text)).toEqual(["two", "three"]);
    world.model = answers();
    agent.stop();
    await idle(agent);
    expect([...chat(agent).matchAll(/^\[\[\[user.*\n(.*)/gm)].map((match) => match[1])).toEqual([
      "one",
      "two",
      "three",
    ]);
    expect(agent.queue()).toEqual([]);
  });

  test("waits without starting a turn until a prompt comes", async () => {
    const agent = await open();
    await agent.enqueue("first");
    expect(agent.state).toBe("idle");
    expect(agent.settled).toBe(true);
    await agent.submit("second");
    await idle(agent);
    expect(world.requests.map((request) => request.messages.at(-1))).toEqual([
      { role: "user", text: "first" },
      { role: "user", text: "second" },
    ]);
  });

  test("gives one back", async () => {
    const agent = await open();
    await agent.enqueue("a");
    await agent.enqueue("b");
    expect(await agent.dequeue(2)).toBe("b");
    expect(agent.queue().map((item) => item.text)).toEqual(["a"]);
    await expect(agent.dequeue(2)).rejects.toThrow("no entry 2");
  });

  test("lets an inject into the running turn with the next results", async () => {
    const agent = await open(answers([call("1", "wait"), finish], [say("seen"), finish]));
    world.tool("wait", "sleep 0.2");
    await agent.submit("go");
    await until(agent, (state) => state === "calling: wait");
    await agent.ctl("inject look left");
    await idle(agent);
    expect(world.requests[1]!.messages.at(-1)).toEqual({ role: "user", text: "look left" });
    expect(world.requests).toHaveLength(2);
    expect(agent.queue()).toEqual([]);
  });

  test("makes an inject the next prompt when no results follow", async () => {
    const agent = await open(hanging([say("thinking")]));
    await agent.submit("go");
    await agent.ctl("inject and then?");
    world.model = answers();
    agent.stop();
    await idle(agent);
    expect(world.requests.at(-1)!.messages.at(-1)).toEqual({ role: "user", text: "and then?" });
  });
});

describe("stop", () => {
  test("keeps the text that came, and the history stays valid", async () => {
    const agent = await open(hanging([say("Half an ans")]));
    await agent.submit("go");
    await until(agent, () => chat(agent).includes("Half an ans"));
    agent.stop();
    await idle(agent);
    expect(blocks(agent)).toContain(
      "[[[assistant]]]\nHalf an ans\n[[[end]]]\n[[[info]]]\nStopped by the user.",
    );
    world.model = answers();
    await agent.submit("more");
    await idle(agent);
    const roles = world.requests.at(-1)!.messages.map((message) => message.role);
    expect(roles).toEqual(["user", "assistant", "user"]);
  });

  test("ends a running tool, keeps what it printed and answers every call", async () => {
    const agent = await open(answers([call("1", "hang"), call("2", "never"), finish]));
    world.tool("hang", "echo begun; trap '' TERM; sleep 60");
    world.tool("never", "echo never");
    await agent.submit("go");
    await until(agent, (state) => state === "calling: hang");
    await until(agent, () => chat(agent).includes("begun"));
    agent.stop();
    await idle(agent);
    await agent.submit("more");
    await idle(agent);
    const results = world.requests.at(-1)!.messages.filter((message) => message.role === "tool");
    expect(results.map(({ id, ok }) => [id, ok])).toEqual([
      ["1", false],
      ["2", false],
    ]);
    expect(results[0]!.text).toContain("begun");
  }, 20_000);
});

describe("a request that fails", () => {
  test("is sent again before the first token, told in chat", async () => {
    const agent = await open(answers(broken("429"), broken("503"), [say("at last"), finish]));
    await agent.submit("go");
    await idle(agent);
    expect(await agent.reply()).toBe("at last");
    expect(chat(agent).match(/^\[\[\[retry/gm)).toHaveLength(2);
  });

  test("ends the turn with the provider's words after three more tries", async () => {
    const agent = await open(
      answers(broken(), broken(), broken(), broken("still overloaded"), [say("no"), finish]),
    );
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toHaveLength(4);
    expect(blocks(agent)).toContain("[[[error]]]\nstill overloaded");
  });

  test("is not repeated when the provider means it", async () => {
    const refusal = new BackendError(new Fault("denied", "402: no credits left"), {
      retryable: false,
      status: 402,
    });
    const agent = await open(answers(refusal));
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toHaveLength(1);
    expect(blocks(agent)).toContain("[[[error]]]\n402: no credits left");
  });

  test("after the first token does not repeat text that was shown", async () => {
    const agent = await open(
      sequence(
        breaking([say("Hello wor")]),
        answers([say("Hello "), say("world, all"), say(" of it."), finish]),
      ),
    );
    await agent.submit("go");
    await idle(agent);
    const shown = chat(agent)
      .replace(/\[\[\[retry.*\n.*\n\[\[\[end\]\]\]\n/, "")
      .replace(/^\[\[\[.*\n/gm, "")
      .replace(/\n/g, "");
    expect(shown).toBe("goHello world, all of it.");
    expect(await agent.reply()).toBe("Hello world, all of it.");
  });

  test("after the first token shows an answer that differs whole", async () => {
    const agent = await open(
      sequence(breaking([say("Hello")]), answers([say("Good "), say("morning."), finish])),
    );
    await agent.submit("go");
    await idle(agent);
    expect(blocks(agent)).toContain("[[[assistant]]]\nGood morning.\n");
  });

  test("for good keeps the partial answer", async () => {
    const agent = await open(breaking([say("Part")]));
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toHaveLength(4);
    expect(chat(agent).match(/Part/g)).toHaveLength(1);
    expect(await agent.context()).toContain("Part");
  });

  test("with a stream without an end signal never runs its calls", async () => {
    const agent = await open(answers([call("1", "touch")], [say("second try"), finish]));
    world.tool("touch", `touch "$OLLIE_CWD/ran"`);
    await agent.submit("go");
    await idle(agent);
    expect(() => readFileSync(join(world.cwd, "ran"))).toThrow();
    expect(await agent.reply()).toBe("second try");
  });
});

describe("a model in circles", () => {
  const forever = (name: string, args: () => unknown): Model => {
    let n = 0;
    return async function* () {
      yield call(`c${n++}`, name, args());
      yield finish;
    };
  };

  test("is told after three equal calls and stopped after five", async () => {
    const agent = await open(forever("same", () => ({})));
    world.tool("same", "echo same");
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toHaveLength(5);
    expect(world.requests[3]!.messages.at(-1)).toMatchObject({ role: "user" });
    expect(blocks(agent)).toMatch(/\[\[\[error\]\]\]\nthe model made the same same call 5 times/);
  });

  test("is told after five rounds of failures and stopped after ten", async () => {
    let n = 0;
    const agent = await open(forever("bad", () => ({ n: n++ })));
    world.tool("bad", `echo "$OLLIE_ARG_N"; exit 1`);
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toHaveLength(10);
    expect(world.requests[5]!.messages.at(-1)).toMatchObject({ role: "user" });
    expect(blocks(agent)).toContain("every tool call of the last 10 rounds failed");
  });

  test("is left alone while results differ", async () => {
    let n = 0;
    const model = forever("count", () => ({}));
    const agent = await open((request, signal) =>
      n++ < 8 ? model(request, signal) : answers([say("done"), finish])(request, signal),
    );
    world.tool("count", `echo x >> "$OLLIE_CWD/n"; wc -l < "$OLLIE_CWD/n"`);
    await agent.submit("go");
    await idle(agent);
    expect(await agent.reply()).toBe("done");
  });

  test("gets one last request without tools at the step limit", async () => {
    let n = 0;
    const agent = await open(async function* (request) {
      if (request.tools.length === 0) yield say("out of steps");
      else yield call(`c${n++}`, "count", { n });
      yield finish;
    });
    world.tool("count", "echo fine");
    await agent.ctl("maxsteps 3");
    await agent.submit("go");
    await idle(agent);
    expect(world.requests.map((request) => request.tools.length)).toEqual([1, 1, 1, 0]);
    expect(await agent.reply()).toBe("out of steps");
  });
});

describe("a restart", () => {
  test("after a clean end keeps everything and runs what was submitted", async () => {
    const agent = await open(hanging([say("so far")]));
    await agent.submit("one");
    await until(agent, () => chat(agent).includes("so far"));
    await agent.submit("two");
    const before = chat(agent);
    await world.stop();
    world.model = answers([say("second"), finish]);
    await world.start();
    const again = world.runtime.session(agent.session.name)!.agents()[0]!;
    await idle(again);
    expect(chat(again)).toStartWith(before);
    expect(blocks(again)).toContain("Interrupted: the server was shut down.");
    expect(world.requests.at(-1)!.messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    expect(await again.reply()).toBe("second");
  });

  test("leaves in the queue what was only queued", async () => {
    const agent = await open();
    await agent.enqueue("later");
    await world.stop();
    await world.start();
    const again = world.runtime.session(agent.session.name)!.agents()[0]!;
    await Bun.sleep(20);
    expect(again.state).toBe("idle");
    expect(again.queue().map((item) => item.text)).toEqual(["later"]);
  });
});

test("what the model gets within a turn is what the journal gives back, message for message", async () => {
  const opaque = { backend: "fake", model: "fake-1", data: { signature: "s" } };
  const script: ModelEvent[][] = [
    [
      think("hm"),
      say("first"),
      call("1", "good"),
      call("2", "bad"),
      call("3", "nosuch"),
      { ...finish, opaque } as ModelEvent,
    ],
    [call("4", "good"), { type: "finish", reason: "length" }],
    [call("5", "same"), finish],
    [call("6", "same"), finish],
    [call("7", "same"), finish],
    [call("8", "wait"), finish],
    [say("to the"), say(" limit"), call("9", "good"), finish],
    [say("the end"), finish],
  ];
  let broke = false;
  const agent = await open(async function* (request) {
    const kept = (await agent.context())
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    expect(kept).toEqual(JSON.parse(JSON.stringify(request.messages)));
    if (script.length === 2 && !broke) {
      broke = true;
      yield say("to t");
      throw broken();
    }
    yield* script.shift() ?? [say("ok"), finish];
  });
  for (const [name, text] of Object.entries({
    good: "echo good",
    bad: "exit 1",
    same: "echo same",
    wait: "sleep 0.2",
  }))
    world.tool(name, text, { readOnly: true });
  await agent.ctl("maxsteps 7");
  await agent.submit("go");
  await until(agent, (state) => state === "calling: wait");
  await agent.ctl("inject look left");
  await idle(agent);
  expect(script).toEqual([]);
  expect(await agent.reply()).toBe("first\nto the limit\nthe end");
  await agent.submit("once more");
  await idle(agent);
  expect(world.requests).toHaveLength(10);
});

describe("the system prompt", () => {
  test("holds the project's files from the repository's root down, and stays the same between requests", async () => {
    const agent = await open(answers([call("1", "hello"), finish], [say("ok"), finish]));
    world.tool("hello", "echo hello");
    writeFileSync(join(world.cwd, "AGENTS.md"), "Use tabs.");
    await agent.submit("go");
    await idle(agent);
    expect(world.requests[0]!.system).toContain("You are a test.");
    expect(world.requests[0]!.system).toContain("Use tabs.");
    expect(world.requests[1]!.system).toBe(world.requests[0]!.system);
  });
});
