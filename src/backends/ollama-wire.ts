/** What goes over Ollama's wire (docs/api.md of the Ollama repository), and what its answers about a model mean. */
import type { ChatRequest, ListResponse, Message as OllamaMessage, ShowResponse, ToolCall } from "ollama";
import type { Message, ModelRequest } from "./backend.ts";
import type { Exchange } from "./exchange.ts";
import { argsObject, broken, type RawCall } from "./gate.ts";
import { lines } from "./lines.ts";
import { isRecord, providerError } from "./provider-error.ts";

/** Tokens; asked for where nobody has said otherwise: what an agent needs, as far as the model was trained for it. */
export const usualWindow = 32_768;

/** What is asked about a model once. */
export interface Facts {
  /** Tokens: the `num_ctx` that goes with every request. */
  window: number;
  /** Undefined where the server does not say. */
  thinks?: boolean;
}

/**
 * The window is the user's wish, else the Modelfile's, else the usual one; more where a copy with more is loaded (asking for less would
 * load the model again), and never more than the model was trained for.
 */
export function readFacts(
  shown: ShowResponse,
  loaded: ListResponse["models"][number] | undefined,
  wish: number | undefined,
): Facts {
  const info: Record<string, unknown> = Object.fromEntries(Object.entries(shown.model_info ?? {}));
  const trained = info[`${info["general.architecture"]}.context_length`];
  const most = typeof trained === "number" && trained > 0 ? trained : Number.POSITIVE_INFINITY;
  const modelfile = Number(/^num_ctx\s+(\d+)/m.exec(shown.parameters ?? "")?.[1] ?? 0);
  const allocated = Number((loaded as { context_length?: number } | undefined)?.context_length ?? 0);
  return {
    window: Math.min(wish ?? Math.max(modelfile || usualWindow, allocated), most),
    ...(Array.isArray(shown.capabilities) && { thinks: shown.capabilities.includes("thinking") }),
  };
}

/** `truncate` and `shift`: an error instead of a conversation that has silently lost its head. */
type StrictChatRequest = ChatRequest & { stream: true; truncate: boolean; shift: boolean };

export function chatRequest(request: ModelRequest, facts: Facts): StrictChatRequest {
  const { params } = request;
  const think = facts.thinks === false ? undefined : (params.reasoningEffort ?? params.reasoning);
  return {
    model: request.model,
    messages: messages(request),
    ...(request.tools.length > 0 && {
      tools: request.tools.map(({ name, description, schema }) => ({
        type: "function",
        function: { name, description, parameters: schema },
      })),
    }),
    stream: true,
    truncate: false,
    shift: false,
    ...(think !== undefined && { think: think as ChatRequest["think"] }),
    ...(params.responseFormat &&
      params.responseFormat !== "text" && { format: format(params.responseFormat) }),
    options: {
      num_ctx: facts.window,
      ...defined({
        temperature: params.temperature,
        top_p: params.topP,
        top_k: params.topK,
        min_p: params.minP,
        num_predict: params.maxTokens,
        frequency_penalty: params.frequencyPenalty,
        presence_penalty: params.presencePenalty,
        repeat_penalty: params.repetitionPenalty,
        stop: params.stop?.length ? params.stop : undefined,
        seed: params.seed,
      }),
    },
  };
}

/** `json`, or a JSON Schema as text. */
function format(text: string): string | object {
  return text === "json" || text === "json_object" ? "json" : argsObject(text);
}

function messages({ system, messages }: ModelRequest): OllamaMessage[] {
  const turn = messages.findLastIndex((message) => message.role === "user");
  const converted = messages.map((message, i) => convert(message, i > turn));
  return [...(system ? [{ role: "system", content: system }] : []), ...converted];
}

/** @param current the message belongs to the running turn: of older ones no template wants the reasoning */
function convert(message: Message, current: boolean): OllamaMessage {
  if (message.role === "user") return { role: "user", content: message.text };
  if (message.role === "tool")
    return {
      role: "tool",
      content: message.text,
      tool_name: message.name,
      tool_call_id: message.id,
    } as OllamaMessage;
  return {
    role: "assistant",
    content: message.text,
    ...(current && message.reasoning && { thinking: message.reasoning }),
    ...(message.calls.length > 0 && {
      // A text for arguments is refused: "Value looks like object, but can't find closing '}' symbol".
      tool_calls: message.calls.map(({ id, name, args }) => ({
        id,
        function: { name, arguments: argsObject(args) },
      })),
    }),
  };
}

/** A call comes whole; its id only from newer servers. */
export function rawCall(call: ToolCall & { id?: string }): RawCall {
  const args: unknown = call.function.arguments;
  return {
    id: call.id,
    name: call.function.name,
    args: typeof args === "string" ? args : JSON.stringify(args ?? {}),
  };
}

/** The objects of a stream, one a line, as the library wants them; an error among them ends the exchange. */
export async function* objects(body: AsyncIterable<Uint8Array>, exchange: Exchange): AsyncGenerator<string> {
  const { backend, secret } = exchange;
  for await (const line of lines(body)) {
    if (line.trim() === "") continue;
    exchange.alive();
    const value = parse(line);
    if (!value) throw broken(backend, `sent something that is not JSON: ${line.slice(0, 80)}`);
    if (value.error) throw providerError({ backend, body: value, secret });
    yield `${line}\n`;
    if (value.done === true) return;
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function defined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
