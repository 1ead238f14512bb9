import { describe, expect, test } from "bun:test";
import { appendFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { Agents, chatText, meaning, parseChat } from "./helper.ts";

interface Case {
  agents: Agents;
  agent: AgentStore;
  journal: string;
  /** Lines of the journal, without newlines. */
  lines: string[];
}

/** An agent with three waiting texts: four lines. */
async function prepared(): Promise<Case> {
  const agents = new Agents();
  const agent = await agents.create();
  for (const id of ["a", "b", "c"])
    agent.append({ t: "prompt", id, text: `text ${id} {"t":"x"}`, how: "queue" });
  const journal = join(agents.agentsFolder, "default/journal.jsonl");
  return { agents, agent, journal, lines: readFileSync(journal, "utf8").split("\n").slice(0, -1) };
}

function waiting(agent: AgentStore): string {
  return agent.state.waiting.map(({ id }) => id).join("");
}

function copies({ agents }: Case): string[] {
  return readdirSync(join(agents.agentsFolder, "default")).filter((name) => name.includes("damaged"));
}

/** What the damage was is told once, the agent goes on, and the next server finds all in order. */
async function survives(one: Case, expected: string, told: RegExp): Promise<AgentStore> {
  const { agent, report } = await one.agents.open();
  expect(waiting(agent)).toBe(expected);
  expect(report).toEqual([expect.stringMatching(told)]);
  expect(report[0]).toContain(one.journal);
  agent.append({ t: "prompt", id: "z", text: "goes on", how: "queue" });
  const next = await one.agents.open();
  expect(next.report).toEqual([]);
  expect(meaning(next.agent.state)).toEqual(meaning(agent.state));
  expect(waiting(next.agent)).toBe(`${expected}z`);
  return agent;
}

test("a torn last line is cut off", async () => {
  const one = await prepared();
  appendFileSync(one.journal, one.lines[3]!.slice(0, 30));
  await survives(one, "abc", /torn after 30 bytes, is cut off/);
  expect(readFileSync(one.journal, "utf8")).toStartWith(`${one.lines.join("\n")}\n`);
  expect(copies(one)).toEqual([]);
});

test("a whole last line without a newline is kept", async () => {
  const one = await prepared();
  truncateSync(one.journal, Buffer.byteLength(one.lines.join("\n")));
  await survives(one, "abc", /no newline and is kept/);
  expect(copies(one)).toEqual([]);
});

test("NULs at the end are cut off", async () => {
  const one = await prepared();
  appendFileSync(one.journal, Buffer.alloc(5000));
  await survives(one, "abc", /torn after 5000 bytes, is cut off/);
});

describe("the journal is written anew, and the damaged one kept, after", () => {
  const cases: [string, (lines: string[]) => string, string, RegExp][] = [
    ["glued records", ([a, b, c, d]) => `${a}\n${b}${c}\n${d}\n`, "abc", /1 damaged lines \(0 bytes/],
    [
      "glued records in the last line",
      ([a, b, c, d]) => `${a}\n${b}\n${c}${d}`,
      "abc",
      /1 damaged lines \(0 bytes/,
    ],
    [
      "a record glued to a torn one",
      ([a, b, c, d]) => `${a}\n${b}\n${c!.slice(0, 9)}${d}\n`,
      "ac",
      /9 bytes could not/,
    ],
    [
      "a torn record after a whole one",
      ([a, b, c, d]) => `${a}\n${b}\n${c}${d!.slice(0, 9)}`,
      "ab",
      /9 bytes could not/,
    ],
    [
      "NULs before a record",
      ([a, b, c, d]) => `${a}\n${b}\n\0\0\0\0${c}\n${d}\n`,
      "abc",
      /1 damaged lines \(0 bytes/,
    ],
    [
      "NULs after the last record",
      ([a, b, c, d]) => `${a}\n${b}\n${c}\n${d}\0\0\0`,
      "abc",
      /1 damaged lines \(0 bytes/,
    ],
    [
      "garbage in the middle",
      ([a, b, c, d]) => `${a}\n${b}\n#garbage#\n${c}\n${d}\n`,
      "abc",
      /9 bytes could not/,
    ],
    ["a damaged record", ([a, b, c, d]) => `${a}\n${b}\n${c!.slice(0, -1)}\n${d}\n`, "ac", /1 damaged lines/],
    ["much at once", ([a, b, c, d]) => `${a}\nx\n${b}${c}\n\0\n${d}\ny`, "abc", /3 damaged lines/],
  ];
  for (const [name, damage, expected, told] of cases)
    test(name, async () => {
      const one = await prepared();
      const damaged = damage(one.lines);
      writeFileSync(one.journal, damaged);
      if (name === "much at once") {
        const { report } = await one.agents.open();
        expect(report).toEqual([expect.stringMatching(/cut off/), expect.stringMatching(told)]);
        return;
      }
      await survives(one, expected, told);
      expect(copies(one)).toHaveLength(1);
      const copy = join(one.agents.agentsFolder, "default", copies(one)[0]!);
      expect(readFileSync(copy, "utf8")).toBe(damaged);
    });
});

test("positions are right after the journal has been written anew", async () => {
  const one = await prepared();
  one.agent.beginTurn("t", "a");
  one.agent.append({ t: "assistant", text: "answer", calls: [] });
  one.agent.append({ t: "end", turn: "t", how: "done" });
  const lines = readFileSync(one.journal, "utf8").split("\n");
  writeFileSync(one.journal, [lines[0], "garbage ".repeat(100), ...lines.slice(1)].join("\n"));
  const { agent } = await one.agents.open();
  expect(agent.prevPrompt()).toBe('text a {"t":"x"}');
  expect(await agent.reply()).toBe("answer");
});

test("records of a kind that a newer version writes are kept and ignored, without a word", async () => {
  const one = await prepared();
  appendFileSync(one.journal, '{"t":"snapshot","at":1,"of":"something"}\n');
  const { agent, report } = await one.agents.open();
  expect(report).toEqual([]);
  expect(waiting(agent)).toBe("abc");
  expect(readFileSync(one.journal, "utf8")).toContain('"t":"snapshot"');
});

test("a known record in an unknown shape is kept, ignored and told", async () => {
  const one = await prepared();
  appendFileSync(one.journal, '{"t":"prompt","at":1,"id":"n","text":"x","how":"later"}\n');
  const { agent, report } = await one.agents.open();
  expect(report).toEqual([expect.stringMatching(/1 records of an unknown shape/)]);
  expect(waiting(agent)).toBe("abc");
  expect(readFileSync(one.journal, "utf8")).toContain('"how":"later"');
});

test("a journal of another version is left alone", async () => {
  const one = await prepared();
  const newer = `${one.lines[0]!.replace('"v":1', '"v":2')}\nwho knows\n`;
  writeFileSync(one.journal, newer);
  await expect(one.agents.open()).rejects.toThrow("another version");
  expect(readFileSync(one.journal, "utf8")).toBe(newer);
});

test("a lost first record is replaced, and all the others count", async () => {
  const one = await prepared();
  writeFileSync(one.journal, `${one.lines.slice(1).join("\n")}\n`);
  const agent = await survives(one, "abc", /the first record was missing/);
  expect(agent.state.config).toBe("default");
  expect(agent.state.id).not.toBe("");
  expect(Math.abs(Date.now() - agent.state.created)).toBeLessThan(600_000);
});

test("an empty and a missing journal make an agent without a past", async () => {
  const one = await prepared();
  writeFileSync(one.journal, "");
  await survives(one, "", /the first record was missing/);
  rmSync(one.journal);
  await survives(one, "", /the first record was missing/);
});

/** Two turns that ended, in chat and journal. */
async function withTurns() {
  const one = await prepared();
  for (const [turn, prompt] of [
    ["t", "a"],
    ["u", "b"],
  ] as const) {
    one.agent.beginTurn(turn, prompt);
    one.agent.append({ t: "assistant", text: `answer to ${prompt}`, calls: [] });
    one.agent.append({ t: "end", turn, how: "done" });
  }
  return { ...one, bytes: readFileSync(one.journal) };
}

describe("chat says what the model does not remember", () => {
  const cases: [string, (journal: string, bytes: Buffer) => void, string][] = [
    ["of an emptied journal", (path) => truncateSync(path, 0), "remembers nothing of what is above"],
    ["of a journal that is gone", (path) => rmSync(path), "remembers nothing of what is above"],
    ["of a journal of NULs", (path, bytes) => writeFileSync(path, Buffer.alloc(bytes.length)), "nothing"],
    [
      "of a journal with garbage in it",
      (path, bytes) => writeFileSync(path, bytes.toString().replace('{"t":"assistant"', "#")),
      "bytes could not be read",
    ],
    [
      "of a journal that has lost its beginning",
      (path, bytes) => writeFileSync(path, bytes.subarray(bytes.indexOf("\n") + 1)),
      "its first record was missing",
    ],
    [
      "of a journal that was cut in an earlier turn",
      (path, bytes) => truncateSync(path, bytes.indexOf("answer to a")),
      "The end of this agent's journal was lost",
    ],
  ];
  for (const [name, damage, told] of cases)
    test(name, async () => {
      const { agents, journal, bytes } = await withTurns();
      damage(journal, bytes);
      const { agent } = await agents.open();
      const last = parseChat(chatText(agent)).at(-1)!;
      expect(last).toMatchObject({ type: "info", text: expect.stringContaining(told) });
      await agents.open();
      expect(parseChat(chatText((await agents.open()).agent)).at(-1)).toEqual(last);
    });

  test("and nothing where nothing is lost: a write that was cut, glued records", async () => {
    const { agents, agent, journal, bytes } = await withTurns();
    const before = chatText(agent);
    appendFileSync(journal, '{"t":"prompt","at":1,"id":"n","te');
    expect(chatText((await agents.open()).agent)).toBe(before);
    writeFileSync(journal, bytes.toString().replace('\n{"t":"assistant"', '{"t":"assistant"'));
    expect(chatText((await agents.open()).agent)).toBe(before);
  });
});

test("a missing or emptied chat is there again, with the last prompt where the journal says", async () => {
  const one = await prepared();
  one.agent.chat.block("info", {}, "something before");
  one.agent.beginTurn("t", "a");
  one.agent.append({ t: "end", turn: "t", how: "done" });
  rmSync(join(one.agents.agentsFolder, "default/chat"));
  const { agent, report } = await one.agents.open();
  expect(report).toEqual([expect.stringMatching(/written again/)]);
  const { chatAt, offset } = agent.state.last!;
  expect(Buffer.from(agent.chat.read(chatAt, offset - chatAt)).toString()).toContain("\ntext a ");
});
