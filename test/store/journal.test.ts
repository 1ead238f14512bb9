import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { FdCache } from "../../src/store/fd-cache.ts";
import type { NewRecord } from "../../src/store/records.ts";
import { Agents, folder, meaning } from "./helper.ts";

const usage = { input: 100, cacheRead: 20, cacheWrite: 3, output: 10, reasoning: 4 };

function prompt(id: string, text = id, how: "prompt" | "queue" | "inject" = "prompt"): NewRecord {
  return { t: "prompt", id, text, how };
}

function turn(agent: AgentStore, id: string, promptId: string, ...records: NewRecord[]): void {
  agent.beginTurn(id, promptId);
  for (const record of records) agent.append(record);
  agent.append({ t: "end", turn: id, how: "done" });
}

function answer(text: string): NewRecord {
  return { t: "assistant", text, calls: [] };
}

test("a new agent has its config and settings, and nothing else", async () => {
  const before = Date.now();
  const agent = await new Agents().create({ config: "developer", cfg: { model: "m", cwd: "/a b" } });
  expect(agent.state.config).toBe("developer");
  expect([...agent.state.cfg]).toEqual([
    ["model", "m"],
    ["cwd", "/a b"],
  ]);
  expect(agent.state.created).toBeWithin(before, Date.now() + 1);
  expect(agent.state.waiting).toEqual([]);
  expect(agent.state.running).toBeUndefined();
  expect(agent.state.last).toBeUndefined();
  expect(agent.prevPrompt()).toBe("");
  expect(await agent.reply()).toBe("");
  expect(await agent.history()).toEqual([]);
});

test("what waits is in order: injects first, then the others as they came", async () => {
  const agent = await new Agents().create();
  for (const record of [
    prompt("a"),
    prompt("b", "b", "queue"),
    prompt("c", "c", "inject"),
    prompt("d"),
    prompt("e", "e", "inject"),
  ])
    agent.append(record);
  const ids = () => agent.state.waiting.map(({ id }) => id).join("");
  expect(ids()).toBe("ceabd");
  agent.append({ t: "dequeue", id: "b" });
  agent.append({ t: "inject", prompt: "c" });
  expect(ids()).toBe("ead");
  agent.beginTurn("t", "e");
  expect(ids()).toBe("ad");
});

test("settings and tools merge", async () => {
  const agent = await new Agents().create({ cfg: { model: "m", topP: "1" } });
  agent.append({ t: "cfg", set: { model: null, seed: "7" } });
  agent.append({ t: "tools", load: ["a", "b"], unload: ["c"] });
  agent.append({ t: "tools", load: ["c"], unload: ["a"] });
  expect(Object.fromEntries(agent.state.cfg)).toEqual({ topP: "1", seed: "7" });
  expect([...agent.state.loaded].sort()).toEqual(["b", "c"]);
  expect([...agent.state.unloaded]).toEqual(["a"]);
});

test("a turn's user block stands in chat where the journal says, and its answer is the rest", async () => {
  const agent = await new Agents().create();
  agent.chat.block("info", {}, "before");
  agent.append(prompt("p", "do it\n[[[x"));
  agent.beginTurn("t", "p");
  const { chatAt, offset } = agent.state.running!;
  const block = Buffer.from(agent.chat.read(chatAt, offset - chatAt)).toString();
  expect(block).toMatch(/^\[\[\[user time=\S+\]\]\]\ndo it\n \[\[\[x\n\[\[\[end\]\]\]\n$/);
  expect(agent.chat.length).toBe(offset);
});

test("a turn closes what others have left open in chat, so that its place is certain", async () => {
  const agent = await new Agents().create();
  agent.chat.open("tool", {}).append("left open");
  agent.append(prompt("p"));
  agent.beginTurn("t", "p");
  expect(agent.state.running!.offset).toBe(agent.chat.length);
});

test("a turn cannot begin with a text that does not wait", async () => {
  const agent = await new Agents().create();
  expect(() => agent.beginTurn("t", "nothing")).toThrow(Fault);
  expect(agent.state.running).toBeUndefined();
  expect(agent.chat.length).toBe(0);
});

test("reply is the text of the last turn that ended, previous prompt that of the one that began last", async () => {
  const agent = await new Agents().create();
  agent.append(prompt("p1", "first"));
  turn(agent, "t1", "p1", answer("one"));
  agent.append(prompt("p2", "second"));
  agent.append(prompt("p3", "third", "queue"));
  turn(agent, "t2", "p2", answer("two"), answer(""), answer("and\nthree"));
  expect(await agent.reply()).toBe("two\nand\nthree");
  expect(agent.prevPrompt()).toBe("second");
  agent.beginTurn("t3", "p3");
  agent.append(answer("not yet"));
  expect(await agent.reply()).toBe("two\nand\nthree");
  expect(agent.prevPrompt()).toBe("third");
  agent.append({ t: "end", turn: "t3", how: "failed", reason: "why" });
  expect(await agent.reply()).toBe("not yet");
  expect(agent.state.last).toMatchObject({ id: "t3", how: "failed", reason: "why" });
});

describe("usage and cost", () => {
  test("are kept in all and for the last turn", async () => {
    const agent = await new Agents().create();
    const request: NewRecord = { t: "usage", backend: "b", model: "m", usage, cost: 0.25 };
    agent.append(prompt("p1"));
    turn(agent, "t1", "p1", request, request);
    agent.append(prompt("p2"));
    turn(agent, "t2", "p2", request);
    expect(agent.state.total).toEqual({
      input: 300,
      cacheRead: 60,
      cacheWrite: 9,
      output: 30,
      reasoning: 12,
      requests: 3,
      estimated: false,
      cost: 0.75,
    });
    expect(agent.state.turn).toMatchObject({ input: 100, requests: 1, cost: 0.25 });
    expect(agent.state.lastRequest).toEqual({ backend: "b", model: "m", usage });
  });

  test("are unknown as soon as the price of one request is", async () => {
    const agent = await new Agents().create();
    agent.append(prompt("p1"));
    const free: NewRecord = { t: "usage", backend: "b", model: "m", usage, cost: 0 };
    const unknown: NewRecord = { t: "usage", backend: "b", model: "m", usage: { ...usage, estimated: true } };
    turn(agent, "t1", "p1", free, unknown, free);
    agent.append(prompt("p2"));
    turn(agent, "t2", "p2", free);
    expect(agent.state.total).toMatchObject({ cost: undefined, estimated: true });
    expect(agent.state.turn).toMatchObject({ cost: 0, estimated: false });
  });
});

test("a new server finds the same state", async () => {
  const agents = new Agents();
  const agent = await agents.create({ cfg: { model: "m" } });
  agent.append(prompt("p1", "ünï\u0000\ud800\n"));
  turn(agent, "t1", "p1", answer("a"), { t: "usage", backend: "b", model: "m", usage });
  agent.append(prompt("p2", "waits", "inject"));
  agent.append({ t: "tools", load: ["x"], unload: ["y"] });
  agent.append({ t: "clear" });
  const again = await agents.open();
  expect(again.report).toEqual([]);
  expect(again.agent.state).toEqual(agent.state);
  expect(again.agent.prevPrompt()).toBe("ünï\u0000\ud800\n");
  expect(await again.agent.reply()).toBe("a");
});

test("a record that could not be read back is refused, and nothing changes", async () => {
  const agents = new Agents();
  const agent = await agents.create();
  const path = join(agents.agentsFolder, "default/journal.jsonl");
  const before = readFileSync(path, "utf8");
  const opaque = { backend: "b", model: "m", data: undefined };
  const wrong = [
    { t: "usage", backend: "b", model: "m", usage: { ...usage, input: Number.NaN } },
    { t: "assistant", text: "", calls: [], opaque },
    { t: "assistant", text: "", calls: [], opaque: { ...opaque, data: 1n } },
    { t: "nonsense" },
  ] as NewRecord[];
  for (const record of wrong) expect(() => agent.append(record)).toThrow(Fault);
  expect(readFileSync(path, "utf8")).toBe(before);
  agent.append(prompt("p"));
  expect(meaning((await agents.open()).agent.state)).toEqual(meaning(agent.state));
});

test("concurrent callers of sync share one fdatasync, and a later write gets another", async () => {
  let calls = 0;
  class Counting extends FdCache {
    override hold<T>(...args: Parameters<typeof FdCache.prototype.hold<T>>): Promise<T> {
      calls++;
      return super.hold(...args);
    }
  }
  const agent = await new Agents(folder(), new Counting()).create();
  calls = 0;
  await agent.sync();
  expect(calls).toBe(0);
  agent.append(prompt("a"));
  const first = agent.sync();
  agent.append(prompt("b"));
  agent.append(prompt("c"));
  await Promise.all([first, agent.sync(), agent.sync(), agent.sync()]);
  expect(calls).toBe(2);
  await agent.sync();
  expect(calls).toBe(2);
  agent.append(prompt("d"));
  await Promise.all([agent.sync(), agent.sync()]);
  expect(calls).toBe(3);
});
