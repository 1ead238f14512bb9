import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Message } from "../../src/backends/backend.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { HistoryBuilder, partialMark } from "../../src/store/history.ts";
import type { JournalRecord, NewRecord } from "../../src/store/records.ts";
import { Agents, invalidity } from "./helper.ts";

const call = (id: string) => ({ id, name: "shell", args: "{}" });
const result = (id: string, text = `result ${id}`): NewRecord => ({
  t: "result",
  id,
  name: "shell",
  ok: true,
  text,
  how: "done",
});
const asks = (text: string, ...ids: string[]): NewRecord => ({ t: "assistant", text, calls: ids.map(call) });

async function agentWith(...records: NewRecord[]): Promise<AgentStore> {
  const agent = await new Agents().create();
  agent.append({ t: "prompt", id: "p", text: "do it", how: "prompt" });
  agent.beginTurn("t", "p");
  for (const record of records) agent.append(record);
  return agent;
}

function brief(messages: Message[]): string[] {
  return messages.map((message) => {
    if (message.role === "user") return `user ${message.text}`;
    if (message.role === "tool") return `tool ${message.id} ${message.ok} ${message.text}`;
    return `assistant ${message.text} ${message.calls.map(({ id }) => id).join(",")}`.trim();
  });
}

test("a turn with calls: results follow in the order of the calls, whatever order they came in", async () => {
  const agent = await agentWith(
    asks("let me see", "a", "b"),
    { t: "call", id: "a" },
    { t: "call", id: "b" },
    result("b"),
    result("a"),
    asks("done"),
    { t: "end", turn: "t", how: "done" },
  );
  const history = await agent.history();
  expect(brief(history)).toEqual([
    "user do it",
    "assistant let me see a,b",
    "tool a true result a",
    "tool b true result b",
    "assistant done",
  ]);
  expect(invalidity(history)).toBeUndefined();
});

test("reasoning and what the provider wants back are kept", async () => {
  const opaque = { backend: "b", model: "m", data: { signature: "s" } };
  const agent = await agentWith({ t: "assistant", text: "x", reasoning: "hm", calls: [], opaque });
  expect((await agent.history())[1]).toEqual({
    role: "assistant",
    text: "x",
    reasoning: "hm",
    calls: [],
    opaque,
  });
});

test("calls without a result get one that says whether they had begun", async () => {
  const agent = await agentWith(
    asks("", "a", "b", "c"),
    { t: "call", id: "a" },
    { t: "call", id: "b" },
    result("b"),
    {
      t: "end",
      turn: "t",
      how: "interrupted",
    },
  );
  agent.append({ t: "prompt", id: "q", text: "go on", how: "prompt" });
  agent.beginTurn("t2", "q");
  const history = await agent.history();
  expect(brief(history)).toEqual([
    "user do it",
    "assistant  a,b,c",
    expect.stringMatching(/^tool a false .*interrupted before it finished/),
    "tool b true result b",
    expect.stringMatching(/^tool c false .*never ran/),
    "user go on",
  ]);
  expect(invalidity(history)).toBeUndefined();
});

test("orphan results, second results and second calls of one id are dropped", async () => {
  const agent = await agentWith(
    result("ghost"),
    asks("", "a", "a"),
    result("a"),
    result("a", "again"),
    asks("next"),
    result("a", "late"),
  );
  expect(brief(await agent.history())).toEqual([
    "user do it",
    "assistant  a",
    "tool a true result a",
    "assistant next",
  ]);
});

test("a partial answer is marked as cut and brings no calls; one without text is left out", async () => {
  const agent = await agentWith(
    { t: "assistant", text: "half an ans", calls: [call("x")], partial: true },
    { t: "assistant", text: "", reasoning: "hm", calls: [], partial: true },
    asks(""),
    asks("whole"),
  );
  expect(await agent.history()).toEqual([
    { role: "user", text: "do it" },
    { role: "assistant", text: `half an ans\n${partialMark}`, calls: [] },
    { role: "assistant", text: "whole", calls: [] },
  ]);
});

test("injects and notes come after the results of the round they fell into", async () => {
  const agent = await agentWith(
    { t: "prompt", id: "i", text: "and that too", how: "inject" },
    asks("", "a"),
    { t: "inject", prompt: "i" },
    { t: "note", text: "careful" },
    result("a"),
    asks("ok"),
  );
  expect(brief(await agent.history())).toEqual([
    "user do it",
    "assistant  a",
    "tool a true result a",
    "user and that too",
    "user careful",
    "assistant ok",
  ]);
});

test("after clear the history is empty, and texts that waited then still come with their words", async () => {
  const agent = await agentWith(asks("old"), { t: "end", turn: "t", how: "done" });
  agent.append({ t: "prompt", id: "q1", text: "waited", how: "queue" });
  agent.append({ t: "clear" });
  expect(await agent.history()).toEqual([]);
  agent.append({ t: "clear" });
  agent.beginTurn("t2", "q1");
  expect(brief(await agent.history())).toEqual(["user waited"]);
});

describe("whatever the journal holds", () => {
  const id = fc.constantFrom("a", "b", "c", "d");
  const text = fc.constantFrom("", "x", "y");
  const calls = fc.array(
    id.map((one) => call(one)),
    { maxLength: 4 },
  );
  const at = fc.constant(1);
  const record = fc.oneof(
    fc.record({ t: fc.constant("prompt"), at, id, text, how: fc.constantFrom("prompt", "queue", "inject") }),
    fc.record({ t: fc.constant("dequeue"), at, id }),
    fc.record({ t: fc.constant("turn"), at, id, prompt: id, chatAt: at, offset: at }),
    fc.record({ t: fc.constant("inject"), at, prompt: id }),
    fc.record({ t: fc.constant("note"), at, text }),
    fc.record({ t: fc.constant("assistant"), at, text, calls, partial: fc.boolean() }),
    fc.record({ t: fc.constant("call"), at, id }),
    fc.record({
      t: fc.constant("result"),
      at,
      id,
      name: text,
      ok: fc.boolean(),
      text,
      how: fc.constant("done"),
    }),
    fc.record({ t: fc.constant("end"), at, turn: id, how: fc.constant("done") }),
    fc.record({ t: fc.constant("clear"), at }),
  ) as fc.Arbitrary<JournalRecord>;

  test("a provider accepts the history", () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 40 }), (records) => {
        const builder = new HistoryBuilder();
        for (const one of records) builder.add(one);
        expect(invalidity(builder.finish())).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });
});
