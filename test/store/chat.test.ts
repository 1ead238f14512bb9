import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Agents, chatText, parseChat } from "./helper.ts";

const time = "2026-01-02T03:04:05.678Z";

test("a block is a marker line, the text, and an end marker on a line of its own", async () => {
  const agent = await new Agents().create();
  agent.chat.block("info", { time }, "hello");
  agent.chat.block("error", { time }, "two\nlines\n");
  agent.chat.block("info", { time }, "");
  expect(chatText(agent)).toBe(
    `[[[info time=${time}]]]\nhello\n[[[end]]]\n` +
      `[[[error time=${time}]]]\ntwo\nlines\n[[[end]]]\n` +
      `[[[info time=${time}]]]\n[[[end]]]\n`,
  );
});

test("every block says when it began", async () => {
  const agent = await new Agents().create();
  const before = Date.now();
  agent.chat.block("call", { name: "shell", id: "c1" }, "{}");
  const [block] = parseChat(chatText(agent));
  expect(Object.keys(block!.attrs)).toEqual(["name", "id", "time"]);
  expect(Date.parse(block!.attrs.time!)).toBeWithin(before, Date.now() + 1);
});

test("text is in the file as soon as it has been appended", async () => {
  const agent = await new Agents().create();
  const block = agent.chat.open("assistant", { time });
  expect(chatText(agent)).toBe(`[[[assistant time=${time}]]]\n`);
  block.append("Hel");
  expect(chatText(agent)).toEndWith("]]]\nHel");
  block.append("lo");
  expect(chatText(agent)).toEndWith("]]]\nHello");
  block.close();
  expect(chatText(agent)).toEndWith("]]]\nHello\n[[[end]]]\n");
});

test("blocks do not interleave: what is opened later follows when the one before is closed, and then streams", async () => {
  const agent = await new Agents().create();
  const first = agent.chat.open("tool", { id: "1" });
  const second = agent.chat.open("tool", { id: "2" });
  const third = agent.chat.open("tool", { id: "3" });
  agent.chat.block("info", {}, "later");
  third.append("3");
  third.close();
  second.append("2a");
  first.append("1");
  expect(chatText(agent)).toEndWith("]]]\n1");
  first.close();
  expect(chatText(agent)).toEndWith("]]]\n2a");
  second.append("2b");
  expect(chatText(agent)).toEndWith("]]]\n2a2b");
  second.close();
  expect(parseChat(chatText(agent)).map((block) => block.text)).toEqual(["1\n", "2a2b\n", "3\n", "later\n"]);
});

test("what is appended to a closed block is dropped", async () => {
  const agent = await new Agents().create();
  const block = agent.chat.open("tool", {});
  const waiting = agent.chat.open("tool", {});
  agent.chat.closeAll();
  block.append("late");
  waiting.append("late");
  block.close();
  expect(parseChat(chatText(agent)).map(({ text }) => text)).toEqual(["", ""]);
});

describe("a content line that looks like a marker gets a blank in front", () => {
  const cases: [string, string[], string][] = [
    ["in one piece", ["[[[end]]]\nx"], " [[[end]]]\nx\n"],
    ["after a newline", ["x\n[[[user]]]"], "x\n [[[user]]]\n"],
    ["split inside the brackets", ["x\n[", "[", "[user]]]"], "x\n [[[user]]]\n"],
    ["split at the newline", ["x\n", "[[", "[a"], "x\n [[[a\n"],
    ["brackets that are none", ["[", "x\n[[", "y\n["], "[x\n[[y\n[\n"],
    ["brackets within a line", ["a[[[", "[[[b"], "a[[[[[[b\n"],
    ["four brackets", ["[[[", "["], " [[[[\n"],
  ];
  for (const [name, pieces, content] of cases)
    test(name, async () => {
      const agent = await new Agents().create();
      const block = agent.chat.open("assistant", { time });
      for (const piece of pieces) block.append(piece);
      block.close();
      expect(chatText(agent)).toBe(`[[[assistant time=${time}]]]\n${content}[[[end]]]\n`);
    });
});

test("a character whose halves arrive apart is one character in the file", async () => {
  const agent = await new Agents().create();
  const block = agent.chat.open("assistant", {});
  block.append("a\ud83d");
  block.append("\ude00b");
  block.close();
  expect(parseChat(chatText(agent))[0]!.text).toBe("a😀b\n");
});

test("attributes with blanks, quotes, brackets and newlines are quoted", async () => {
  const agent = await new Agents().create();
  const attrs = { name: "a b", id: 'q"]]]\\', cwd: "line\nbreak", plain: "x-1.2/ü", empty: "", time };
  agent.chat.block("call", attrs, "");
  expect(parseChat(chatText(agent))).toEqual([{ type: "call", attrs, text: "" }]);
});

test("a read ends where the chat ends", async () => {
  const agent = await new Agents().create();
  agent.chat.block("info", {}, "0123456789");
  const { length } = agent.chat;
  expect(agent.chat.read(length - 4, 1_000_000).length).toBe(4);
  expect(agent.chat.read(length, 10).length).toBe(0);
  expect(agent.chat.read(length + 1e12, 10).length).toBe(0);
  expect(agent.chat.read(0, 0).length).toBe(0);
});

test("many agents in use hold few open files", async () => {
  const agents = new Agents();
  const open = () => readdirSync("/proc/self/fd").length;
  const before = open();
  const all = [];
  for (let i = 0; i < 400; i++) all.push(await agents.create({ name: `a${i}` }));
  for (const agent of all) {
    agent.chat.block("info", {}, agent.name);
    agent.append({ t: "prompt", id: "p", text: "x", how: "queue" });
  }
  await Promise.all(all.map((agent) => agent.sync()));
  for (const agent of all) expect(chatText(agent)).toContain(`\n${agent.name}\n`);
  expect(open() - before).toBeLessThan(200);
});

test("a secret is masked also where it comes in pieces, and what is left of a piece is not lost", async () => {
  const agents = new Agents();
  agents.secrets.learnSession({ GH_TOKEN: "ghp_0123456789" });
  const agent = await agents.create();
  const block = agent.chat.open("tool", { time, name: "ghp_0123456789" });
  for (const piece of ["it is gh", "p_01234", "56789, and gh"]) block.append(piece);
  expect(chatText(agent)).toEndWith("it is [masked: GH_TOKEN], and ");
  block.close();
  expect(chatText(agent)).toBe(
    `[[[tool time=${time} name="[masked: GH_TOKEN]"]]]\nit is [masked: GH_TOKEN], and gh\n[[[end]]]\n`,
  );
});

test("neither the journal nor what goes to a provider holds a secret, but a person's words stay", async () => {
  const agents = new Agents();
  const agent = await agents.create();
  const secret = "ghp_0123456789";
  const say = () => {
    agent.append({ t: "prompt", id: newPrompt(), text: `mine: ${secret}`, how: "prompt" });
    agent.beginTurn(`t${count}`, `p${count}`);
    const calls = [{ id: `c${count}`, name: "shell", args: `{"command":"echo ${secret}"}` }];
    agent.append({ t: "assistant", text: `said ${secret}`, reasoning: `so ${secret}`, calls });
    agent.append({
      t: "result",
      id: `c${count}`,
      name: "shell",
      ok: true,
      how: "done",
      text: `got ${secret}`,
    });
    agent.append({ t: "end", turn: `t${count}`, how: "failed", reason: `for ${secret}` });
  };
  let count = 0;
  const newPrompt = () => `p${++count}`;
  say();
  // What was said before the value was known to be secret is kept, and not sent.
  agents.secrets.learnSession({ GH_TOKEN: secret });
  say();
  const sent = agent.masked(await agent.history());
  expect(JSON.stringify(sent.filter(({ role }) => role !== "user"))).not.toContain(secret);
  expect(sent.filter(({ role }) => role === "user")).toEqual(
    Array(2).fill({ role: "user", text: `mine: ${secret}` }),
  );
  const journal = readFileSync(join(agent.folder, "journal.jsonl"), "utf8").split("\n");
  const second = journal.slice(journal.findIndex((line) => line.includes('"p2"')));
  expect(second.filter((line) => line.includes(secret)).map((line) => JSON.parse(line).t)).toEqual([
    "prompt",
  ]);
  expect(second.filter((line) => line.includes("[masked: GH_TOKEN]"))).toHaveLength(3);
});
