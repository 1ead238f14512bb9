/** What the OpenAI-compatible backend sends, what it learns from refusals, and how it stops. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Message } from "../../src/backends/backend.ts";
import { OpenAIBackend } from "../../src/backends/openai.ts";
import { baseUrl } from "../../src/backends/openai-request.ts";
import { Fault } from "../../src/fault.ts";
import { ask, limits, play } from "./harness.ts";
import { startTorture, type Torture } from "./torture.ts";

let torture: Torture;
beforeAll(async () => {
  torture = await startTorture();
});
afterAll(() => torture.close());

const backend = (scenario: string, more: Partial<ConstructorParameters<typeof OpenAIBackend>[0]> = {}) =>
  new OpenAIBackend({ name: "openai", url: torture.url(scenario), key: "sekret", limits, ...more });
const last = (scenario: string) => torture.requests(scenario).at(-1)!;

const rounds: Message[] = [
  { role: "user", text: "hi" },
  {
    role: "assistant",
    text: "",
    reasoning: "hm",
    calls: [
      { id: "a", name: "read", args: '{ "p": 1 }' },
      { id: "b", name: "read", args: '{"p": /et' },
    ],
  },
  { role: "tool", id: "a", name: "read", ok: true, text: "eins" },
  { role: "tool", id: "b", name: "read", ok: false, text: "no JSON" },
  { role: "assistant", text: "", calls: [] },
  { role: "user", text: "go on" },
];

describe("the request", () => {
  test("has the history in OpenAI's form, and nothing that was not set", async () => {
    await play(backend("plain"), ask(rounds));
    const { path, headers, body } = last("plain");
    expect(path).toBe("/v1/chat/completions");
    expect(headers.get("authorization")).toBe("Bearer sekret");
    expect<unknown>(body.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "a", type: "function", function: { name: "read", arguments: '{ "p": 1 }' } },
          { id: "b", type: "function", function: { name: "read", arguments: '{"invalid":"{\\"p\\": /et"}' } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "eins" },
      { role: "tool", tool_call_id: "b", content: "no JSON" },
      { role: "user", content: "go on" },
    ]);
    expect(Object.keys(body).sort()).toEqual(["messages", "model", "stream", "stream_options", "tools"]);
    expect(body.stream_options).toEqual({ include_usage: true });
    expect((body.tools as unknown[])[0]).toEqual({
      type: "function",
      function: {
        name: "read",
        description: "The tool read.",
        parameters: { type: "object", properties: {} },
      },
    });
  });

  test("has no tools where there are none, and no authorization without a key", async () => {
    await play(backend("plain", { key: undefined }), ask("hi", { tools: [], system: "" }));
    const { headers, body } = last("plain");
    expect(body).not.toHaveProperty("tools");
    expect(body.messages).toEqual([{ role: "user", content: "hi" }]);
    expect(headers.get("authorization")).toBeNull();
  });

  test("has the generation parameters under the wire's names", async () => {
    const params = {
      temperature: 0.2,
      topP: 0.9,
      topK: 40,
      minP: 0.05,
      maxTokens: 99,
      frequencyPenalty: 0.1,
      presencePenalty: 0.3,
      repetitionPenalty: 1.1,
      reasoningEffort: "high",
      stop: ["END"],
      seed: 7,
      responseFormat: "json",
    };
    await play(backend("plain"), ask("hi", { params }));
    expect(last("plain").body).toMatchObject({
      temperature: 0.2,
      top_p: 0.9,
      top_k: 40,
      min_p: 0.05,
      max_tokens: 99,
      frequency_penalty: 0.1,
      presence_penalty: 0.3,
      repetition_penalty: 1.1,
      reasoning_effort: "high",
      stop: ["END"],
      seed: 7,
      response_format: { type: "json_object" },
    });
    await play(backend("plain"), ask("hi", { model: "gpt-5-mini", params: { maxTokens: 99 } }));
    expect(last("plain").body).toMatchObject({ max_completion_tokens: 99 });
    expect(last("plain").body).not.toHaveProperty("max_tokens");
  });

  test("speaks OpenRouter's dialect to OpenRouter", async () => {
    await play(backend("plain", { name: "openrouter" }), ask("hi", { params: { reasoningEffort: "low" } }));
    expect(last("plain").body.reasoning).toEqual({ effort: "low" });
    expect(last("plain").headers.get("x-title")).toBe("ollie");
  });

  test("is not sent without a model, or with a response format that is none", async () => {
    const before = torture.requests().length;
    expect((await play(backend("plain"), ask("hi", { model: "" }))).error?.message).toContain("OLLIE_MODEL");
    const odd = await play(backend("plain"), ask("hi", { params: { responseFormat: "xml" } }));
    expect(odd.error?.message).toContain('neither "json"');
    expect(torture.requests().length).toBe(before);
  });

  test.each([
    ["http://h", "http://h/v1"],
    ["http://h/", "http://h/v1"],
    ["http://h/v1", "http://h/v1"],
    ["http://h/v1//", "http://h/v1"],
    ["http://h/v1/chat/completions", "http://h/v1"],
    ["https://openrouter.ai/api", "https://openrouter.ai/api/v1"],
    ["https://h/v1beta/openai/", "https://h/v1beta/openai"],
    ["127.0.0.1:8080", "http://127.0.0.1:8080/v1"],
  ])("base URL %s", (given, base) => {
    expect(baseUrl(given, "openai")).toBe(base);
  });

  test("a URL that is none is refused with an example of a right one", () => {
    expect(() => baseUrl("ftp://h", "openai")).toThrow(/"ftp:\/\/h" is no URL; one looks like/);
  });
});

describe("a refused part of the request is left out, once and for good", () => {
  test.each([
    ["nostreamoptions", {}, "stream_options", undefined],
    ["newlimit", { maxTokens: 50 }, "max_tokens", "max_completion_tokens"],
    ["notemperature", { temperature: 0.2 }, "temperature", undefined],
  ])("%s", async (scenario, params, gone, instead) => {
    const one = backend(scenario);
    expect(await play(one, ask("hi", { params }))).toMatchObject({ text: "ok", finish: "stop" });
    expect(await play(one, ask("again", { params }))).toMatchObject({ text: "ok", finish: "stop" });
    const bodies = torture.requests(scenario).map((request) => request.body);
    expect(bodies.map((body) => gone in body)).toEqual([true, false, false]);
    if (instead) expect(bodies[2]).toHaveProperty(instead, 50);
  });

  test("reasoning goes back to models that want it back", async () => {
    expect(await play(backend("wantsreasoning"), ask(rounds))).toMatchObject({ text: "ok" });
    expect(last("wantsreasoning").body.messages[2]?.reasoning_content).toBe("hm");
  });

  test("a server that refuses everything is not asked for ever", async () => {
    const outcome = await play(backend("stubborn"), ask("hi", { params: { maxTokens: 5 } }));
    expect(outcome.error?.message).toContain("both unsupported");
    expect(torture.requests("stubborn").length).toBeLessThan(8);
  });
});

describe("silence and stop", () => {
  const hasty = { connect: 0, first: 10_000, idle: 100 };

  test("a stalled stream ends although comments keep coming, and what had come stays", async () => {
    const outcome = await play(backend("stall", { limits: hasty }), ask("hi"));
    expect(outcome.text).toBe("one");
    expect(outcome.error?.message).toBe("openai: no answer for 0.1 s");
    expect(outcome.detail?.retryable).toBe(true);
  });

  test("a server that never answers", async () => {
    const outcome = await play(backend("mute", { limits: { ...hasty, first: 200 } }), ask("hi"));
    expect(outcome.error?.message).toBe("openai: no answer for 0.2 s");
  });

  test("a slow stream is not a stalled one", async () => {
    const outcome = await play(
      backend("slow", { limits: { connect: 0, first: 10_000, idle: 1000 } }),
      ask("hi"),
    );
    expect(outcome).toMatchObject({ text: "one two three", finish: "stop" });
  });

  test.each(["mute", "hang", "stall"])("a stop closes the socket: %s", async (scenario) => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    const outcome = await play(backend(scenario), ask("hi"), stop.signal);
    expect(outcome.error).toMatchObject({ name: "Fault", kind: "interrupted" });
    await closed();
  });

  test("a stop that came before the request", async () => {
    const before = torture.requests("plain").length;
    const outcome = await play(backend("plain"), ask("hi"), AbortSignal.abort());
    expect(outcome.error).toMatchObject({ kind: "interrupted" });
    expect(outcome.events).toEqual([]);
    expect(torture.requests("plain").length).toBe(before);
  });

  test("a reader that goes away closes the socket", async () => {
    for await (const event of backend("hang").stream(ask("hi"), new AbortController().signal)) {
      expect(event).toEqual({ type: "text", text: "one" });
      break;
    }
    await closed();
  });

  test("a server that leaves the connection open after its end is left", async () => {
    await play(backend("openend"), ask("hi"));
    await closed();
  });

  test("a broken connection is not repeated behind the caller's back", async () => {
    await play(backend("refused"), ask("hi"));
    expect(torture.requests("refused")).toHaveLength(1);
  });

  /** Waits until the server sees no connection; the test's own time limit is the bound. */
  async function closed(): Promise<void> {
    while (torture.connections() > 0) await Bun.sleep(5);
  }
});

describe("models", () => {
  test("their ids and windows, each server's name for it", async () => {
    const never = new AbortController().signal;
    const one = backend("models");
    expect(await one.models(never)).toEqual([
      { id: "plain" },
      { id: "router", window: 131072 },
      { id: "vllm", window: 32768 },
      { id: "llama", window: 4096 },
    ]);
    expect(await one.window("vllm", never)).toBe(32768);
    expect(await one.window("plain", never)).toBeUndefined();
    expect(await one.window("nosuch", never)).toBeUndefined();
    // One list for all questions about windows.
    expect(torture.requests("models")).toHaveLength(2);
  });

  test("a refused list says why; a window that cannot be had is unknown", async () => {
    const never = new AbortController().signal;
    await expect(backend("s401").models(never)).rejects.toThrow(Fault);
    await expect(backend("s401").models(never)).rejects.toThrow(/Incorrect API key/);
    await expect(backend("ok200html").models(never)).rejects.toThrow(/is the URL right/);
    expect(await backend("s401").window("m", never)).toBeUndefined();
  });
});
