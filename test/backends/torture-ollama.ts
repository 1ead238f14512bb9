/** Scenarios of Ollama's own wire. */
import { drip, head, json, type Scenario, type TortureRequest, whole } from "./torture-wire.ts";

type Fields = Record<string, unknown>;

const line = (value: unknown): string => `${JSON.stringify(value)}\n`;
const part = (message: Fields): string =>
  line({ model: "m", message: { role: "assistant", content: "", ...message }, done: false });
const text = (content: string): string => part({ content });
const end = (more: Fields = {}): string =>
  line({
    model: "m",
    message: { role: "assistant", content: "" },
    done: true,
    done_reason: "stop",
    prompt_eval_count: 100,
    eval_count: 7,
    ...more,
  });
const ndjson = head("application/x-ndjson");

const shown = {
  capabilities: ["completion", "tools", "thinking"],
  model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40960 },
  parameters: 'stop "<|im_end|>"',
};

/** Answers what is asked about a model, and plays the chat. */
const ollama = (chat: Scenario, about: { show?: unknown; ps?: unknown } = {}): Scenario => {
  return (socket, request: TortureRequest) => {
    if (request.path === "/api/chat") return chat(socket, request);
    if (request.path === "/api/show") return void socket.end(json(about.show ?? shown));
    if (request.path === "/api/ps") return void socket.end(json(about.ps ?? { models: [] }));
    if (request.path === "/api/tags")
      return void socket.end(json({ models: [{ name: "qwen3:8b", model: "qwen3:8b" }, { name: "tiny" }] }));
    return void socket.end(json({ error: "404 page not found" }, "404 Not Found"));
  };
};
const stream =
  (...parts: string[]): Scenario =>
  (socket) =>
    void socket.end(ndjson + parts.join(""));

export const ollamaScenarios: Record<string, Scenario> = {
  "ollama-plain": ollama(stream(text("Hel"), text("lo"), end())),
  "ollama-bytes": ollama((socket) =>
    drip(socket, ndjson + text("naïve 你好 👍🏽") + end(), 1).then(() => void socket.end()),
  ),
  "ollama-blank": ollama(stream("\n", text("one"), "\r\n", end().trimEnd())),
  "ollama-thinking": ollama(stream(part({ thinking: "hm" }), text("42"), end())),
  "ollama-calls": ollama(
    stream(
      part({ tool_calls: [{ function: { index: 0, name: "read", arguments: { p: 1 } } }] }),
      part({ tool_calls: [{ id: "call_x", function: { index: 0, name: "read", arguments: { p: 2 } } }] }),
      end(),
    ),
  ),
  "ollama-stringargs": ollama(
    stream(part({ tool_calls: [{ function: { name: "read", arguments: '{"p":1}' } }] }), end()),
  ),
  "ollama-noargs": ollama(stream(part({ tool_calls: [{ function: { name: "read" } }] }), end())),
  "ollama-length": ollama(stream(text("one"), end({ done_reason: "length" }))),
  "ollama-nodone": ollama(
    stream(text("one"), part({ tool_calls: [{ function: { name: "write", arguments: {} } }] })),
  ),
  "ollama-miderror": ollama(
    stream(text("one"), line({ error: "an error was encountered while running the model: CUDA error" })),
  ),
  "ollama-notjson": ollama(stream(text("one"), "<html>\n", end())),
  "ollama-load": ollama(stream(end({ done_reason: "load" }))),
  "ollama-nocounts": ollama(stream(text("one"), end({ prompt_eval_count: undefined }))),
  "ollama-missing": ollama(
    (socket) => void socket.end(json({ error: "model 'm' not found" }, "404 Not Found")),
    {},
  ),
  "ollama-notools": ollama(
    (socket) => void socket.end(json({ error: "m does not support tools" }, "400 Bad Request")),
  ),
  "ollama-textrefusal": ollama(
    (socket) => void socket.end(whole("text/plain", "upstream is gone", "502 Bad Gateway")),
  ),
  "ollama-overflow": ollama(
    (socket) =>
      void socket.end(json({ error: "the input length exceeds the context length" }, "400 Bad Request")),
  ),
  "ollama-strict": ollama((socket, { body }) => {
    const bad = body.messages.some((message) =>
      message.tool_calls?.some((one) => typeof one.function.arguments !== "object"),
    );
    const words = "Value looks like object, but can't find closing '}' symbol";
    socket.end(bad ? json({ error: words }, "400 Bad Request") : ndjson + text("ok") + end());
  }),
  "ollama-mute": ollama(async (socket) => {
    socket.write(ndjson + text("one"));
    while (!socket.destroyed) {
      socket.write("\n");
      await Bun.sleep(20);
    }
  }),
  "ollama-rst": ollama(async (socket) => {
    socket.write(ndjson + text("one"));
    await Bun.sleep(30);
    socket.resetAndDestroy();
  }),
  // What is said about a model.
  "ollama-small": ollama(stream(text("ok"), end()), {
    show: {
      model_info: { "general.architecture": "llama", "llama.context_length": 2048 },
      capabilities: ["completion"],
    },
  }),
  "ollama-modelfile": ollama(stream(text("ok"), end()), {
    show: { ...shown, parameters: "num_ctx                        16384" },
  }),
  "ollama-loaded": ollama(stream(text("ok"), end()), {
    ps: { models: [{ name: "m", model: "m", context_length: 40960 }] },
  }),
  "ollama-old": (socket, { path }) =>
    void socket.end(
      path === "/api/chat" ? ndjson + text("ok") + end() : json({ error: "not here" }, "404 Not Found"),
    ),
};
