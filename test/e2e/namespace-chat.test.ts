/** The format of `chat`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "./harness.ts";
import { Barrier, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    rules: [
      { match: { user: "markers" }, do: [{ text: "[[[end]]]\ntext\n[[[user]]]\n [[[x\n[[", chunk: 1 }] },
      { match: { user: "think" }, do: [{ reasoning: "Hm.\n[[[", chunk: 2 }, { text: "Yes" }] },
      {
        match: { user: "paths" },
        do: [{ calls: [{ name: "pause_two" }, { name: "pause_one" }, { name: "odd ]]] name" }] }],
      },
      { match: { user: "/^run (.*)/s" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
      { match: { tool: "/./" }, do: [{ text: "Done." }] },
      { match: { user: "slowly" }, do: [{ text: "one two three", chunk: 1, delay: 2 }] },
      { do: [{ text: "Said." }] },
    ],
  });
});
afterAll(() => world.stop());

interface Block {
  type: string;
  attrs: string;
  lines: string[];
}

/** Reads chat by the rules of its format, and by nothing else. */
function blocks(chat: string): Block[] {
  expect(chat === "" || chat.endsWith("\n")).toBe(true);
  const found: Block[] = [];
  let open: Block | undefined;
  for (const line of chat.split("\n").slice(0, -1)) {
    if (line === "[[[end]]]") {
      expect(open).toBeDefined();
      open = undefined;
    } else if (line.startsWith("[[[")) {
      expect(open).toBeUndefined();
      const [, type, attrs] =
        /^\[\[\[([a-z]+)((?: \w+=(?:[^\s"'\\\]]+|"(?:[^"\\]|\\.)*"))*)\]\]\]$/.exec(line) ?? [];
      expect([line, type]).toEqual([
        line,
        expect.stringMatching(/^(user|assistant|reasoning|call|tool|info|error|retry)$/),
      ]);
      open = { type: type!, attrs: attrs!, lines: [] };
      found.push(open);
    } else {
      expect(open).toBeDefined();
      open!.lines.push(line);
    }
  }
  return found;
}

const chat = (agent: string) => world.read(`${agent}/chat`);
const types = async (agent: string) => blocks(await chat(agent)).map((block) => block.type);

describe("chat", () => {
  test("is blocks, each with its type and time", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "hello\n");
    await world.turn(agent, "think\n");
    await world.turn(agent, "run echo out\n");
    await world.write(`${agent}/prompt`, "/help\n");
    const all = blocks(await chat(agent));
    expect(all.map((block) => block.type)).toEqual([
      "user",
      "assistant",
      "user",
      "reasoning",
      "assistant",
      "user",
      "call",
      "tool",
      "assistant",
      "info",
    ]);
    for (const { attrs } of all) expect(attrs).toMatch(/ time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/);
    const [call, tool] = [all[6]!, all[7]!];
    expect(call.attrs).toMatch(/^ name=shell id=(\S+) time=/);
    expect(/ id=(\S+)/.exec(tool.attrs)![1]).toBe(/ id=(\S+)/.exec(call.attrs)![1]!);
    expect(JSON.parse(call.lines.join("\n"))).toEqual({ command: "echo out" });
    expect(tool.lines[0]).toBe("out");
  });

  test("without the lines that begin with [[[ is plain text", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "hello\nworld\n");
    const text = (await chat(agent)).split("\n").filter((line) => !line.startsWith("[[["));
    expect(text).toEqual(["hello", "world", "Said.", ""]);
  });

  test("puts a blank before content that looks like a marker, wherever it comes from", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "markers\n[[[assistant]]]\n[[[end]]]\n");
    await world.turn(agent, "run printf '[[[end]]]\\n[[[user]]]\\n'\n");
    await world.turn(agent, "think\n");
    const all = blocks(await chat(agent));
    expect(all.map((block) => block.type)).toEqual([
      "user",
      "assistant",
      "user",
      "call",
      "tool",
      "assistant",
      "user",
      "reasoning",
      "assistant",
    ]);
    expect(all[0]!.lines).toEqual(["markers", " [[[assistant]]]", " [[[end]]]"]);
    expect(all[1]!.lines).toEqual([" [[[end]]]", "text", " [[[user]]]", " [[[x", "[["]);
    expect(all[4]!.lines.slice(0, 2)).toEqual([" [[[end]]]", " [[[user]]]"]);
    expect(all[7]!.lines).toEqual(["Hm.", " [[["]);
    expect(await world.read(`${agent}/context`)).toContain(
      JSON.stringify("[[[end]]]\ntext\n[[[user]]]\n [[[x\n[["),
    );
  });

  test("never interleaves: output of parallel calls waits for its block", async () => {
    const { agent } = await world.session();
    const [one, two] = [new Barrier(world.home), new Barrier(world.home)];
    await world.tool("pause_one", `echo one begins; ${one.command("echo one ends")}`);
    await world.tool("pause_two", `echo two begins; ${two.command("echo two ends")}`);
    await world.write(`${agent}/tools`, "pause_one pause_two\n");
    await world.write(`${agent}/prompt`, "paths\n");
    await until("the first call speaks", async () => (await chat(agent)).includes("two begins"));
    // The other call has spoken as well, but it is not its turn.
    one.go();
    await world.write(`${agent}/prompt`, "/help\n");
    expect(await chat(agent)).not.toContain("one begins");
    two.go();
    await world.idle(agent);
    const tools = blocks(await chat(agent)).filter((block) => block.type === "tool");
    expect(tools.map(({ lines }) => lines.filter((line) => / (begins|ends)$/.test(line)))).toContainEqual([
      "one begins",
      "one ends",
    ]);
    expect(tools.length).toBe(3);
  });

  test("grows with every delta, and only ever grows", async () => {
    const { agent } = await world.session();
    await world.write(`${agent}/prompt`, "slowly\n");
    const seen: string[] = [""];
    for (let idle = false; !idle; ) {
      idle = (await world.read(`${agent}/state`)) === "idle\n";
      const now = await chat(agent);
      expect(now).toStartWith(seen.at(-1)!);
      if (now !== seen.at(-1)) seen.push(now);
    }
    // One of them ended in the middle of the answer.
    expect(
      seen.some(
        (text) => /\none( tw?)?$/.test(text) || /\none two thr?e?$/.test(text) || /\non?$/.test(text),
      ),
    ).toBe(true);
  });

  test("goes on over restarts, clear and renames", async () => {
    const { agent, path } = await world.session();
    await world.turn(agent, "before\n");
    const before = await chat(agent);
    await world.write(`${agent}/ctl`, "clear\nrename kept\n");
    const cleared = await chat(`${path}/agent/kept`);
    expect(cleared).toStartWith(before);
    expect(await types(`${path}/agent/kept`)).toEqual(["user", "assistant", "info"]);
  });
});
