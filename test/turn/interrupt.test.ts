/** Stop, kill, rename and removal, at every stage of a turn. */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../../src/backends/backend.ts";
import type { Agent } from "../../src/session/agent.ts";
import {
  answers,
  blocks,
  breaking,
  call,
  chat,
  finish,
  hanging,
  idle,
  type Model,
  say,
  sequence,
  until,
  World,
} from "./world.ts";

let world: World;
afterEach(() => world.remove());

/** A tool that leaves its pid, prints, and stays. */
const hang = `echo $$ >> "$OLLIE_CWD/pids"; echo begun; sleep 60`;
const stages: Record<string, { model(): Model; reached(agent: Agent): boolean; slowRetry?: boolean }> = {
  "before the first token": { model: () => hanging([]), reached: () => world.requests.length > 0 },
  "while text streams": {
    model: () => hanging([say("part of an ans")]),
    reached: (a) => chat(a).includes("part"),
  },
  "while a tool runs": {
    model: () => answers([say("calling"), call("1", "hang"), call("2", "hang"), finish]),
    reached: (a) => chat(a).includes("begun"),
  },
  "while it waits to ask again": {
    model: () => breaking([say("half")]),
    slowRetry: true,
    reached: (a) => a.state.startsWith("limitretry"),
  },
  "while its prompt is brought to disk": { model: () => answers(), reached: () => true },
};

async function reach(stage: string): Promise<Agent> {
  const { model, reached, slowRetry } = stages[stage]!;
  world = await World.open(model());
  world.slowRetry = slowRetry ?? false;
  world.tool("hang", hang);
  const agent = await world.agent({ name: "s" });
  await agent.submit("go");
  await until(agent, () => reached(agent));
  return agent;
}

const history = async (agent: Agent): Promise<Message[]> =>
  (await agent.context())
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** What every provider insists on. */
function expectValid(messages: Message[]): void {
  const owed: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") expect(owed.shift()).toBe(message.id);
    else expect(owed).toEqual([]);
    if (message.role === "assistant") owed.push(...message.calls.map(({ id }) => id));
  }
  expect(owed).toEqual([]);
}

function expectWhole(agent: Agent): void {
  let open = false;
  for (const line of chat(agent)
    .split("\n")
    .filter((line) => line.startsWith("[[["))) {
    expect(open).toBe(line === "[[[end]]]");
    open = !open;
  }
  expect(open).toBe(false);
}

/** None of the processes that the tool left its pid of lives. */
async function expectNoProcess(): Promise<void> {
  const file = join(world.cwd, "pids");
  const pids = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  while (pids.some((pid) => existsSync(`/proc/${pid}`))) await Bun.sleep(5);
}

describe.each(Object.keys(stages))("%s", (stage) => {
  test("a stop ends the turn, once, and the next one works", async () => {
    const agent = await reach(stage);
    agent.stop();
    agent.stop();
    await idle(agent);
    await expectNoProcess();
    agent.stop();
    expectWhole(agent);
    expectValid(await history(agent));
    expect(agent.store.state.running).toBeUndefined();
    world.model = answers([say("and on"), finish]);
    await agent.submit("more");
    await idle(agent);
    expect(await agent.reply()).toBe("and on");
    expectValid(world.requests.at(-1)!.messages);
    expect(blocks(agent).match(/Stopped by the user/g)?.length ?? 0).toBeLessThan(2);
  }, 20_000);

  test("the removal of the agent ends what runs, and the name is free again", async () => {
    const agent = await reach(stage);
    const { session } = agent;
    await agent.ctl("kill");
    await expectNoProcess();
    expect(session.agents()).toEqual([]);
    expect(existsSync(agent.store.folder)).toBe(false);
    world.model = answers([say("fresh"), finish]);
    const next = await session.createAgent(new Map([["name", "default"]]));
    await next.submit("hello");
    await idle(next);
    expect(await next.reply()).toBe("fresh");
    expect(chat(next)).not.toContain("go\n");
  }, 20_000);

  test("the removal of the session ends what runs, and the name is free again", async () => {
    const agent = await reach(stage);
    await agent.session.ctl("kill");
    await expectNoProcess();
    await Bun.sleep(50);
    expect(world.runtime.sessions()).toEqual([]);
    expect(existsSync(join(world.folder, "state", "sessions", "s"))).toBe(false);
    world.model = answers([say("fresh"), finish]);
    const next = await world.agent({ name: "s" });
    await next.submit("hello");
    await idle(next);
    expect(await next.reply()).toBe("fresh");
  }, 20_000);

  test("new names of agent and session change nothing for the turn", async () => {
    const agent = await reach(stage);
    await agent.session.rename("t");
    await agent.rename("b");
    agent.stop();
    await idle(agent);
    world.model = answers([say("and on"), finish]);
    await agent.submit("more");
    await idle(agent);
    expect(await agent.reply()).toBe("and on");
    expectWhole(agent);
    expectValid(await history(agent));
    expect(existsSync(join(world.folder, "state", "sessions", "s"))).toBe(false);
    const before = chat(agent);
    await world.stop();
    expect((await world.start()).filter((sentence) => sentence.includes("could not"))).toEqual([]);
    const again = world.runtime.session("t")!.agent("b")!;
    expect(chat(again)).toBe(before);
  }, 20_000);

  test("the end of the server interrupts the turn, and a new server goes on with what waits", async () => {
    const agent = await reach(stage);
    await agent.submit("second");
    await world.stop();
    await expectNoProcess();
    world.model = answers([say("gone on"), finish]);
    await world.start();
    const again = world.runtime.session("s")!.agents()[0]!;
    await idle(again);
    expect(await again.reply()).toBe("gone on");
    expectWhole(again);
    expect(chat(again).match(/^second$/gm)).toHaveLength(1);
    expectValid(await history(again));
  }, 20_000);
});

test("a stop between a call's end and the next request is not lost", async () => {
  world = await World.open();
  world.tool("quick", "true");
  const agent = await world.agent();
  let before = "";
  agent.watch(() => {
    if (before.startsWith("calling") && agent.state === "thinking") agent.stop();
    before = agent.state;
  });
  for (let i = 0; i < 5; i++) {
    world.model = sequence(answers([call(`c${i}`, "quick", { i }), finish]), hanging([say("still going")]));
    await agent.submit("go");
    await idle(agent);
    expectValid(await history(agent));
  }
  expect(blocks(agent).match(/Stopped by the user/g)).toHaveLength(5);
});

describe("a model that does not listen to a stop", () => {
  test("is left behind: the turn ends, and the next one works", async () => {
    world = await World.open(async function* () {
      yield say("begun");
      await new Promise(() => {});
    });
    const agent = await world.agent();
    await agent.submit("go");
    await until(agent, () => chat(agent).includes("begun"));
    agent.stop();
    await idle(agent);
    world.model = answers([say("and on"), finish]);
    await agent.submit("more");
    await idle(agent);
    expect(await agent.reply()).toBe("and on");
  });

  test("has nothing to say any more, also not in the next turn", async () => {
    const late = Promise.withResolvers<void>();
    world = await World.open(async function* () {
      yield say("begun");
      await late.promise;
      yield say("too late");
      yield call("1", "nosuch");
      yield finish;
    });
    const agent = await world.agent();
    await agent.submit("go");
    await until(agent, () => chat(agent).includes("begun"));
    agent.stop();
    await idle(agent);
    world.model = async function* () {
      yield say("in ");
      late.resolve();
      await Bun.sleep(5);
      yield say("time");
      yield finish;
    };
    await agent.submit("more");
    await idle(agent);
    expect(await agent.reply()).toBe("in time");
    expect(chat(agent)).not.toContain("too late");
    expect(await agent.context()).not.toContain("too late");
  });
});

test("a turn that was stopped while it opened does not lend its history to the next", async () => {
  world = await World.open(answers());
  const agent = await world.agent();
  const { store } = agent;
  const read = store.history.bind(store);
  let first: (() => void) | undefined;
  store.history = async () => {
    const messages = await read();
    if (!first) await new Promise<void>((resolve) => (first = resolve));
    return messages;
  };
  await agent.submit("one");
  await until(agent, () => first !== undefined);
  world.model = async function* () {
    first!();
    await Bun.sleep(5);
    yield call("1", "nosuch");
    yield finish;
  };
  await agent.submit("two");
  agent.stop();
  world.tool("nosuch", "true");
  await until(agent, () => world.requests.length >= 2);
  agent.stop();
  await idle(agent);
  expect(world.requests[1]!.messages.filter(({ role }) => role === "user").map(({ text }) => text)).toEqual([
    "one",
    "two",
  ]);
});

test("a call that stands in line for the session when its agent is removed leaves the line", async () => {
  world = await World.open();
  world.tool("hold", `while [ ! -e "$OLLIE_CWD/go" ]; do sleep 0.02; done`, { concurrency: "exclusive" });
  world.model = async function* (request) {
    if (request.messages.at(-1)!.role === "user") yield call(`c${Math.random()}`, "hold");
    yield finish;
  };
  const first = await world.agent();
  const { session } = first;
  const [second, third] = [await session.createAgent(new Map()), await session.createAgent(new Map())];
  await first.submit("go");
  await until(first, (state) => state === "calling: hold");
  for (const agent of [second, third]) {
    await agent.submit("go");
    await until(agent, (state) => state === "calling: hold");
  }
  await second.remove();
  await Bun.write(join(world.cwd, "go"), "");
  await idle(first);
  await idle(third);
  expect((await history(third)).find((message) => message.role === "tool")).toMatchObject({ ok: true });
});

describe("at the same time", () => {
  test("a rename and a removal of a session leave nothing behind", async () => {
    world = await World.open();
    for (const order of [0, 1]) {
      const session = (await world.agent({ name: "a" })).session;
      const jobs = [() => session.rename("b"), () => session.remove()];
      await Promise.allSettled((order === 0 ? jobs : jobs.reverse()).map((job) => job()));
      expect(world.runtime.sessions()).toEqual([]);
      for (const name of ["a", "b"]) await (await world.agent({ name })).session.remove();
    }
  });

  test("a new agent and the removal of its session leave nothing behind", async () => {
    world = await World.open();
    for (const order of [0, 1]) {
      const { session } = await world.agent({ name: "a" });
      const create = () => session.createAgent(new Map());
      const remove = () => session.remove();
      const jobs = order === 0 ? [create(), remove()] : [remove(), create()];
      const results = await Promise.allSettled(jobs);
      const created = results[order]!;
      if (created.status === "rejected") expect(String(created.reason)).toMatch(/removed/);
      expect(world.runtime.sessions()).toEqual([]);
    }
    await world.agent({ name: "a" });
  });

  test("a prompt and the removal of its agent end one way or the other", async () => {
    world = await World.open();
    const { session } = await world.agent({ name: "a" });
    for (let i = 0; i < 10; i++) {
      const agent = await session.createAgent(new Map());
      const [prompt] = await Promise.allSettled([agent.submit("hi"), agent.remove()]);
      if (prompt.status === "rejected") expect(String(prompt.reason)).toContain("has been removed");
    }
  });
});

test("the result of a call that ends with the server says so", async () => {
  await reach("while a tool runs");
  await world.stop();
  const again = await restarted();
  const results = (await history(again)).filter(({ role }) => role === "tool");
  expect(results.map((message) => "text" in message && message.text)).toEqual([
    expect.stringContaining("cancelled by the server's shutdown after"),
    expect.stringContaining("server"),
  ]);
  expect(chat(again)).not.toContain("by the user");
}, 20_000);

async function restarted(): Promise<Agent> {
  await world.start();
  return world.runtime.session("s")!.agents()[0]!;
}
