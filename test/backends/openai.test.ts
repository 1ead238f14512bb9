/** The OpenAI-compatible backend against streams that real servers have sent. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OpenAIBackend } from "../../src/backends/openai.ts";
import { ask, called, limits, play } from "./harness.ts";
import { startTorture, type Torture } from "./torture.ts";

let torture: Torture;
beforeAll(async () => {
  torture = await startTorture();
});
afterAll(() => torture.close());

const backend = (scenario: string, more: Partial<ConstructorParameters<typeof OpenAIBackend>[0]> = {}) =>
  new OpenAIBackend({ name: "openai", url: torture.url(scenario), key: "sekret", limits, ...more });
const run = (scenario: string) => play(backend(scenario), ask("hi"));

describe("a good stream", () => {
  test("gives text as it comes, then usage, then one finish", async () => {
    const { events } = await run("plain");
    expect(events).toEqual([
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "usage", usage: { input: 100, cacheRead: 0, cacheWrite: 0, output: 7 } },
      { type: "finish", reason: "stop" },
    ]);
  });

  test.each([
    ["utf8", "naïve 你好 👍🏽"],
    ["crlf", "one two"],
    ["cr", "one two"],
    ["nospace", "one"],
    ["comments", "one two"],
    ["multiline", "one"],
    ["nodone", "one"],
    ["noblank", "one"],
    ["nulls", "one"],
    ["rstafterend", "one"],
    ["openend", "one"],
    ["openend2", "one"],
    ["finishodd", "one"],
  ])("%s is read whole", async (scenario, text) => {
    const outcome = await run(scenario);
    expect(outcome.error).toBeUndefined();
    expect(outcome.text).toBe(text);
    expect(outcome.finish).toBe("stop");
  });
});

describe("a stream without a trustworthy end fails, may be repeated, and runs no call", () => {
  test.each([
    ["nofinish", "one", /broke off/],
    ["doneonly", "one", /broke off/],
    ["cuttool", "", /broke off/],
    ["cutbig", "", /broke off/],
    ["rst", "one", /broke/],
    ["rstchunked", "one", /the connection broke/],
    ["rsttool", "", /broke/],
    ["notjson", "one", /not JSON: <oops>/],
    ["finisherror", "one", /"error"/],
    ["errorafterend", "one", /Gone \(HTTP 503\)/],
    ["emptyfinish", "", /broke off/],
    ["finishoddtool", "", /"whatever"/],
    ["emptytoolend", "", /announced tool calls/],
    ["stray", "", /belong to none/],
    ["noname", "", /name/],
    ["miderror", "one", /Provider disconnected \(HTTP 502\)/],
    ["miderrorvllm", "one", /Internal trouble/],
    ["miderrorevent", "one", /Upstream is gone/],
    ["textcallcut", '{"name": "read", "arguments": {}}', /broke off/],
  ])("%s", async (scenario, text, words) => {
    const outcome = await run(scenario);
    expect(outcome.error?.message).toMatch(words);
    expect(outcome.detail?.retryable).toBe(true);
    expect(outcome.calls).toEqual([]);
    expect(outcome.finish).toBeUndefined();
    // What had arrived is not lost.
    expect(outcome.text).toBe(scenario === "emptytoolend" ? "one" : text);
  });

  test("an error inside a stream that asking again will not mend is not repeated", async () => {
    const outcome = await run("miderror400");
    expect(outcome.text).toBe("one");
    expect(outcome.error?.message).toContain("Bad schema");
    expect(outcome.detail).toMatchObject({ status: 400, retryable: false });
  });
});

describe("ends that are not stop", () => {
  test("length", async () => {
    expect(await run("length")).toMatchObject({ text: "one", finish: "length" });
  });

  test("a call that was cut off at the token limit keeps the reason, so that it is not run", async () => {
    const outcome = await run("lengthtool");
    expect(outcome.finish).toBe("length");
    expect(called(outcome)).toEqual(['write {"p":"/et']);
  });

  test("content filter and refusal", async () => {
    expect(await run("filter")).toMatchObject({ text: "one", finish: "filter" });
    expect(await run("refusal")).toMatchObject({ text: "I will not.", finish: "filter" });
  });
});

describe("calls", () => {
  test("are put together from fragments and come after all text, before the finish", async () => {
    const { events } = await run("calls");
    expect(events).toEqual([
      { type: "text", text: "Looking." },
      { type: "usage", usage: { input: 100, cacheRead: 0, cacheWrite: 0, output: 7 } },
      { type: "call", call: { id: "call_a", name: "read", args: '{"p":"/x"}' } },
      { type: "call", call: { id: "call_b", name: "list", args: "{}" } },
      { type: "finish", reason: "tool-calls" },
    ]);
  });

  test.each([
    ["noindex", ['read {"p":1}', 'read {"p":2}']],
    ["gapindex", ['read {"p":1}', 'read {"p":2}']],
    ["sameindex", ['read {"p":1}', 'read {"p":2}']],
    ["sameindexsplit", ['read {"p":1}', 'read {"p":2}']],
    ["dupid", ['read {"p":1}', 'read {"p":2}']],
    ["emptyid", ['read {"p":1}']],
    ["missingid", ['read {"p":1}', 'read {"p":2}']],
    ["emptyargs", ["read {}"]],
    ["nullargs", ["read {}"]],
    ["objargs", ['read {"p":"/x"}']],
    ["finishstop", ["read {}"]],
    ["functioncall", ['read {"p":1}']],
    ["textcall", ['read {"p":1}']],
    ["textcalltags", ['read {"p":1}', 'read {"p":2}']],
    ["textcallfence", ["read {}"]],
  ])("%s", async (scenario, calls) => {
    const outcome = await run(scenario);
    expect(outcome.error).toBeUndefined();
    expect(called(outcome)).toEqual(calls);
    expect(outcome.finish).toBe("tool-calls");
    expect(outcome.text).toBe("");
  });

  test.each([
    ["textquote", '{"name": "read", "arguments": {}} is how a call looks.'],
    ["textunknown", '{"name": "nosuch", "arguments": {}}'],
    ["textcode", "```sh\nls\n```\n"],
  ])("%s: text that only looks like a call stays text", async (scenario, text) => {
    expect(await run(scenario)).toMatchObject({ text, calls: [], finish: "stop" });
  });

  test("an id that an earlier round has used is replaced", async () => {
    const history = ask([
      { role: "user", text: "hi" },
      { role: "assistant", text: "", calls: [{ id: "call_0", name: "read", args: "{}" }] },
      { role: "tool", id: "call_0", name: "read", ok: true, text: "x" },
    ]);
    const { calls } = await play(backend("dupid"), history);
    expect(calls).toHaveLength(2);
    expect(new Set([...calls.map((call) => call.id), "call_0"]).size).toBe(3);
  });
});

describe("reasoning", () => {
  test.each(["reasoning_content", "reasoning"])("%s", async (scenario) => {
    expect(await run(scenario)).toMatchObject({ reasoning: "hm", text: "42", finish: "stop" });
  });

  test("reasoning_details are shown, kept, and sent back to the model that wrote them only", async () => {
    const outcome = await run("reasoning_details");
    const details = [
      { type: "reasoning.text", index: 0, text: "hm", signature: "c2ln" },
      { type: "reasoning.encrypted", index: 1, data: "eA==" },
    ];
    expect(outcome.reasoning).toBe("hm");
    expect(outcome.opaque).toEqual({ backend: "openai", model: "m", data: { reasoning_details: details } });
    const history = ask([
      { role: "user", text: "hi" },
      { role: "assistant", text: "", calls: outcome.calls, opaque: outcome.opaque },
      { role: "tool", id: "a", name: "read", ok: true, text: "x" },
    ]);
    await play(backend("plain"), history);
    await play(backend("plain"), { ...history, model: "other" });
    const [same, other] = torture.requests("plain").slice(-2);
    expect(same?.body.messages[2]?.reasoning_details).toEqual(details);
    expect(other?.body.messages[2]).not.toHaveProperty("reasoning_details");
  });
});

describe("usage", () => {
  test.each(["usageempty", "usagenochoices"])("%s", async (scenario) => {
    const outcome = await run(scenario);
    expect(outcome.usage).toEqual({ input: 100, cacheRead: 0, cacheWrite: 0, output: 7 });
    expect(outcome.text).toBe("one");
  });

  test("cached tokens are not counted twice, and the provider's price is kept", async () => {
    expect((await run("buckets")).usage).toEqual({
      input: 2000,
      cacheRead: 10880,
      cacheWrite: 49,
      output: 29,
      reasoning: 9,
      cost: 0.00123,
    });
  });

  test("reasoning that is counted beside the completion belongs to the output", async () => {
    expect((await run("xai")).usage).toMatchObject({ output: 27, reasoning: 20 });
  });

  test("a server that does not count is guessed at, and that is said", async () => {
    const { usage } = await run("nousage");
    expect(usage?.estimated).toBe(true);
    expect(usage?.input).toBeGreaterThan(0);
    expect(usage?.output).toBeGreaterThan(0);
  });
});

describe("refusals are told in the provider's words", () => {
  test.each([
    ["ok200err", /^openai: Insufficient credits \(HTTP 402\)$/, { status: 402, retryable: false }],
    ["ok200overloaded", /Overloaded/, { status: 529, retryable: true }],
    ["ok200html", /text\/html instead of a stream: is the URL right\?/, { retryable: false }],
    ["ok200json", /instead of a stream/, { retryable: false }],
    ["s400", /^openai: Unknown tool choice \(HTTP 400\)$/, { status: 400, retryable: false }],
    ["s400empty", /bad request \(HTTP 400\)/, { status: 400, retryable: false }],
    ["s402", /Insufficient credits/, { status: 402, retryable: false }],
    ["s404", /The model `m` does not exist/, { status: 404, retryable: false }],
    ["s429ms", /Rate limit reached/, { status: 429, retryable: true, retryAfter: 1500 }],
    ["s429s", /Rate limit reached/, { status: 429, retryable: true, retryAfter: 3000 }],
    ["s429quota", /You exceeded your current quota/, { status: 429, retryable: false }],
    ["s500no", /Broken for good/, { status: 500, retryable: false }],
    ["s409yes", /Once more/, { status: 418, retryable: true }],
    ["s502html", /502 Bad Gateway/, { status: 502, retryable: true }],
    ["s529", /Overloaded/, { status: 529, retryable: true }],
    ["overflow", /maximum context length is 8192/, { status: 400, retryable: false, overflow: true }],
    ["overflowllama", /available context size/, { status: 400, retryable: false, overflow: true }],
    ["detail", /field required/, { status: 422, retryable: false }],
    ["upstream", /Provider returned error: the GPU is on fire/, { status: 503, retryable: true }],
    ["nosuchscenario", /not found: is the URL right\?/, { status: 404, retryable: false }],
    ["refused", /cannot reach http:\/\/127\.0\.0\.1:\d+: the connection was closed/, { retryable: true }],
  ])("%s", async (scenario, words, detail) => {
    const outcome = await run(scenario);
    expect(outcome.error?.message).toMatch(words);
    expect(outcome.detail).toMatchObject(detail);
    expect(outcome.events).toEqual([]);
  });

  test("an empty 400 is no overflow", async () => {
    expect((await run("s400empty")).detail).not.toHaveProperty("overflow");
  });

  test("retry-after may be a date", async () => {
    const { detail } = await run("s429date");
    expect(detail?.retryAfter).toBeGreaterThan(0);
    expect(detail?.retryAfter).toBeLessThanOrEqual(7000);
  });

  test("the key is not shown, even if the provider repeats it", async () => {
    const { error, detail } = await run("s401");
    expect(error?.message).toContain("Incorrect API key provided");
    expect(error?.message).not.toContain("sekret");
    expect(detail?.retryable).toBe(false);
  });

  test("a host where nothing listens", async () => {
    const { error, detail } = await play(backend("x", { url: "http://127.0.0.1:1" }), ask("hi"));
    expect(error?.message).toBe("openai: cannot reach http://127.0.0.1:1: connection refused");
    expect(detail?.retryable).toBe(true);
  });
});
