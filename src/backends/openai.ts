/**
 * Every server that speaks OpenAI's chat completions: OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio and many more. The library assembles
 * the stream; what it gets is cleaned before and what it says is checked after.
 */
import { Fault } from "../fault.ts";
import { type Backend, BackendError, type ModelEvent, type ModelInfo, type ModelRequest } from "./backend.ts";
import { asLongAs, Exchange, type Limits, lookupLimits, never, watchedFetch } from "./exchange.ts";
import { broken, passGate, type RawCall } from "./gate.ts";
import { serverEvents } from "./lines.ts";
import { ChunkTap } from "./openai-chunk.ts";
import { baseUrl, firstQuirks, learn, parameters, prompt, type Quirks, toolSpecs } from "./openai-request.ts";
import { isRecord } from "./provider-error.ts";
import { liftTextCalls } from "./text-calls.ts";
import { guessUsage } from "./usage.ts";

export interface OpenAIOptions {
  /** The label: `openai`, `openrouter` … */
  name: string;
  /** With or without `/v1` and slashes at the end. */
  url: string;
  key?: string;
  defaultModel?: string;
  limits: Limits;
}

/** How long (milliseconds) the count of tokens is waited for after the end signal, where the server does not close the stream. */
const patience = 2000;

/** How many refusals one request may learn from; a server that takes nothing back and forth is not argued with. */
const maxLessons = 4;

export class OpenAIBackend implements Backend {
  readonly name: string;
  readonly defaultModel: string;
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #openRouter: boolean;
  readonly #quirks = new Map<string, Quirks>();
  #models?: Promise<ModelInfo[]>;

  /** @throws Fault "invalid" for a URL that is none */
  constructor(readonly options: OpenAIOptions) {
    this.name = options.name;
    this.defaultModel = options.defaultModel ?? "";
    this.#base = baseUrl(options.url, options.name);
    this.#openRouter =
      options.name === "openrouter" || /(^|\.)openrouter\.ai$/.test(new URL(this.#base).hostname);
    this.#headers = {
      ...(options.key && { authorization: `Bearer ${options.key}` }),
      ...(this.#openRouter && { "x-title": "ollie" }),
    };
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    for (let lessons = 0; ; lessons++) {
      const quirks = this.#quirks.get(request.model) ?? firstQuirks(request.model);
      let begun = false;
      try {
        for await (const event of liftTextCalls(this.#ask(request, quirks, signal), request)) {
          begun = true;
          yield event;
        }
        return;
      } catch (error) {
        const teachable = error instanceof BackendError && !begun && lessons < maxLessons;
        const learnt = teachable ? learn(quirks, error) : undefined;
        if (!learnt) throw error;
        this.#quirks.set(request.model, learnt);
      }
    }
  }

  async *#ask(request: ModelRequest, quirks: Quirks, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { name, options } = this;
    const exchange = new Exchange(name, options.limits, signal, options.key);
    const tap = new ChunkTap(name, options.key);
    const raw: RawCall[] = [];
    let written = 0;
    try {
      if (!request.model)
        throw new Fault("invalid", `${name}: no model is chosen; set OLLIE_MODEL or the agent's model`);
      const extra = parameters(request, quirks, this.#openRouter);
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      const model = createOpenAICompatible({
        // The name under which a message's `providerOptions` go into its body.
        name: "openaiCompatible",
        baseURL: this.#base,
        headers: this.#headers,
        fetch: watchedFetch(exchange, {
          streams: (type) => !/json\b/.test(type),
          read: (body) => clean(body, tap, exchange),
        }),
        transformRequestBody: (body) => ({ ...body, ...extra }),
      }).chatModel(request.model);
      const { stream } = await model.doStream({
        prompt: prompt(request, name, quirks),
        tools: toolSpecs(request),
      });
      for await (const part of stream) {
        if (part.type === "text-delta" || part.type === "reasoning-delta") {
          written += part.delta.length;
          yield { type: part.type === "text-delta" ? "text" : "reasoning", text: part.delta };
        } else if (part.type === "tool-call") {
          raw.push({ id: part.toolCallId, name: part.toolName, args: part.input });
        }
      }
      signal.throwIfAborted();
      if (exchange.failure) throw exchange.failure;
      const assembled = raw.reduce((sum, call) => sum + call.args.length, 0);
      if (tap.reason !== undefined && assembled !== tap.argumentLength)
        throw broken(name, "parts of tool calls came that belong to none of them");
      const { calls, finish } = passGate({
        backend: name,
        reason: tap.reason,
        refused: tap.refused,
        calls: raw,
        history: request.messages,
      });
      yield { type: "usage", usage: tap.usage ?? guessUsage(request, written + assembled) };
      for (const call of calls) yield { type: "call", call };
      const data = { reasoning_details: tap.details };
      const opaque = tap.details.length > 0 ? { backend: name, model: request.model, data } : undefined;
      yield { type: "finish", reason: finish, ...(opaque && { opaque }) };
    } catch (error) {
      const verdict = exchange.verdict(error);
      // A failed answer may have been charged for all the same.
      if (tap.usage && verdict instanceof BackendError) yield { type: "usage", usage: tap.usage };
      throw verdict;
    } finally {
      exchange.dispose();
    }
  }

  async models(signal: AbortSignal): Promise<ModelInfo[]> {
    const exchange = new Exchange(this.name, lookupLimits, signal, this.options.key);
    try {
      const response = await watchedFetch(exchange)(`${this.#base}/models`, { headers: this.#headers });
      const body: unknown = await response.json();
      const list =
        isRecord(body) && Array.isArray(body.data) ? body.data : Array.isArray(body) ? body : undefined;
      if (!list) throw new Fault("io", `${this.name}: ${this.#base}/models is no list of models`);
      return list.filter(isRecord).flatMap((model) => {
        const id = typeof model.id === "string" ? model.id : undefined;
        return id ? [{ id, ...(windowOf(model) && { window: windowOf(model) }) }] : [];
      });
    } catch (error) {
      const verdict = exchange.verdict(error);
      throw verdict instanceof BackendError ? verdict.fault : verdict;
    } finally {
      exchange.dispose();
    }
  }

  async window(model: string, signal: AbortSignal): Promise<number | undefined> {
    this.#models ??= this.models(never);
    try {
      return (await asLongAs(signal, this.#models)).find((info) => info.id === model)?.window;
    } catch {
      // Not known now; a server that comes up later is asked again.
      this.#models = undefined;
      return undefined;
    }
  }
}

/** The stream with its chunks made alike, up to `[DONE]`. */
async function* clean(
  body: AsyncIterable<Uint8Array>,
  tap: ChunkTap,
  exchange: Exchange,
): AsyncGenerator<string> {
  for await (const event of serverEvents(body)) {
    if (event.data === "[DONE]") return;
    exchange.alive();
    const chunk = tap.take(event);
    if (tap.reason !== undefined) exchange.ended(patience);
    yield `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

/** Each kind of server has its own name for it. */
function windowOf(model: Record<string, unknown>): number | undefined {
  const provider = isRecord(model.top_provider) ? model.top_provider : {};
  const meta = isRecord(model.meta) ? model.meta : {};
  const found = [
    provider.context_length,
    model.context_length,
    model.max_model_len,
    model.context_window,
    model.max_context_length,
    meta.n_ctx,
    meta.n_ctx_train,
  ].find((value) => typeof value === "number" && value > 0);
  return found as number | undefined;
}
