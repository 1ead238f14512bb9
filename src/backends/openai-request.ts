/** What goes out on the OpenAI-compatible wire, and what is learnt when a server refuses a part of it. */
import type { OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import { Fault } from "../fault.ts";
import type { BackendError, Message, ModelRequest } from "./backend.ts";
import { argsObject } from "./gate.ts";

type CallOptions = Parameters<ReturnType<OpenAICompatibleProvider["chatModel"]>["doStream"]>[0];
type PromptMessage = CallOptions["prompt"][number];
type Fields = Record<string, unknown>;

/** How one server and model differ from the rest; learnt from refusals and kept while the server runs. */
export interface Quirks {
  /** `stream_options` is taken. */
  streamOptions: boolean;
  /** The name of the limit of output tokens. */
  limitKey: "max_tokens" | "max_completion_tokens";
  temperature: boolean;
  /** The model's reasoning must stand in the history. */
  returnReasoning: boolean;
}

/** OpenAI's reasoning models (o1 …, gpt-5 and later) do not take `max_tokens`, and hardly anybody else knows the newer name. */
export function firstQuirks(model: string): Quirks {
  const newer = /(^|\/)(o\d|gpt-([5-9]|\d\d))/.test(model);
  return {
    streamOptions: true,
    limitKey: newer ? "max_completion_tokens" : "max_tokens",
    temperature: true,
    returnReasoning: false,
  };
}

/** What a refusal teaches: the quirks with which to ask again, or undefined where it is about something else. */
export function learn(quirks: Quirks, error: BackendError): Quirks | undefined {
  if (error.detail.status !== 400 && error.detail.status !== 422) return undefined;
  const words = error.message;
  if (quirks.streamOptions && /stream_options|include_usage/.test(words))
    return { ...quirks, streamOptions: false };
  if (quirks.limitKey === "max_tokens" && /max_completion_tokens/.test(words))
    return { ...quirks, limitKey: "max_completion_tokens" };
  if (
    quirks.limitKey === "max_completion_tokens" &&
    /max_completion_tokens/.test(words) &&
    refuses.test(words)
  )
    return { ...quirks, limitKey: "max_tokens" };
  if (quirks.temperature && /temperature/.test(words) && refuses.test(words))
    return { ...quirks, temperature: false };
  if (
    !quirks.returnReasoning &&
    /reasoning_content/.test(words) &&
    /missing|must be (passed|provided|included)/i.test(words)
  )
    return { ...quirks, returnReasoning: true };
  return undefined;
}

const refuses =
  /not? (support|permit|allow)|unsupported|deprecated|unknown|unrecogni[sz]ed|unexpected|extra (fields|inputs)|only the default/i;

/** The base URL up to and with its version: `/v1` is added where the path has none. */
export function baseUrl(text: string, backend: string): string {
  const url = /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`;
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw new Fault("invalid", `${backend}: "${text}" is no URL; one looks like https://host/v1`);
  const trimmed = url.replace(/\/+$/, "").replace(/\/chat\/completions$/, "");
  return new URL(trimmed).pathname.split("/").some((part) => /^v\d+(alpha|beta)?\d*$/.test(part))
    ? trimmed
    : `${trimmed}/v1`;
}

/** The body's fields beside model, messages, tools and stream. Unset ones are not sent. */
export function parameters({ params, model }: ModelRequest, quirks: Quirks, openRouter: boolean): Fields {
  const effort = params.reasoningEffort ?? (params.reasoning === false ? "none" : undefined);
  return {
    ...(quirks.temperature && { temperature: params.temperature }),
    top_p: params.topP,
    top_k: params.topK,
    min_p: params.minP,
    [quirks.limitKey]: params.maxTokens,
    frequency_penalty: params.frequencyPenalty,
    presence_penalty: params.presencePenalty,
    repetition_penalty: params.repetitionPenalty,
    stop: params.stop?.length ? params.stop : undefined,
    seed: params.seed,
    response_format: responseFormat(params.responseFormat, model),
    ...(openRouter ? { reasoning: routerReasoning(params) } : { reasoning_effort: effort }),
    stream_options: quirks.streamOptions ? { include_usage: true } : undefined,
  };
}

function routerReasoning(params: ModelRequest["params"]): Fields | undefined {
  if (params.reasoning === false) return { enabled: false };
  if (params.reasoningEffort) return { effort: params.reasoningEffort };
  return params.reasoning ? { enabled: true } : undefined;
}

/** `json`, or a JSON Schema as text. */
function responseFormat(format: string | undefined, model: string): Fields | undefined {
  if (!format || format === "text") return undefined;
  if (format === "json" || format === "json_object") return { type: "json_object" };
  const schema = argsObject(format);
  if ("invalid" in schema)
    throw new Fault("invalid", `responseFormat of ${model} is neither "json" nor "text" nor a JSON Schema`);
  return { type: "json_schema", json_schema: { name: "answer", schema } };
}

export function prompt(request: ModelRequest, backend: string, quirks: Quirks): PromptMessage[] {
  const messages = request.messages.map((message) => promptMessage(message, request, backend, quirks));
  const system: PromptMessage[] = request.system ? [{ role: "system", content: request.system }] : [];
  return system.concat(messages.filter((message) => message !== undefined));
}

function promptMessage(
  message: Message,
  request: ModelRequest,
  backend: string,
  quirks: Quirks,
): PromptMessage | undefined {
  if (message.role === "user") return { role: "user", content: [{ type: "text", text: message.text }] };
  if (message.role === "tool")
    return {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: message.id,
          toolName: message.name,
          output: { type: "text", value: message.text },
        },
      ],
    };
  // What a broken answer left may be nothing, and providers refuse empty messages.
  if (message.text === "" && message.calls.length === 0) return undefined;
  const mine = message.opaque?.backend === backend && message.opaque.model === request.model;
  const fields = {
    ...(mine && (message.opaque!.data as Record<string, never>)),
    ...(quirks.returnReasoning && { reasoning_content: message.reasoning ?? "" }),
  };
  return {
    role: "assistant",
    content: [
      { type: "text", text: message.text },
      ...message.calls.map(({ id, name, args }) => ({
        type: "tool-call" as const,
        toolCallId: id,
        toolName: name,
        input: sendable(args),
      })),
    ],
    // The library lays these over the message's own fields.
    providerOptions: { openaiCompatible: fields },
  };
}

/** The text as the model wrote it, so that the history stays byte for byte the same, or an object where it was none. */
function sendable(args: string): string {
  const value = argsObject(args);
  return "invalid" in value ? JSON.stringify(value) : args;
}

export function toolSpecs(request: ModelRequest): CallOptions["tools"] {
  return request.tools.map(({ name, description, schema }) => ({
    type: "function",
    name,
    description,
    inputSchema: schema,
  }));
}
