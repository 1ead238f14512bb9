/** What a turn stands on gives way while it runs: config, backend, tools, folders, and the machine itself. */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import type { Agent } from "../../src/session/agent.ts";
import { answers, blocks, call, chat, finish, hanging, idle, say, until, World } from "./world.ts";

let world: World;
afterEach(() => world.remove());

async function open(model = answers()): Promise<Agent> {
  world = await World.open(model);
  return world.agent();
}

/** The agent is as good as before. */
async function expectUsable(agent: Agent): Promise<void> {
  world.model = answers([say("as before"), finish]);
  await agent.submit("still there?");
  await idle(agent);
  expect(await agent.reply()).toBe("as before");
}

const noConfig = new Fault("missing", "no agent default: there are none");

describe("a config that disappears", () => {
  test("before the first request ends the turn with its name, and the agent can still be seen and mended", async () => {
    const agent = await open();
    world.config = noConfig;
    await agent.submit("go");
    await idle(agent);
    expect(blocks(agent)).toEndWith("[[[error]]]\nno agent default: there are none\n[[[end]]]\n");
    expect(agent.describe()).toMatchObject({ backend: "?", model: "?" });
    expect(() => agent.cfg()).toThrow("no agent default");
    world.config = {};
    await expectUsable(agent);
  });

  test("during a tool call ends the turn after the call, with its result", async () => {
    const agent = await open(answers([call("1", "vanish"), finish]));
    world.tool("vanish", `touch "$OLLIE_CWD/ran"; sleep 0.2; echo done`);
    await agent.submit("go");
    // By now it is known which sandbox the config wants.
    while (!existsSync(join(world.cwd, "ran"))) await Bun.sleep(5);
    world.config = noConfig;
    await idle(agent);
    expect(world.requests).toHaveLength(1);
    expect(await agent.context()).toContain(`"ok":true`);
    expect(blocks(agent)).toEndWith("[[[error]]]\nno agent default: there are none\n[[[end]]]\n");
    world.config = {};
    await expectUsable(agent);
  });

  test("during the answer keeps its text and runs none of its calls", async () => {
    const agent = await open(async function* () {
      yield say("Wait for it.");
      world.config = noConfig;
      yield call("1", "touch");
      yield finish;
    });
    world.tool("touch", `touch "$OLLIE_CWD/ran"`);
    await agent.submit("go");
    await idle(agent);
    expect(existsSync(join(world.cwd, "ran"))).toBe(false);
    expect(await agent.context()).toContain("Wait for it.");
    expect(await agent.context()).not.toContain('"calls":[{');
    world.config = {};
    await expectUsable(agent);
  });
});

test("a backend that disappears between two requests ends the turn with the words of the registry", async () => {
  const agent = await open(answers([call("1", "ok"), finish]));
  const { backend } = world;
  world.tool("ok", "sleep 0.2");
  await agent.submit("go");
  await until(agent, (state) => state === "calling: ok");
  world.backend = new Fault("missing", "the backend fake is gone");
  await idle(agent);
  expect(blocks(agent)).toEndWith("[[[error]]]\nthe backend fake is gone\n[[[end]]]\n");
  world.backend = backend;
  await expectUsable(agent);
});

test("a tool that disappears between offer and call is a failure that the model hears of", async () => {
  const agent = await open(async function* (request) {
    if (request.messages.at(-1)!.role === "tool") yield say("I see");
    else {
      rmSync(join(world.toolsFolder, "gone"));
      yield call("1", "gone");
    }
    yield finish;
  });
  world.tool("gone", "true");
  await agent.submit("go");
  await idle(agent);
  expect(world.requests[1]!.messages.at(-1)).toMatchObject({ role: "tool", ok: false });
  expect(await agent.reply()).toBe("I see");
});

test("a working folder that disappears is a failure that the model hears of", async () => {
  const agent = await open(answers([call("1", "ok"), finish], [say("I see"), finish]));
  world.tool("ok", "true");
  rmSync(world.cwd, { recursive: true });
  await agent.submit("go");
  await idle(agent);
  expect((world.requests[1]!.messages.at(-1) as { text: string }).text).toMatch(/working folder/);
  expect(await agent.reply()).toBe("I see");
});

describe("a call that the last, tool-less request makes all the same", () => {
  test("is not run", async () => {
    let n = 0;
    const agent = await open(async function* () {
      yield call(`c${n++}`, "count", { n });
      yield finish;
    });
    world.tool("count", `echo x >> "$OLLIE_CWD/count"`);
    await agent.ctl("maxsteps 1");
    await agent.submit("go");
    await idle(agent);
    expect(await Bun.file(join(world.cwd, "count")).text()).toBe("x\n");
    expect(blocks(agent)).toContain("the step limit (maxSteps=1) is reached");
  });
});

test("an answer with nothing in it is told", async () => {
  const agent = await open(answers([finish]));
  await agent.submit("go");
  await idle(agent);
  expect(blocks(agent)).toEndWith("[[[info]]]\nThe model answered nothing.\n[[[end]]]\n");
  await expectUsable(agent);
});

test("an output without a newline at its end keeps its own line in chat", async () => {
  const agent = await open(answers([call("1", "print"), finish]));
  world.tool("print", "printf abc");
  await agent.submit("go");
  await idle(agent);
  expect(blocks(agent)).toMatch(/\[\[\[tool name=print id=1\]\]\]\nabc\n\[.*unsandboxed\]\n\[\[\[end\]\]\]/);
});

describe("a long output", () => {
  const flood = `i=0; while [ $i -lt 3000 ]; do echo "$i: a line of a long output that is kept in a file"; i=$((i+1)); done`;

  test("that comes again and again is noticed, although its file has another name each time", async () => {
    let n = 0;
    const agent = await open(async function* () {
      yield call(`c${n++}`, "flood");
      yield finish;
    });
    world.tool("flood", flood);
    await agent.submit("go");
    await idle(agent);
    expect(blocks(agent)).toContain("the same flood call 5 times");
  });

  test("is kept apart from that of another agent's call which is called the same", async () => {
    const agent = await open(async function* (request) {
      const { text } = request.messages[0] as { text: string };
      if (request.messages.at(-1)!.role === "user") yield call("call_0", "flood", { who: text });
      else yield say("done");
      yield finish;
    });
    world.tool("flood", `${flood}; echo "$OLLIE_ARG_WHO was here"`);
    const agents = [agent, await agent.session.createAgent(new Map())];
    for (const [i, one] of agents.entries()) {
      await one.submit(`agent ${i}`);
      await idle(one);
    }
    for (const [i, one] of agents.entries()) {
      const file = /whole output is in (\S+)\]/.exec(await one.context())![1]!;
      expect(await Bun.file(file).text()).toEndWith(`agent ${i} was here\n`);
    }
  });

  test("of results that differ only by a number is no circle, whatever calls are called", async () => {
    let n = 0;
    const agent = await open(async function* () {
      if (n < 8) yield call(`${n}`, "count", {});
      else yield say("done");
      n++;
      yield finish;
    });
    world.tool("count", `echo x >> "$OLLIE_CWD/n"; echo "now $(($(wc -l < "$OLLIE_CWD/n") - 1))"`);
    await agent.submit("go");
    await idle(agent);
    expect(await agent.reply()).toBe("done");
  });

  for (const what of ["rename", "removal"])
    test(`of a call that outlives a ${what} of its session brings no folder back`, async () => {
      const agent = await open(answers([call("1", "late"), finish], [say("ok"), finish]));
      const { session } = agent;
      world.tool(
        "late",
        `trap '' TERM; echo begun; while [ ! -e "$OLLIE_CWD/go" ]; do sleep 0.02; done; ${flood}; ${flood}`,
      );
      await agent.submit("go");
      await until(agent, () => chat(agent).includes("begun"));
      if (what === "rename") await session.rename("other");
      else await session.remove();
      await Bun.write(join(world.cwd, "go"), "");
      if (what === "rename") await idle(agent);
      else await Bun.sleep(1500);
      expect(readdirSync(join(world.folder, "state", "sessions"))).toEqual(
        what === "rename" ? ["other"] : [],
      );
    }, 10_000);
});

describe("a disk that does not confirm what was written", () => {
  const failing = () => Promise.reject(new Fault("io", "journal.jsonl could not be brought to disk: EIO"));

  test("for a prompt refuses it, and it does not run later either", async () => {
    const agent = await open();
    const { store } = agent;
    const { sync } = store;
    store.sync = failing;
    for (const accept of [agent.submit, agent.enqueue, agent.inject])
      await expect(accept.call(agent, "refused")).rejects.toThrow("EIO");
    store.sync = sync;
    await expectUsable(agent);
    expect(chat(agent)).not.toContain("refused");
    expect(agent.queue()).toEqual([]);
  });

  test("at the begin of a turn ends it with the reason", async () => {
    const agent = await open();
    const { store } = agent;
    const { sync, beginTurn } = store;
    store.beginTurn = (turn, prompt) => {
      beginTurn.call(store, turn, prompt);
      // Only once: the end of the turn is confirmed.
      store.sync = () => {
        store.sync = sync;
        return failing();
      };
    };
    await agent.submit("go");
    await idle(agent);
    expect(world.requests).toEqual([]);
    expect(blocks(agent)).toEndWith("brought to disk: EIO\n[[[end]]]\n");
    store.beginTurn = beginTurn;
    await expectUsable(agent);
  });

  test("before a call keeps it from running", async () => {
    const agent = await open(answers([call("1", "touch"), finish], [say("I see"), finish]));
    world.tool("touch", `touch "$OLLIE_CWD/ran"`);
    const { store } = agent;
    const { append, sync } = store;
    store.append = (record) => {
      append.call(store, record);
      store.sync = record.t === "call" ? failing : sync;
    };
    await agent.submit("go");
    await idle(agent);
    expect(existsSync(join(world.cwd, "ran"))).toBe(false);
    expect((world.requests[1]!.messages.at(-1) as { text: string }).text).toContain(
      "could not be run: journal",
    );
    expect(await agent.reply()).toBe("I see");
  });

  test("at the end of a turn is told, and what waits is begun by the next prompt", async () => {
    const agent = await open(hanging([say("busy")]));
    const { store } = agent;
    const { sync } = store;
    await agent.submit("one");
    await agent.submit("two");
    await until(agent, () => chat(agent).includes("busy"));
    store.sync = failing;
    agent.stop();
    await idle(agent);
    store.sync = sync;
    expect(blocks(agent)).toEndWith("EIO; what waits stays in the queue\n[[[end]]]\n");
    expect(agent.queue().map(({ text }) => text)).toEqual(["two"]);
    world.model = answers([say("answer two"), finish], [say("answer three"), finish]);
    await agent.submit("three");
    await idle(agent);
    expect(blocks(agent)).toMatch(/two\n.*\n.*\nanswer two[\s\S]*three\n.*\n.*\nanswer three/);
  });
});

describe("a machine that breaks", () => {
  const mistake = () => {
    throw new Error("a mistake");
  };

  test("in a round of calls loses the turn and nothing else", async () => {
    const agent = await open(answers([call("1", "ok"), call("2", "hang"), finish]));
    world.tool("ok", `while [ ! -s "$OLLIE_CWD/pid" ]; do sleep 0.02; done`, { readOnly: true });
    world.tool("hang", `echo $$ > "$OLLIE_CWD/pid"; sleep 60`, { readOnly: true });
    const neighbour = await agent.session.createAgent(new Map());
    const settled = agent.turns.settled;
    agent.turns.settled = mistake;
    await agent.submit("go");
    await agent.submit("and then");
    await until(agent, () => chat(agent).includes("a mistake"));
    agent.turns.settled = settled;
    await idle(agent);
    expect(blocks(agent)).toMatch(
      /\[\[\[error\]\]\]\nollie made a mistake \(a mistake\); its log tells more\n/,
    );
    expect(agent.queue()).toEqual([]);
    const pid = await Bun.file(join(world.cwd, "pid")).text();
    while (existsSync(`/proc/${pid.trim()}`)) await Bun.sleep(5);
    await expectUsable(agent);
    await expectUsable(neighbour);
    expect(JSON.parse(agent.snapshot())).toMatchObject({ status: "active", value: "idle" });
  }, 10_000);

  test("while it is idle, again and again, still takes and keeps prompts", async () => {
    const agent = await open();
    const asked = agent.turns.anythingWaits;
    agent.turns.anythingWaits = mistake;
    for (const text of ["one", "two"]) await agent.submit(text);
    await Bun.sleep(20);
    agent.turns.anythingWaits = asked.bind(agent.turns);
    await agent.submit("three");
    await idle(agent);
    expect([...chat(agent).matchAll(/^\[\[\[user.*\n(.*)/gm)].map((match) => match[1])).toEqual([
      "one",
      "two",
      "three",
    ]);
  });

  test("at the end of a turn does not hold up what waits", async () => {
    const agent = await open(hanging([say("busy")]));
    await agent.submit("one");
    await agent.submit("two");
    const asked = agent.turns.anythingWaits;
    let times = 0;
    agent.turns.anythingWaits = () => (times++ === 0 ? mistake() : asked.call(agent.turns));
    world.model = answers([say("two's answer"), finish]);
    agent.stop();
    await until(agent, () => chat(agent).includes("two's answer"));
    await idle(agent);
  });
});
