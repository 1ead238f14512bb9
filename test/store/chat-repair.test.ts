import { expect, test } from "bun:test";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { renderBlock } from "../../src/store/blocks.ts";
import { Agents, chatText, parseChat } from "./helper.ts";

const time = "2026-04-30T19:59:38.123Z";
const attrs = { name: 'a\u0001 "x\\', id: "c1", time };
const sample = [
  renderBlock("retry", { time }, ""),
  renderBlock("call", attrs, "[one]\n[[[two\nthrée"),
  renderBlock("error", { time }, "[\n"),
].join("");

test("a chat that was cut at any byte has whole blocks again, all that was there, and says so once", async () => {
  const agents = new Agents();
  const whole = Buffer.from(sample);
  const borders = new Set<number>();
  for (let size = 0; size <= whole.length; size++) {
    const { name, chat } = await agents.create({ name: `cut${size}` });
    chat.raw(whole.subarray(0, size));
    const { agent, report } = await agents.open(name);
    expect(Buffer.from(agent.chat.read(0, size)).equals(whole.subarray(0, size))).toBe(true);
    const blocks = parseChat(chatText(agent));
    for (const { type } of blocks.slice(0, -1)) expect(["retry", "call"]).toContain(type);
    for (const { attrs } of blocks) expect(new Date(attrs.time!).toISOString()).toBe(attrs.time!);
    if (report.length === 0) borders.add(size);
    else expect(report).toEqual([`${agent.chat.file.path}: a block that was left open is closed`]);
    expect((await agents.open(name)).report).toEqual([]);
  }
  // Nothing is to be done only where the cut fell between blocks.
  expect(borders.size).toBe(4);
});

test("NULs that a crash of the machine left at the end stay, and what follows is whole", async () => {
  const agents = new Agents();
  const { chat, name } = await agents.create();
  chat.block("info", {}, "before");
  appendFileSync(join(agents.agentsFolder, name, "chat"), Buffer.alloc(100));
  const { agent } = await agents.open();
  agent.chat.block("info", {}, "after");
  const text = chatText(agent);
  expect(text).toContain("\0".repeat(100));
  expect(parseChat(text.replace(/\0+\n/, "")).map((block) => block.text)).toEqual(["before\n", "after\n"]);
});

test("a long block that was left open is closed at its end", async () => {
  const agents = new Agents();
  const { chat } = await agents.create();
  const block = chat.open("tool", {});
  for (let i = 0; i < 300; i++) block.append(`${"x".repeat(1000)}\n`);
  const { agent } = await agents.open();
  expect(parseChat(chatText(agent))[0]!.text.length).toBe(300 * 1001);
});

test("a turn that ran is closed as interrupted, chat says so, and what waited waits", async () => {
  const agents = new Agents();
  const before = await agents.create();
  before.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  before.append({ t: "prompt", id: "q", text: "then that", how: "prompt" });
  before.beginTurn("t", "p");
  before.chat.open("assistant", {}).append("half an ans");
  const { agent, report } = await agents.open();
  expect(report).toEqual([
    expect.stringContaining("a block that was left open is closed"),
    expect.stringContaining("closed as interrupted"),
  ]);
  expect(agent.state.running).toBeUndefined();
  expect(agent.state.last).toMatchObject({ id: "t", how: "interrupted" });
  expect(agent.state.waiting.map(({ id }) => id)).toEqual(["q"]);
  expect(parseChat(chatText(agent)).map(({ type, text }) => [type, text])).toEqual([
    ["user", "do it\n"],
    ["assistant", "half an ans\n"],
    ["info", "Interrupted: the server ended while this turn ran.\n"],
  ]);
  expect((await agents.open()).report).toEqual([]);
});

test("a turn that had told its failure, of which the disk took no record, is not told to be interrupted", async () => {
  const agents = new Agents();
  const before = await agents.create();
  before.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  before.beginTurn("t", "p");
  before.chat.block("error", {}, "no space left");
  const { agent, report } = await agents.open();
  expect(report).toEqual([expect.stringContaining("closed as failed")]);
  expect(agent.state.last).toMatchObject({ id: "t", how: "failed" });
  expect(parseChat(chatText(agent)).map(({ type }) => type)).toEqual(["user", "error"]);
  expect((await agents.open()).report).toEqual([]);
});

test("the failure of the turn before does not stand for that of a turn that ran", async () => {
  const agents = new Agents();
  const before = await agents.create();
  before.chat.block("error", {}, "of another turn");
  before.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  before.beginTurn("t", "p");
  const { agent } = await agents.open();
  expect(agent.state.last).toMatchObject({ id: "t", how: "interrupted" });
});

test("what stands in for lost bytes of chat says when it was written", async () => {
  const agents = new Agents();
  const before = await agents.create();
  before.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  before.append({ t: "turn", id: "t", prompt: "p", chatAt: 1000, offset: 1065 });
  const { agent } = await agents.open();
  const [filler] = parseChat(chatText(agent));
  expect(filler).toMatchObject({ type: "info", text: expect.stringContaining("1000 bytes") });
  expect(Math.abs(Date.now() - Date.parse(filler!.attrs.time!))).toBeLessThan(600_000);
});

test("a prompt whose turn was journalled but not yet shown is shown, at the place that the journal names", async () => {
  const agents = new Agents();
  const before = await agents.create();
  before.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  before.append({ t: "turn", id: "t", prompt: "p", chatAt: 0, offset: 65 });
  const { agent } = await agents.open();
  const text = chatText(agent);
  expect(text.slice(0, 65)).toMatch(/^\[\[\[user.*\]\]\]\ndo it\n+\[\[\[end\]\]\]\n$/);
  expect(parseChat(text)).toHaveLength(2);
});
