/** Scenarios of the OpenAI-compatible wire. Each is a fault that some server has been seen to have. */
import type { Socket } from "node:net";
import {
  drip,
  head,
  json,
  type Scenario,
  type TortureRequest,
  type WireBody,
  whole,
} from "./torture-wire.ts";

type Fields = Record<string, unknown>;

/** One event. */
const data = (value: unknown): string =>
  `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}): string =>
  data({ id: "c1", model: "m", choices: [{ index: 0, delta, finish_reason: finish }], ...more });
const text = (content: string): string => chunk({ content });
const call = (...calls: Fields[]): string => chunk({ tool_calls: calls });
const fn = (name: string | undefined, args: unknown, more: Fields = {}): Fields => ({
  ...more,
  function: { ...(name !== undefined && { name }), arguments: args },
});
const usage = { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107 };
const usageChunk = (more: Fields = {}): string =>
  data({ id: "c1", choices: [], usage: { ...usage, ...more } });
const done = data("[DONE]");
const stop = chunk({}, "stop");
const toolEnd = chunk({}, "tool_calls");

const sse = head("text/event-stream");
/** A whole stream in one write, ended properly. */
const events = (...parts: string[]): Scenario => {
  return (socket) => void socket.end(sse + parts.join(""));
};
const answer = (response: string): Scenario => {
  return (socket) => void socket.end(response);
};
const refusal = (status: string, error: unknown, fields?: Fields): Scenario =>
  answer(json({ error }, status, fields as Record<string, string>));

/** Two halves, the second a moment later. */
const halves = (first: string, then: (socket: Socket) => void): Scenario => {
  return async (socket) => {
    socket.write(first);
    await Bun.sleep(30);
    then(socket);
  };
};

/** Refuses a field of the body until it is gone, then answers. */
const picky = (offends: (body: WireBody) => boolean, message: string): Scenario => {
  return (socket, { body }: TortureRequest) =>
    void socket.end(
      offends(body)
        ? json({ error: { message, type: "invalid_request_error" } }, "400 Bad Request")
        : sse + text("ok") + stop + done,
    );
};

const httpDate = () => new Date(Date.now() + 7000).toUTCString();

export const openaiScenarios: Record<string, Scenario> = {
  plain: events(text("Hel"), text("lo"), stop, usageChunk(), done),
  // Framing.
  utf8: (socket) =>
    drip(socket, sse + text("naïve 你好 👍🏽") + stop + done, 1).then(() => void socket.end()),
  crlf: async (socket) => {
    const stream = (text("one") + text(" two") + stop + done).replaceAll("\n", "\r\n");
    socket.write(sse);
    // The CR ends one segment, the LF begins the next.
    for (const part of stream.split(/(?<=\r)/)) {
      socket.write(part);
      await Bun.sleep(1);
    }
    socket.end();
  },
  cr: events((text("one") + text(" two") + stop + done).replaceAll("\n", "\r")),
  nospace: events((text("one") + stop + done).replaceAll("data: ", "data:")),
  comments: events(
    ": OPENROUTER PROCESSING\n\n",
    text("one"),
    ": OPENROUTER PROCESSING\n",
    text(" two"),
    ":\n\n",
    stop,
    done,
  ),
  multiline: events('data: {"choices":[{"index":0,\ndata: "delta":{"content":"one"}}]}\n\n', stop, done),
  nodone: events(text("one"), stop),
  noblank: (socket) => void socket.end(sse + text("one") + stop.trimEnd()),
  nulls: events(
    chunk({ role: "assistant", content: null, tool_calls: null, refusal: null, reasoning_content: null }),
    chunk({ content: "one", tool_calls: null }, null, { usage: null, error: null }),
    data({ choices: [{ index: 0, delta: null, finish_reason: "" }] }),
    stop,
    done,
  ),
  notjson: events(text("one"), data("<oops>"), stop, done),
  // Usage.
  usageempty: events(text("one"), stop, usageChunk(), done),
  usagenochoices: events(text("one"), stop, data({ usage }), done),
  nousage: events(text("one"), stop, done),
  buckets: events(
    text("one"),
    stop,
    usageChunk({
      prompt_tokens: 12929,
      completion_tokens: 29,
      prompt_tokens_details: { cached_tokens: 10880, cache_write_tokens: 49 },
      completion_tokens_details: { reasoning_tokens: 9 },
      total_tokens: 12958,
      cost: 0.00123,
    }),
    done,
  ),
  xai: events(
    text("one"),
    stop,
    usageChunk({ completion_tokens_details: { reasoning_tokens: 20 }, total_tokens: 127 }),
    done,
  ),
  // Ends that are none.
  nofinish: events(text("one")),
  doneonly: events(text("one"), done),
  cuttool: events(call(fn("write", '{"p":"/et', { index: 0, id: "a" }))),
  cutbig: events(call(fn("write", '{"p":1}', { index: 0, id: "a" })), done),
  rst: halves(sse + text("one"), (socket) => socket.resetAndDestroy()),
  rstchunked: halves(
    `${head("text/event-stream", "200 OK", { "transfer-encoding": "chunked" })}${frame(text("one"))}`,
    (socket) => socket.resetAndDestroy(),
  ),
  rsttool: halves(sse + call(fn("write", '{"p":"/etc"}', { index: 0, id: "a" })), (socket) =>
    socket.resetAndDestroy(),
  ),
  rstafterend: halves(
    `${head("text/event-stream", "200 OK", { "transfer-encoding": "chunked" })}${frame(text("one") + stop)}`,
    (socket) => socket.resetAndDestroy(),
  ),
  refused: (socket) => void socket.resetAndDestroy(),
  openend: (socket) => void socket.write(sse + text("one") + stop + usageChunk() + done),
  openend2: (socket) => void socket.write(sse + text("one") + stop),
  finisherror: events(text("one"), call(fn("write", "{}", { index: 0, id: "a" })), chunk({}, "error"), done),
  errorafterend: events(
    text("one"),
    call(fn("write", "{}", { index: 0, id: "a" })),
    toolEnd,
    data({ error: { code: 503, message: "Gone" } }),
  ),
  emptyfinish: events(call(fn("write", "{}", { index: 0, id: "a" })), chunk({}, ""), done),
  finishodd: events(text("one"), chunk({}, "whatever"), done),
  finishoddtool: events(call(fn("write", "{}", { index: 0, id: "a" })), chunk({}, "whatever"), done),
  emptytoolend: events(text("one"), toolEnd, done),
  length: events(text("one"), chunk({}, "length"), done),
  lengthtool: events(call(fn("write", '{"p":"/et', { index: 0, id: "a" })), chunk({}, "length"), done),
  filter: events(text("one"), chunk({}, "content_filter"), done),
  refusal: events(chunk({ refusal: "I will not." }), stop, done),
  // Calls.
  calls: events(
    text("Looking."),
    call(fn("read", "", { index: 0, id: "call_a", type: "function" })),
    call(fn(undefined, '{"p":', { index: 0 })),
    call(fn(undefined, '"/x"}', { index: 0 })),
    call(fn("list", "{}", { index: 1, id: "call_b" })),
    toolEnd,
    usageChunk(),
    done,
  ),
  noindex: events(
    call(fn("read", '{"p":1}', { id: "a" })),
    call(fn("read", '{"p":2}', { id: "b" })),
    toolEnd,
    done,
  ),
  gapindex: events(
    call(fn("read", '{"p":1}', { index: 1, id: "a" })),
    call(fn("read", '{"p":2}', { index: 3, id: "b" })),
    toolEnd,
    done,
  ),
  sameindex: events(
    call(fn("read", '{"p":1}', { index: 0, id: "a" })),
    call(fn("read", '{"p":2}', { index: 0, id: "b" })),
    toolEnd,
    done,
  ),
  sameindexsplit: events(
    call(fn("read", "", { index: 0, id: "a" })),
    call(fn(undefined, '{"p":1}', { index: 0 })),
    call(fn("read", "", { index: 0, id: "b" })),
    call(fn(undefined, '{"p":2}', { index: 0 })),
    toolEnd,
    done,
  ),
  dupid: events(
    call(fn("read", '{"p":1}', { index: 0, id: "call_0" })),
    call(fn("read", '{"p":2}', { index: 1, id: "call_0" })),
    toolEnd,
    done,
  ),
  emptyid: events(
    call(fn("read", '{"p":', { index: 0, id: "a" })),
    call(fn("", "1}", { index: 0, id: "" })),
    toolEnd,
    done,
  ),
  missingid: events(
    call(fn("read", '{"p":1}', { index: 0 })),
    call(fn("read", '{"p":2}', { index: 1 })),
    toolEnd,
    done,
  ),
  stray: events(
    call(fn("read", "", { id: "a" })),
    call(fn("write", "", { id: "b" })),
    call(fn(undefined, '{"p":"/etc"}')),
    toolEnd,
    done,
  ),
  noname: events(call(fn(undefined, "{}", { index: 0, id: "a" })), toolEnd, done),
  emptyargs: events(call(fn("read", "", { index: 0, id: "a" })), toolEnd, done),
  nullargs: events(call(fn("read", null, { index: 0, id: "a" })), toolEnd, done),
  objargs: events(call(fn("read", { p: "/x" }, { index: 0, id: "a" })), toolEnd, done),
  finishstop: events(call(fn("read", "{}", { index: 0, id: "a" })), stop, done),
  functioncall: events(
    chunk({ function_call: { name: "read", arguments: '{"p"' } }),
    chunk({ function_call: { arguments: ":1}" } }),
    chunk({}, "function_call"),
    done,
  ),
  textcall: events(text('{"na'), text('me": "read", "arguments": {"p": 1}}'), stop, done),
  textcalltags: events(
    text('<tool_call>\n{"name": "read", "arguments": {"p": 1}}\n</tool_call>\n'),
    text('<tool_call>{"name": "read", "arguments": {"p": 2}}</tool_call>'),
    stop,
    done,
  ),
  textcallfence: events(text("```json\n"), text('{"name": "read", "arguments": {}}\n```'), stop, done),
  textquote: events(text('{"name": "read", "arguments": {}} is how a call looks.'), stop, done),
  textunknown: events(text('{"name": "nosuch", "arguments": {}}'), stop, done),
  textcode: events(text("```sh\nls\n"), text("```\n"), stop, done),
  textcallcut: events(text('{"name": "read", "arguments": {}}')),
  // Reasoning.
  reasoning_content: events(chunk({ reasoning_content: "hm" }), text("42"), stop, done),
  reasoning: events(chunk({ reasoning: "hm", reasoning_content: "" }), text("42"), stop, done),
  reasoning_details: events(
    chunk({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "h" }] }),
    chunk({ reasoning_details: [{ type: "reasoning.text", index: 0, text: "m", signature: "c2ln" }] }),
    chunk({ reasoning_details: [{ type: "reasoning.encrypted", index: 1, data: "eA==" }] }),
    call(fn("read", "{}", { index: 0, id: "a" })),
    toolEnd,
    done,
  ),
  // Refusals.
  miderror: events(
    text("one"),
    call(fn("write", "{}", { index: 0, id: "a" })),
    data({
      error: { code: 502, message: "Provider disconnected" },
      choices: [{ delta: { content: "" }, finish_reason: "error" }],
    }),
  ),
  miderror400: events(text("one"), data({ error: { code: 400, message: "Bad schema" } })),
  miderrorvllm: events(
    text("one"),
    data({ object: "error", message: "Internal trouble", type: "InternalServerError", code: 500 }),
  ),
  miderrorevent: events(text("one"), 'event: error\ndata: {"message":"Upstream is gone"}\n\n'),
  ok200err: answer(json({ error: { code: 402, message: "Insufficient credits" } })),
  ok200overloaded: answer(json({ error: { type: "overloaded_error", message: "Overloaded" } })),
  ok200html: answer(whole("text/html", "<html><title>Welcome to nginx!</title></html>")),
  ok200json: answer(json({ hello: "world" })),
  s400: refusal("400 Bad Request", { message: "Unknown tool choice", type: "invalid_request_error" }),
  s400empty: answer(whole("text/plain", "", "400 Bad Request")),
  s401: refusal("401 Unauthorized", { message: "Incorrect API key provided: sekret" }),
  s402: refusal("402 Payment Required", { code: 402, message: "Insufficient credits" }),
  s404: refusal("404 Not Found", { message: "The model `m` does not exist" }),
  s429ms: refusal(
    "429 Too Many Requests",
    { message: "Rate limit reached" },
    { "retry-after-ms": "1500", "retry-after": "9" },
  ),
  s429s: refusal("429 Too Many Requests", { message: "Rate limit reached" }, { "retry-after": "3" }),
  s429date: (socket) =>
    void socket.end(
      json({ error: { message: "Rate limit reached" } }, "429 Too Many Requests", {
        "retry-after": httpDate(),
      }),
    ),
  s429quota: refusal("429 Too Many Requests", {
    message: "You exceeded your current quota",
    code: "insufficient_quota",
  }),
  s500no: refusal("500 Internal Server Error", { message: "Broken for good" }, { "x-should-retry": "false" }),
  s409yes: refusal("418 Teapot", { message: "Once more" }, { "x-should-retry": "true" }),
  s502html: answer(
    whole("text/html", "<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
  ),
  s529: refusal("529 Overloaded", { message: "Overloaded", type: "overloaded_error" }),
  overflow: refusal("400 Bad Request", {
    message:
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    code: "context_length_exceeded",
  }),
  overflowllama: refusal("400 Bad Request", {
    message: "the request exceeds the available context size, try increasing it",
    type: "exceed_context_size_error",
  }),
  detail: answer(
    json({ detail: [{ loc: ["body", "model"], msg: "field required" }] }, "422 Unprocessable Entity"),
  ),
  upstream: refusal("503 Service Unavailable", {
    code: 503,
    message: "Provider returned error",
    metadata: { provider_name: "x", raw: "the GPU is on fire" },
  }),
  // Servers that refuse a part of the request.
  nostreamoptions: picky(
    (body) => "stream_options" in body,
    "Unrecognized request argument supplied: stream_options",
  ),
  newlimit: picky(
    (body) => "max_tokens" in body,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
  ),
  notemperature: picky(
    (body) => "temperature" in body,
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
  ),
  wantsreasoning: picky(
    (body) =>
      body.messages?.some((message) => message.role === "assistant" && !("reasoning_content" in message)) ??
      false,
    "Missing `reasoning_content` field in the assistant message at message index 1",
  ),
  stubborn: picky(() => true, "max_tokens and max_completion_tokens are both unsupported"),
  // Silence.
  hang: (socket) => void socket.write(sse + text("one")),
  mute: () => {},
  stall: async (socket) => {
    socket.write(sse + text("one"));
    while (!socket.destroyed) {
      socket.write(": ping\n\n");
      await Bun.sleep(20);
    }
  },
  late: async (socket) => {
    await Bun.sleep(1000);
    socket.end(sse + text("one") + stop + done);
  },
  slow: async (socket) => {
    for (const part of [sse, text("one"), text(" two"), text(" three"), stop, done]) {
      socket.write(part);
      await Bun.sleep(300);
    }
    socket.end();
  },
  // Lists of models.
  models: answer(
    json({
      data: [
        { id: "plain" },
        { id: "router", context_length: 200000, top_provider: { context_length: 131072 } },
        { id: "vllm", max_model_len: 32768 },
        { id: "llama", meta: { n_ctx_train: 4096 } },
      ],
    }),
  ),
};

/** A chunk of HTTP's chunked coding. */
function frame(part: string): string {
  return `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`;
}
