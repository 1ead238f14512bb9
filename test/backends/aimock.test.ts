/** The backends against a mock server that this project did not write: `@copilotkit/aimock`, in this process, on the real wires. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { LLMock } from "@copilotkit/aimock";
import type { Backend } from "../../src/backends/backend.ts";
import { OllamaBackend } from "../../src/backends/ollama.ts";
import { OpenAIBackend } from "../../src/backends/openai.ts";
import { ask, called, limits, type Outcome, play } from "./harness.ts";

const mock = new LLMock({ host: "127.0.0.1", port: 0, logLevel: "silent", strict: true });

beforeAll(async () => {
  mock.addFixturesFromJSON([
    { match: { userMessage: "say hello" }, response: { content: "naïve café ☕ 你好" }, chunkSize: 5 },
    {
      match: { userMessage: "think first", model: "deepseek-r1" },
      response: { content: "42", reasoning: "step by step" },
    },
    {
      match: { userMessage: "one tool", hasToolResult: false },
      response: {
        content: "Checking.",
        toolCalls: [{ id: "call_abc", name: "read", arguments: '{"path":"/etc/hosts"}' }],
      },
      chunkSize: 7,
    },
    {
      match: { userMessage: "one tool", toolResultContains: "localhost" },
      response: { content: "It names localhost." },
    },
    {
      match: { userMessage: "two tools" },
      response: {
        toolCalls: [
          { id: "call_1", name: "read", arguments: '{"path":"a"}' },
          { id: "call_2", name: "list", arguments: "{}" },
        ],
      },
    },
    {
      match: { userMessage: "flaky once", sequenceIndex: 0 },
      response: {
        error: { message: "Rate limit reached", type: "rate_limit_error" },
        status: 429,
        retryAfter: 1,
      },
    },
    { match: { userMessage: "flaky once" }, response: { content: "recovered" } },
    {
      match: { userMessage: "overload" },
      response: { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 },
    },
    {
      match: { userMessage: "cut me" },
      response: { content: "This stream will be cut off" },
      chunkSize: 6,
      latency: 20,
      truncateAfterChunks: 4,
    },
    {
      match: { userMessage: "drop me" },
      response: { content: "slow words that never end" },
      chunkSize: 4,
      latency: 60,
      disconnectAfterMs: 250,
    },
    {
      match: { userMessage: "costly" },
      response: {
        content: "paid",
        usage: {
          prompt_tokens: 100,
          completion_tokens: 20,
          total_tokens: 120,
          cost: 0.00123,
          prompt_tokens_details: { cached_tokens: 80 },
        },
      },
    },
  ]);
  await mock.start();
});
afterAll(() => mock.stop());

const openai = () => new OpenAIBackend({ name: "openai", url: mock.url, key: "mock", limits });
const openrouter = () =>
  new OpenAIBackend({ name: "openrouter", url: `${mock.url}/api`, key: "mock", limits });
const ollama = () => new OllamaBackend({ url: mock.url, limits });

/** Asks, runs nothing, gives a result for every call, and asks again. */
async function withResults(backend: Backend, prompt: string, text: string): Promise<Outcome> {
  const first = await play(backend, ask(prompt));
  const results = first.calls.map(({ id, name }) => ({ role: "tool" as const, id, name, ok: true, text }));
  const assistant = { role: "assistant" as const, text: first.text, calls: first.calls };
  return play(backend, ask([{ role: "user", text: prompt }, assistant, ...results]));
}

const wires: [string, () => Backend][] = [
  ["openai", openai],
  ["openrouter", openrouter],
  ["ollama", ollama],
];

describe.each(wires)("%s", (_name, make) => {
  test("text in pieces", async () => {
    const outcome = await play(make(), ask("say hello"));
    expect(outcome).toMatchObject({ text: "naïve café ☕ 你好", finish: "stop" });
    expect(outcome.events.filter((event) => event.type === "text").length).toBeGreaterThan(1);
  });

  test("a call, its result, and the answer", async () => {
    const outcome = await play(make(), ask("one tool"));
    expect(outcome.text).toBe("Checking.");
    expect(called(outcome)).toEqual(['read {"path":"/etc/hosts"}']);
    expect(outcome.finish).toBe("tool-calls");
    expect(await withResults(make(), "one tool", "127.0.0.1 localhost")).toMatchObject({
      text: "It names localhost.",
    });
  });

  test("two calls at once, in their order", async () => {
    expect(called(await play(make(), ask("two tools")))).toEqual(['read {"path":"a"}', "list {}"]);
  });

  test("a refusal may be repeated", async () => {
    const outcome = await play(make(), ask("overload"));
    expect(outcome.error?.message).toContain("Overloaded");
    expect(outcome.detail).toMatchObject({ status: 529, retryable: true });
  });

  test.each(["cut me", "drop me"])("a broken stream is no answer: %s", async (prompt) => {
    const outcome = await play(make(), ask(prompt));
    expect(outcome.text).not.toBe("");
    expect(outcome.finish).toBeUndefined();
    expect(outcome.detail?.retryable).toBe(true);
  });

  test("a prompt that has no answer is told", async () => {
    const outcome = await play(make(), ask("something else"));
    expect(outcome.error).toBeDefined();
    expect(outcome.events).toEqual([]);
  });
});

test("reasoning", async () => {
  expect(await play(openai(), ask("think first", { model: "deepseek-r1" }))).toMatchObject({
    reasoning: "step by step",
    text: "42",
  });
});

test("a rate limit passes, and says when", async () => {
  expect((await play(openai(), ask("flaky once"))).detail).toMatchObject({
    status: 429,
    retryable: true,
    retryAfter: 1000,
  });
  expect(await play(openai(), ask("flaky once"))).toMatchObject({ text: "recovered" });
});

test("what OpenRouter charged", async () => {
  expect((await play(openrouter(), ask("costly"))).usage).toEqual({
    input: 20,
    cacheRead: 80,
    cacheWrite: 0,
    output: 20,
    cost: 0.00123,
  });
});

test("lists of models", async () => {
  const never = new AbortController().signal;
  for (const [, make] of wires) expect((await make().models(never)).length).toBeGreaterThan(0);
});
