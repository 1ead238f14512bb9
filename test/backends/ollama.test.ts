/** The Ollama backend against what `/api/chat` has been seen to send. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Message } from "../../src/backends/backend.ts";
import { OllamaBackend } from "../../src/backends/ollama.ts";
import { ask, called, limits, play } from "./harness.ts";
import { startTorture, type Torture } from "./torture.ts";

let torture: Torture;
beforeAll(async () => {
  torture = await startTorture();
});
afterAll(() => torture.close());

const backend = (scenario: string, more: Partial<ConstructorParameters<typeof OllamaBackend>[0]> = {}) =>
  new OllamaBackend({ url: torture.url(`ollama-${scenario}`), limits, ...more });
const run = (scenario: string) => play(backend(scenario), ask("hi"));
const chats = (scenario: string) =>
  torture.requests(`ollama-${scenario}`).filter((request) => request.path === "/api/chat");
const options = (scenario: string) => chats(scenario).at(-1)!.body.options as Record<string, unknown>;
const never = new AbortController().signal;

describe("a good stream", () => {
  test("gives text as it comes, then usage, then one finish", async () => {
    expect((await run("plain")).events).toEqual([
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "usage", usage: { input: 100, cacheRead: 0, cacheWrite: 0, output: 7 } },
      { type: "finish", reason: "stop" },
    ]);
  });

  test("cut at every byte", async () => {
    expect(await run("bytes")).toMatchObject({ text: "naïve 你好 👍🏽", finish: "stop" });
  });

  test("with blank lines, and no newline at the end", async () => {
    expect(await run("blank")).toMatchObject({ text: "one", finish: "stop" });
  });

  test("thinking is reasoning", async () => {
    expect(await run("thinking")).toMatchObject({ reasoning: "hm", text: "42", finish: "stop" });
  });

  test("length", async () => {
    expect(await run("length")).toMatchObject({ text: "one", finish: "length" });
  });

  test("counts that are left out are guessed, and that is said", async () => {
    const { usage } = await run("nocounts");
    expect(usage).toMatchObject({ output: 7, estimated: true });
    expect(usage?.input).toBeGreaterThan(0);
  });
});

describe("calls", () => {
  test.each([
    ["calls", ['read {"p":1}', 'read {"p":2}']],
    ["stringargs", ['read {"p":1}']],
    ["noargs", ["read {}"]],
  ])("%s: ids are made where none came, and stop means tool calls", async (scenario, calls) => {
    const outcome = await run(scenario);
    expect(called(outcome)).toEqual(calls);
    expect(outcome.finish).toBe("tool-calls");
    if (scenario === "calls") expect(outcome.calls[1]?.id).toBe("call_x");
  });
});

describe("failures", () => {
  test.each([
    ["nodone", "one", /broke off/, { retryable: true }],
    ["rst", "one", /broke/, { retryable: true }],
    ["miderror", "one", /CUDA error/, { retryable: true }],
    ["notjson", "one", /not JSON: <html>/, { retryable: true }],
    ["load", "", /loaded instead of asked/, { retryable: true }],
    ["missing", "", /^ollama: model 'm' not found \(HTTP 404\)$/, { status: 404, retryable: false }],
    ["notools", "", /m does not support tools/, { status: 400, retryable: false }],
    ["textrefusal", "", /upstream is gone \(HTTP 502\)/, { status: 502, retryable: true }],
    ["overflow", "", /exceeds the context length/, { status: 400, overflow: true, retryable: false }],
  ])("%s", async (scenario, text, words, detail) => {
    const outcome = await run(scenario);
    expect(outcome.error?.message).toMatch(words);
    expect(outcome.detail).toMatchObject(detail);
    expect(outcome.text).toBe(text);
    expect(outcome.calls).toEqual([]);
    expect(outcome.finish).toBeUndefined();
  });

  test("nothing listens", async () => {
    const { error, detail } = await play(backend("plain", { url: "http://127.0.0.1:1" }), ask("hi"));
    expect(error?.message).toBe("ollama: cannot reach http://127.0.0.1:1: connection refused");
    expect(detail?.retryable).toBe(true);
  });

  test("blank lines do not hide a stall", async () => {
    const outcome = await play(
      backend("mute", { limits: { connect: 0, first: 10_000, idle: 100 } }),
      ask("hi"),
    );
    expect(outcome.text).toBe("one");
    expect(outcome.error?.message).toBe("ollama: no answer for 0.1 s");
  });

  test("a stop closes the socket", async () => {
    const stop = new AbortController();
    const outcome = await play(backend("mute"), ask("hi"), stop.signal, () => stop.abort());
    expect(outcome.error).toMatchObject({ name: "Fault", kind: "interrupted" });
    while (torture.connections() > 0) await Bun.sleep(5);
  });

  test("nothing is written to the terminal", async () => {
    const script = `
      import { OllamaBackend } from ${JSON.stringify(new URL("../../src/backends/ollama.ts", import.meta.url).pathname)};
      for (const name of ["textrefusal", "notjson", "miderror", "nodone"]) {
        const backend = new OllamaBackend({ url: ${JSON.stringify(torture.url("ollama-"))} + name, limits: ${JSON.stringify(limits)} });
        const request = { model: "m", system: "", messages: [], tools: [], params: {} };
        try { for await (const event of backend.stream(request, new AbortController().signal)); } catch {}
      }`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
    const printed = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    expect(printed).toEqual(["", "", 0]);
  });
});

describe("the request", () => {
  const history: Message[] = [
    { role: "user", text: "hi" },
    { role: "assistant", text: "", reasoning: "old", calls: [{ id: "z", name: "list", args: "{}" }] },
    { role: "tool", id: "z", name: "list", ok: true, text: "none" },
    { role: "assistant", text: "none", calls: [] },
    { role: "user", text: "go on" },
    {
      role: "assistant",
      text: "",
      reasoning: "new",
      calls: [
        { id: "a", name: "read", args: '{"p":1}' },
        { id: "b", name: "read", args: "{oops" },
      ],
    },
    { role: "tool", id: "a", name: "read", ok: true, text: "eins" },
    { role: "tool", id: "b", name: "read", ok: false, text: "no JSON" },
  ];

  test("has arguments as objects, results by name and id, and an error instead of silent loss", async () => {
    expect(await play(backend("strict"), ask(history))).toMatchObject({ text: "ok" });
    const { body } = chats("strict").at(-1)!;
    expect(body).toMatchObject({ model: "m", stream: true, truncate: false, shift: false });
    expect(body).not.toHaveProperty("think");
    expect(body.options).toEqual({ num_ctx: 32768 });
    expect<unknown>(body.messages.slice(5)).toEqual([
      { role: "user", content: "go on" },
      {
        role: "assistant",
        content: "",
        thinking: "new",
        tool_calls: [
          { id: "a", function: { name: "read", arguments: { p: 1 } } },
          { id: "b", function: { name: "read", arguments: { invalid: "{oops" } } },
        ],
      },
      { role: "tool", content: "eins", tool_name: "read", tool_call_id: "a" },
      { role: "tool", content: "no JSON", tool_name: "read", tool_call_id: "b" },
    ]);
    expect(body.messages[2]).not.toHaveProperty("thinking");
  });

  test("has the generation parameters under the wire's names", async () => {
    const params = {
      temperature: 0,
      maxTokens: 9,
      repetitionPenalty: 1.1,
      topK: 5,
      reasoningEffort: "high",
      responseFormat: "json",
    };
    await play(backend("plain"), ask("hi", { params }));
    expect(chats("plain").at(-1)?.body).toMatchObject({ think: "high", format: "json" });
    expect(options("plain")).toMatchObject({ temperature: 0, num_predict: 9, repeat_penalty: 1.1, top_k: 5 });
  });

  test("asks a model to think only if it can", async () => {
    await play(backend("plain"), ask("hi", { params: { reasoning: true } }));
    expect(chats("plain").at(-1)?.body.think).toBe(true);
    await play(backend("small"), ask("hi", { params: { reasoning: true } }));
    expect(chats("small").at(-1)?.body).not.toHaveProperty("think");
  });

  test("has the key, where there is one", async () => {
    await play(backend("plain", { key: "sekret" }), ask("hi"));
    expect(chats("plain").at(-1)?.headers.get("authorization")).toBe("Bearer sekret");
  });

  test("goes to the native wire even if the URL names the other one", async () => {
    const url = `${torture.url("ollama-plain")}/v1/`;
    expect(await play(backend("plain", { url }), ask("hi"))).toMatchObject({ text: "Hello" });
  });

  test("is not sent without a model", async () => {
    expect((await play(backend("plain"), ask("hi", { model: "" }))).error?.message).toContain("OLLIE_MODEL");
  });
});

describe("the window that is sent is the one that is told", () => {
  test.each([
    ["plain", undefined, 32768],
    ["small", undefined, 2048],
    ["modelfile", undefined, 16384],
    ["loaded", undefined, 40960],
    ["old", undefined, 32768],
    ["plain", 8192, 8192],
    ["plain", 1_000_000, 40960],
    ["old", 8192, 8192],
  ])("%s, wished: %p", async (scenario, window, sent) => {
    const one = backend(scenario, { window });
    expect(await one.window("m", never)).toBe(sent);
    await play(one, ask("hi"));
    expect(options(scenario).num_ctx).toBe(sent);
  });

  test("is asked for once", async () => {
    const asked = () =>
      torture.requests("ollama-length").filter((request) => request.path === "/api/show").length;
    const before = asked();
    const one = backend("length");
    await Promise.all([one.window("m", never), one.window("m", never)]);
    await play(one, ask("hi"));
    await play(one, ask("hi"));
    expect(asked() - before).toBe(1);
  });
});

test("models", async () => {
  expect(await backend("plain").models(never)).toEqual([{ id: "qwen3:8b" }, { id: "tiny" }]);
  await expect(backend("plain", { url: "http://127.0.0.1:1" }).models(never)).rejects.toThrow(/cannot reach/);
});
