/**
 * The one interface of all model providers. A backend turns a provider-neutral request into the provider's wire and its answer into
 * events; it keeps no history, retries nothing and knows nothing of agents.
 */
import type { Fault } from "../fault.ts";

/** A tool call as the model wrote it. `args` is the raw text: who runs the call parses, repairs and checks it. */
export interface ModelCall {
  /** Unique within a session: a backend replaces ids that are missing, empty or used before. */
  id: string;
  name: string;
  args: string;
}

/** One message of a conversation, in no provider's format. The history handed to a backend is always valid: every call of an
 * assistant message is followed by exactly one tool message, in call order, before the next user or assistant message. */
export type Message =
  | { role: "user"; text: string }
  | {
      role: "assistant";
      text: string;
      reasoning?: string;
      calls: ModelCall[];
      /** What the provider wants back verbatim (signatures, encrypted reasoning), with the backend and model that made it. */
      opaque?: { backend: string; model: string; data: unknown };
    }
  | { role: "tool"; id: string; name: string; ok: boolean; text: string };

/** A tool as the model sees it. `schema` is a JSON Schema of type object. */
export interface ToolSpec {
  name: string;
  description: string;
  schema: Record<string, unknown>;
}

/** Generation parameters; unset ones are not sent. */
export interface Generation {
  temperature?: number;
  topP?: number;
  topK?: number;
  minP?: number;
  maxTokens?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  repetitionPenalty?: number;
  reasoning?: boolean;
  reasoningEffort?: string;
  stop?: string[];
  seed?: number;
  responseFormat?: string;
}

export interface ModelRequest {
  model: string;
  system: string;
  messages: Message[];
  tools: ToolSpec[];
  params: Generation;
  /** The agent's name and config; only `script` looks at them. */
  agent?: { name: string; config: string };
}

/** Tokens of one request in four disjoint buckets. `cost` in USD, only if the provider reports it. */
export interface Usage {
  /** Input that was neither read from nor written to a cache. */
  input: number;
  cacheRead: number;
  cacheWrite: number;
  /** Output, reasoning included. */
  output: number;
  /** The part of `output` that was reasoning, where the provider says. */
  reasoning?: number;
  cost?: number;
  /** True where the backend did not report and this is a guess. */
  estimated?: boolean;
}

/** Why a model stopped. A tool call runs only after "stop" or "tool-calls". */
export type Finish = "stop" | "tool-calls" | "length" | "filter";

/**
 * What a stream yields. Exactly one `finish` ends a good stream, and calls come just before it: they are held back until the provider's
 * own end signal has arrived. A stream that ends any other way throws a BackendError and has yielded no call; one that is ended by its
 * signal throws a Fault of kind "interrupted".
 */
export type ModelEvent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "call"; call: ModelCall }
  | { type: "usage"; usage: Usage }
  | { type: "finish"; reason: Finish; opaque?: { backend: string; model: string; data: unknown } };

/** A provider's refusal or a broken stream. `fault.message` holds the provider's own words. */
export class BackendError extends Error {
  override readonly name = "BackendError";
  constructor(
    readonly fault: Fault,
    readonly detail: {
      status?: number;
      /** Whether the same request may be sent again: 408 409 425 429 5xx 529, network errors, a stream without an end signal. */
      retryable: boolean;
      /** The provider's wish, in milliseconds from now. */
      retryAfter?: number;
      /** The prompt does not fit the model's window. */
      overflow?: boolean;
    },
  ) {
    super(fault.message, { cause: fault.cause });
  }
}

export interface ModelInfo {
  id: string;
  /** Context window in tokens, where the provider says. */
  window?: number;
}

export interface Backend {
  /** The label it goes by: `openai`, `ollama`, `script`, or a user's own (`openrouter`). */
  readonly name: string;
  /** Used when neither agent nor environment names a model; may be "" where a provider has no sensible one. */
  readonly defaultModel: string;
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** Asks the provider. Throws a Fault that says why it cannot be reached. */
  models(signal: AbortSignal): Promise<ModelInfo[]>;
  /** Context window of a model in tokens; undefined = unknown. Asks the provider at most once per model. */
  window(model: string, signal: AbortSignal): Promise<number | undefined>;
}
