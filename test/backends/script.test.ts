/** The scripted backend: scenarios, their mistakes, and the rehearsal that is built in. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "../../src/backends/backend.ts";
import { parseScenario } from "../../src/backends/scenario.ts";
import { ScriptBackend } from "../../src/backends/script.ts";
import { costOf } from "../../src/backends/usage.ts";
import { ask, called, play } from "./harness.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-scenario-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function scenario(text: string): ScriptBackend {
  const path = join(folder, `${++files}.yaml`);
  writeFileSync(path, text);
  return new ScriptBackend(path);
}

const result = (text: string, name = "shell", ok = true): Message => ({
  role: "tool",
  id: "a",
  name,
  ok,
  text,
});
const after = (...results: Message[]): Message[] => [
  { role: "user", text: "count the files in /tmp" },
  { role: "assistant", text: "", calls: [{ id: "a", name: "shell", args: "{}" }] },
  ...results,
];

describe("what is played", () => {
  test("steps in their order, with groups filled in, calls at the end", async () => {
    const outcome = await play(
      scenario(String.raw`
rules:
  - match: { user: "/count the (\\w+) in (\\S+)/i" }
    do:
      - reasoning: A listing will tell.
      - text: "Counting $1: "
        chunk: 5
      - calls: [{ name: shell, args: { command: "ls $2 | awk '{print $3}'" } }]
      - text: wait.
      - usage: { input: 900, cacheRead: 700, output: 12, cost: 0.0021 }
`),
      ask("Count the files in /tmp"),
    );
    expect(
      outcome.events.map((event) =>
        event.type === "text" || event.type === "reasoning" ? event.text : event.type,
      ),
    ).toEqual(["A listing will tell.", "Count", "ing f", "iles:", " ", "wait.", "usage", "call", "finish"]);
    expect(called(outcome)).toEqual([`shell {"command":"ls /tmp | awk '{print $3}'"}`]);
    expect(outcome.finish).toBe("tool-calls");
    expect(outcome.usage).toEqual({ input: 900, cacheRead: 700, cacheWrite: 0, output: 12, cost: 0.0021 });
  });

  test("chunks never cut a character", async () => {
    const { events } = await play(scenario('- do: [{ text: "a👍b", chunk: 1 }]'), ask("hi"));
    expect(events.filter((event) => event.type === "text").map((event) => event.text)).toEqual([
      "a",
      "👍",
      "b",
    ]);
  });

  test("tokens are counted roughly and cost nothing unless the scenario says so", async () => {
    const { usage } = await play(
      scenario("- do: [{ text: twelve chars }]"),
      ask("hi", { tools: [], system: "" }),
    );
    expect(usage).toEqual({ input: 1, cacheRead: 0, cacheWrite: 0, output: 3, cost: 0 });
    expect(costOf({ input: 1, cacheRead: 0, cacheWrite: 0, output: 1 }, "script", "m")).toBe(0);
    expect(costOf({ input: 1, cacheRead: 0, cacheWrite: 0, output: 1 }, "openai", "m")).toBeUndefined();
    expect(costOf({ input: 1, cacheRead: 0, cacheWrite: 0, output: 1, cost: 0.5 }, "openai", "m")).toBe(0.5);
  });

  test("arguments may be text that is no JSON, and a finish reason may be set", async () => {
    const one = scenario("- do: [{ calls: [{ name: shell, args: '{oops' }] }, { finish: length }]");
    const outcome = await play(one, ask("hi"));
    expect(called(outcome)).toEqual(["shell {oops"]);
    expect(outcome.finish).toBe("length");
  });

  test("errors, with their words, status and wishes", async () => {
    const one = scenario(`
- match: { user: limit }
  do: [{ text: Well }, { error: { status: 429, message: Slow down, retryAfter: 2 } }]
- match: { user: network }
  do: [{ error: { message: no route to host } }]
- match: { user: big }
  do: [{ error: { status: 400, message: prompt is too long } }]
- match: { user: cut }
  do: [{ calls: [{ name: shell }] }, { cut: true }]
`);
    expect(await play(one, ask("limit"))).toMatchObject({
      text: "Well",
      error: { message: "script: Slow down (HTTP 429)" },
      detail: { status: 429, retryable: true, retryAfter: 2000 },
    });
    expect((await play(one, ask("network"))).detail).toEqual({ retryable: true });
    expect((await play(one, ask("big"))).detail).toMatchObject({ overflow: true, retryable: false });
    expect(await play(one, ask("cut"))).toMatchObject({ calls: [], detail: { retryable: true } });
  });

  test("a stop ends a delay at once", async () => {
    const stop = new AbortController();
    const one = scenario("- do: [{ text: one }, { delay: 1000000 }, { text: two }]");
    const outcome = await play(one, ask("hi"), stop.signal, () => stop.abort());
    expect(outcome.text).toBe("one");
    expect(outcome.error).toMatchObject({ name: "Fault", kind: "interrupted" });
  });
});

describe("which rule is played", () => {
  const text = async (one: ScriptBackend, messages: string | Message[], config?: string) => {
    const outcome = await play(one, ask(messages, config ? { agent: { name: "x", config } } : {}));
    return outcome.error?.message ?? outcome.text;
  };

  test("the first whose conditions all hold", async () => {
    const one = scenario(`
- { match: { user: alpha, agent: reviewer }, do: [{ text: 1 of alpha }] }
- { match: { user: alpha }, do: [{ text: 2 of alpha }] }
- { match: { agent: /view/ }, do: [{ text: any of them }] }
- { do: [{ text: otherwise }] }
`);
    expect(await text(one, "say alpha", "reviewer")).toBe("1 of alpha");
    expect(await text(one, "say alpha")).toBe("2 of alpha");
    expect(await text(one, "beta", "reviewer")).toBe("any of them");
    expect(await text(one, "beta")).toBe("otherwise");
  });

  test("a rule about the user is not played for the results of its own calls", async () => {
    const one = scenario(String.raw`
- { match: { user: count }, do: [{ calls: [{ name: shell }] }] }
- { match: { tool: shell, result: /exit (\d+)/ }, do: [{ text: exit was $1 }] }
- { match: { user: /in (\S+)/, result: /found (\d)/ }, do: [{ text: $2 in $1 }] }
- { match: { tool: read }, do: [{ text: read }] }
`);
    expect(await text(one, after(result("exit 3")))).toBe("exit was 3");
    expect(await text(one, after(result("found 7")))).toBe("7 in /tmp");
    expect(await text(one, after(result("x"), result("y", "read")))).toBe("read");
    expect(await text(one, after(result("x")))).toMatch(/^no rule of .*yaml matches the tool message "x"$/);
  });

  test("nth counts how often the other conditions have held", async () => {
    const one = scenario(`
- { match: { user: flaky, nth: 1 }, do: [{ text: first }] }
- { match: { user: flaky, nth: [2, 3] }, do: [{ text: second or third }] }
- { do: [{ text: later }] }
`);
    const heard = [];
    for (let i = 0; i < 4; i++) heard.push(await text(one, "flaky"));
    expect(heard).toEqual(["first", "second or third", "second or third", "later"]);
  });

  test("the shape with rules and window, too; a changed file is read again", async () => {
    const path = join(folder, "changing.yaml");
    writeFileSync(path, "rules: [{ do: [{ text: old }] }]\nwindow: 4096\n");
    const one = new ScriptBackend(path);
    expect(await text(one, "hi")).toBe("old");
    expect(await one.models()).toEqual([{ id: "script", window: 4096 }]);
    writeFileSync(path, "rules: [{ do: [{ text: newer }] }]\n");
    expect(await text(one, "hi")).toBe("newer");
  });
});

describe("mistakes name file, line, rule and key", () => {
  test.each([
    [
      "rules:\n  - do:\n      - txt: hi\n",
      "f:3: rule 1, do 1, txt: unknown key; there are text, reasoning, ",
    ],
    ["- do:\n  - text: 3\n", "f:2: rule 1, do 1, text: expected string, received number"],
    [
      "- do: [{text: a}]\n- match: { user: '/(/' }\n  do: [{text: a}]",
      "f:2: rule 2, match, user: Invalid regular expression",
    ],
    ["- do: [{text: a, cut: true}]", "f:1: rule 1, do 1: text and cut are steps of their own"],
    ["- do: [{}]", "f:1: rule 1, do 1: expected one of text, "],
    ["- do:\n  - cut: true\n    chunk: 3", "f:3: rule 1, do 1, chunk: goes with text or reasoning only"],
    [
      "- match:\n    frob: 1\n  do: [{text: a}]",
      "f:2: rule 1, match, frob: unknown key; there are user, tool, ",
    ],
    ["- do:\n  - error: { status: 200, message: x }", "f:2: rule 1, do 1, error, status: "],
    ["rules: [\n  {do: [{text: a}]}\n", "f:3: "],
    ["rules: []", "f:1: rules: "],
    ["", "f: empty; a scenario has a list of rules"],
    ["- match: {}", "f:1: rule 1, do: "],
  ])("%j", (text, message) => {
    expect(() => parseScenario(text, "f")).toThrow(message);
  });

  test("a path between slashes is a text, not an expression", () => {
    const { rules } = parseScenario("- { match: { user: /usr/bin }, do: [{ text: a }] }", "f");
    expect(rules[0]?.match.user).toBe("/usr/bin");
  });

  test("a file that is missing or wrong fails the request, with the reason, and is not asked again", async () => {
    const missing = await play(new ScriptBackend(join(folder, "nosuch.yaml")), ask("hi"));
    expect(missing.error?.message).toMatch(/^cannot read the scenario .*nosuch\.yaml: ENOENT/);
    expect(missing.detail?.retryable).toBe(false);
    const wrong = await play(scenario("- do: 1"), ask("hi"));
    expect(wrong.error?.message).toMatch(/\.yaml:1: rule 1, do: /);
  });
});

describe("the built-in rehearsal", () => {
  const one = new ScriptBackend();

  test("says what it is and how to get a model", async () => {
    const { text, calls, usage } = await play(one, ask("Implement a JSON parser."));
    expect(text).toContain("not a model");
    for (const word of [
      "OLLIE_BACKEND",
      "OLLIE_OPENAI_KEY",
      "OLLIE_OPENAI_URL",
      "OLLIE_OLLAMA_URL",
      "~/.config/ollie/env",
      "`$ ls`",
    ])
      expect(text).toContain(word);
    expect(calls).toEqual([]);
    expect(usage).toMatchObject({ cost: 0 });
    expect(usage).not.toHaveProperty("estimated");
  });

  test("runs the shell lines of a prompt that begins with one", async () => {
    const outcome = await play(one, ask("$ ls -l\nand then\n$ pwd"));
    expect(called(outcome)).toEqual(['shell {"command":"ls -l"}', 'shell {"command":"pwd"}']);
    expect(outcome.finish).toBe("tool-calls");
    expect((await play(one, ask("Look:\n$ ls"))).calls).toEqual([]);
  });

  test("shows that the results came", async () => {
    const outcome = await play(
      one,
      ask(after(result("total 0\nmore"), result("no such file", "shell", false))),
    );
    expect(outcome.text).toContain("2 results");
    expect(outcome.text).toContain("shell answered: total 0");
    expect(outcome.text).toContain("shell failed: no such file");
    expect(outcome).toMatchObject({ calls: [], finish: "stop" });
  });

  test("says so when the agent has no shell", async () => {
    const outcome = await play(one, ask("$ ls", { tools: [] }));
    expect(outcome.text).toContain("has not loaded");
    expect(outcome.calls).toEqual([]);
  });

  test.each([
    ["Review the following code. Reply LGTM if ready, or PTAL with feedback.\n\n$ ls", "LGTM", "PTAL"],
    [
      "Test the following code. Reply Approved if all tests pass, or Rejected with details.",
      "Approved",
      "Rejected",
    ],
  ])("says the word it is asked for: %s", async (prompt, word, other) => {
    const { text } = await play(one, ask(prompt));
    expect(text).toMatch(new RegExp(`^${word}\\n`));
    expect(text).toContain("rehearsal");
    expect(text).not.toContain(other);
  });
});
