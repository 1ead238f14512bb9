/** Many agents, many calls, much output, fast models, several clients. */
import { afterEach, expect, test } from "bun:test";
import type { ModelEvent } from "../../src/backends/backend.ts";
import type { Agent } from "../../src/session/agent.ts";
import { answers, blocks, call, chat, finish, idle, type Model, say, until, World } from "./world.ts";

let world: World;
afterEach(() => world.remove());

/** One character an event, all of them there at once. */
const fast = (characters: number): Model =>
  async function* () {
    for (let i = 0; i < characters; i++) yield say(i % 80 === 79 ? "\n" : "x");
    yield finish;
  };

const content = (agent: Agent) => chat(agent).replace(/^\[\[\[.*\n/gm, "");

test("an answer of many one-character deltas arrives whole, and others get their turn meanwhile", async () => {
  world = await World.open();
  const [flooded, other] = [await world.agent(), await world.agent()];
  world.model = fast(100_000);
  await flooded.submit("go");
  await until(flooded, () => chat(flooded).length > 1000);
  world.model = answers([say("quick"), finish]);
  await other.submit("hi");
  await idle(other);
  expect(flooded.state).toBe("thinking");
  await idle(flooded);
  expect((await flooded.reply()).length).toBe(100_000);
  expect(content(flooded)).toBe(
    `go\n${await flooded.reply()}${(await flooded.reply()).endsWith("\n") ? "" : "\n"}`,
  );
}, 30_000);

test("a stop gets through to a model that never pauses", async () => {
  world = await World.open(async function* () {
    for (;;) yield say("x");
  });
  const agent = await world.agent();
  await agent.submit("go");
  await until(agent, () => chat(agent).includes("xxx"));
  agent.stop();
  await idle(agent);
  expect(blocks(agent)).toEndWith("Stopped by the user.\n[[[end]]]\n");
});

test("twenty read calls run side by side, and their results come back in order", async () => {
  const calls = Array.from({ length: 20 }, (_, i) => call(`c${i}`, "meet", { n: i }));
  world = await World.open(answers([...calls, finish], [say("done"), finish]));
  // Each waits for all others: one after another they would wait for ever.
  world.tool(
    "meet",
    `touch "$OLLIE_CWD/$OLLIE_ARG_N"; while [ "$(ls "$OLLIE_CWD" | wc -l)" -lt 20 ]; do sleep 0.02; done; echo "I am $OLLIE_ARG_N"`,
    { readOnly: true },
  );
  const agent = await world.agent();
  await agent.submit("go");
  await until(agent, (state) => state === "calling: meet");
  await idle(agent);
  const results = world.requests[1]!.messages.filter((message) => message.role === "tool");
  expect(results.map(({ id }) => id)).toEqual(calls.map((_, i) => `c${i}`));
  for (const [i, { text }] of results.entries()) expect(text).toMatch(new RegExp(`^I am ${i}\\n`));
  const shown = [...chat(agent).matchAll(/^I am (\d+)$/gm)].map((match) => Number(match[1]));
  expect(shown).toEqual(results.map((_, i) => i));
}, 30_000);

test("50 MB of tool output stall nobody, and little of them reaches chat, journal and model", async () => {
  world = await World.open(answers([call("1", "flood"), finish], [say("done"), finish]));
  world.tool("flood", `echo head; yes "a line of output" | head -c 50000000; echo; echo tail`);
  const [agent, other] = [await world.agent(), await world.agent()];
  await agent.submit("go");
  await until(agent, () => chat(agent).includes("head"));
  await other.submit("hi");
  await idle(other);
  await idle(agent);
  const result = world.requests.at(-1)!.messages.at(-1) as { text: string };
  expect(result.text.length).toBeLessThan(17_000);
  expect(result.text).toStartWith("head\n");
  expect(result.text).toEndWith("\ntail\n[unsandboxed]");
  expect(chat(agent).length).toBeLessThan(100_000);
}, 30_000);

test("two hundred agents at once each get their own answer", async () => {
  world = await World.open(async function* (request) {
    const last = request.messages.at(-1)!;
    if (last.role === "user") {
      await Bun.sleep(Math.random() * 20);
      yield say("let me see ");
      yield call(`c-${last.text}`, "echo", { n: Number(last.text) });
    } else yield say(last.text.split("\n")[0]!);
    yield finish;
  });
  world.tool("echo", 'echo "number $OLLIE_ARG_N"');
  const sessions = await Promise.all(
    Array.from({ length: 20 }, (_, i) => world.runtime.createSession(new Map([["name", `s${i}`]]))),
  );
  for (const session of sessions)
    await Promise.all(Array.from({ length: 9 }, () => session.createAgent(new Map())));
  const agents = sessions.flatMap((session) => session.agents());
  expect(agents).toHaveLength(200);
  await Promise.all(agents.map((agent, i) => agent.submit(`${i}`)));
  for (const agent of agents) await idle(agent);
  for (const [i, agent] of agents.entries()) expect(await agent.reply()).toBe(`let me see \nnumber ${i}`);
}, 60_000);

test("two clients that prompt one agent at once lose nothing, and each prompt has a turn", async () => {
  world = await World.open(async function* (request) {
    yield say(`to ${(request.messages.at(-1) as { text: string }).text}`);
    yield finish;
  });
  const agent = await world.agent();
  const client = async (name: string) => {
    for (let i = 0; i < 20; i++) await agent.submit(`${name}${i}`);
  };
  await Promise.all([client("a"), client("b")]);
  await idle(agent);
  const turns = [
    ...chat(agent).matchAll(/^\[\[\[user.*\n(.*)\n\[\[\[end\]\]\]\n\[\[\[assistant.*\nto (.*)/gm),
  ];
  expect(turns).toHaveLength(40);
  for (const [, prompt, answer] of turns) expect(answer).toBe(prompt);
  for (const name of ["a", "b"])
    expect(turns.map((turn) => turn[1]!).filter((text) => text.startsWith(name))).toEqual(
      Array.from({ length: 20 }, (_, i) => `${name}${i}`),
    );
});

test("an idle agent lets go of its conversation", async () => {
  const held: WeakRef<object>[] = [];
  world = await World.open(async function* (request): AsyncGenerator<ModelEvent> {
    held.push(new WeakRef(request.messages));
    if (request.messages.at(-1)!.role === "user") yield call(`c${held.length}`, "big");
    else yield say("x".repeat(10_000));
    yield finish;
  });
  world.tool("big", "head -c 10000 /dev/zero | tr '\\0' y");
  const agents = await Promise.all(Array.from({ length: 30 }, () => world.agent()));
  await Promise.all(agents.map((agent) => agent.submit("go")));
  for (const agent of agents) await idle(agent);
  world.requests.length = 0;
  for (let i = 0; i < 10; i++) {
    Bun.gc(true);
    await Bun.sleep(5);
  }
  expect(held).toHaveLength(60);
  // The collector is free to keep some; what an agent holds, it keeps all of.
  expect(held.filter((ref) => ref.deref()).length).toBeLessThan(15);
}, 30_000);
