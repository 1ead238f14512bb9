/**
 * Ollama's own wire, `/api/chat`. Its OpenAI-compatible one cannot set the context window, and a window left to the server's default cuts
 * the head off a conversation without a word.
 */
import type { Ollama } from "ollama";
import { Fault } from "../fault.ts";
import { type Backend, BackendError, type ModelEvent, type ModelInfo, type ModelRequest } from "./backend.ts";
import { asLongAs, Exchange, type Limits, lookupLimits, never, watchedFetch } from "./exchange.ts";
import { broken, passGate, type RawCall } from "./gate.ts";
import { chatRequest, type Facts, objects, rawCall, readFacts, usualWindow } from "./ollama-wire.ts";
import { liftTextCalls } from "./text-calls.ts";
import { guessUsage } from "./usage.ts";

export interface OllamaOptions {
  url: string;
  /** For ollama.com and for proxies. */
  key?: string;
  defaultModel?: string;
  /** Context window in tokens to ask for, over everything that the server says. */
  window?: number;
  limits: Limits;
}

export class OllamaBackend implements Backend {
  readonly name = "ollama";
  readonly defaultModel: string;
  readonly #host: string;
  readonly #facts = new Map<string, Promise<Facts>>();

  constructor(readonly options: OllamaOptions) {
    this.defaultModel = options.defaultModel ?? "";
    // The path of the other wire is a common slip.
    this.#host = options.url.replace(/\/+$/, "").replace(/\/(v1|api)$/, "");
  }

  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent> {
    return liftTextCalls(this.#ask(request, signal), request);
  }

  async *#ask(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const { name } = this;
    const exchange = new Exchange(name, this.options.limits, signal, this.options.key);
    const raw: RawCall[] = [];
    let written = 0;
    let reason: string | undefined;
    let counted: { input?: number; output?: number } = {};
    try {
      if (!request.model)
        throw new Fault("invalid", `${name}: no model is chosen; set OLLIE_MODEL or the agent's model`);
      const facts = await this.#about(request.model, signal);
      const client = await this.#client(exchange, true);
      for await (const part of await client.chat(chatRequest(request, facts))) {
        const { content, thinking, tool_calls: calls } = part.message ?? {};
        if (thinking) yield { type: "reasoning", text: thinking };
        if (content) yield { type: "text", text: content };
        written += (thinking?.length ?? 0) + (content?.length ?? 0);
        for (const call of calls ?? []) raw.push(rawCall(call));
        if (part.done) {
          reason = part.done_reason || "stop";
          counted = { input: part.prompt_eval_count, output: part.eval_count };
        }
      }
      if (exchange.failure) throw exchange.failure;
      // A server that has only loaded or unloaded the model has not answered.
      if (reason === "load" || reason === "unload")
        throw broken(name, `the model was ${reason}ed instead of asked`);
      const { calls, finish } = passGate({ backend: name, reason, calls: raw, history: request.messages });
      for (const call of calls) written += call.name.length + call.args.length;
      const guess = guessUsage(request, written);
      const { input = guess.input, output = guess.output } = counted;
      // The server leaves a count out when it took everything from its cache.
      const estimated = counted.input === undefined || counted.output === undefined;
      yield {
        type: "usage",
        usage: { input, cacheRead: 0, cacheWrite: 0, output, ...(estimated && { estimated }) },
      };
      for (const call of calls) yield { type: "call", call };
      yield { type: "finish", reason: finish };
    } catch (error) {
      // The library's own words for a stream without `done` are about its insides.
      const missing = reason === undefined && /Did not receive done/.test(String(error));
      throw exchange.verdict(missing ? broken(name, "the answer broke off before its end") : error);
    } finally {
      exchange.dispose();
    }
  }

  async models(signal: AbortSignal): Promise<ModelInfo[]> {
    try {
      const { models } = await this.#lookup(signal, (client) => client.list());
      return models.map(({ model, name }) => ({ id: model || name }));
    } catch (error) {
      throw error instanceof BackendError ? error.fault : error;
    }
  }

  async window(model: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      return (await this.#about(model, signal)).window;
    } catch {
      return undefined;
    }
  }

  #about(model: string, signal: AbortSignal): Promise<Facts> {
    let facts = this.#facts.get(model);
    if (!facts) {
      facts = this.#learn(model);
      this.#facts.set(model, facts);
    }
    return asLongAs(signal, facts);
  }

  async #learn(model: string): Promise<Facts> {
    try {
      return await this.#lookup(never, async (client) => {
        const [shown, running] = await Promise.all([
          client.show({ model }),
          client.ps().catch(() => ({ models: [] })),
        ]);
        const loaded = running.models.find((one) => one.model === model || one.name === model);
        return readFacts(shown, loaded, this.options.window);
      });
    } catch (error) {
      const refused = error instanceof BackendError && error.detail.status !== undefined;
      // A model that is not there may be fetched, a host may come up: neither is remembered.
      if (!refused || /model.*not found/.test(error.message)) this.#facts.delete(model);
      if (!refused) throw error;
      // Old servers, and other servers of this wire, have no such request. What is wrong otherwise, the question itself will tell.
      return { window: this.options.window ?? usualWindow };
    }
  }

  async #lookup<T>(signal: AbortSignal, ask: (client: Ollama) => Promise<T>): Promise<T> {
    const exchange = new Exchange(this.name, lookupLimits, signal, this.options.key);
    try {
      return await ask(await this.#client(exchange, false));
    } catch (error) {
      throw exchange.verdict(error);
    } finally {
      exchange.dispose();
    }
  }

  async #client(exchange: Exchange, streams: boolean) {
    const { Ollama } = await import("ollama");
    const read = (body: AsyncIterable<Uint8Array>) => objects(body, exchange);
    return new Ollama({
      host: this.#host,
      headers: this.options.key ? { Authorization: `Bearer ${this.options.key}` } : {},
      // Proxies serve this wire under any type of JSON.
      fetch: watchedFetch(exchange, streams ? { streams: () => true, read } : undefined),
    });
  }
}
