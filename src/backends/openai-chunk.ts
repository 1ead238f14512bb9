/**
 * The chunks of an OpenAI-compatible stream, made alike. Servers break the wire in many small ways; what reaches the library after this
 * is what the OpenAI reference describes. On the way everything is noted that the library drops: costs, reasoning details, error codes.
 */
import type { Usage } from "./backend.ts";
import { broken } from "./gate.ts";
import { isRecord, providerError } from "./provider-error.ts";

type Fields = Record<string, unknown>;

export class ChunkTap {
  /** The end signal, once it has come. */
  reason?: string;
  /** The model refused (`delta.refusal`). */
  refused = false;
  usage?: Usage;
  /** Characters of call arguments that came over the wire, to be compared with what the library made of them. */
  argumentLength = 0;
  /** `reasoning_details` of OpenRouter, put together: to be sent back as they are. */
  readonly details: Fields[] = [];

  constructor(
    readonly backend: string,
    readonly secret?: string,
  ) {}

  /**
   * Takes the data of one event and returns the chunk for the library.
   * @throws BackendError where the event is an error or no chunk at all
   */
  take(event: { name: string; data: string }): Fields {
    const chunk = parse(event.data);
    if (!chunk) throw broken(this.backend, `sent something that is not JSON: ${event.data.slice(0, 80)}`);
    // Many servers carry `error: null` along.
    if (chunk.error || event.name === "error" || chunk.object === "error")
      throw providerError({ backend: this.backend, body: chunk, secret: this.secret });
    if (isRecord(chunk.usage)) this.usage = usageOf(chunk.usage);
    const choices = Array.isArray(chunk.choices) ? chunk.choices.filter(isRecord) : [];
    return { id: chunk.id, model: chunk.model, choices: choices.map((choice) => this.#choice(choice)) };
  }

  #choice(choice: Fields): Fields {
    // "" stands for "not yet" with some.
    const reason = choice.finish_reason || undefined;
    if (typeof reason === "string") this.reason = reason;
    const delta = isRecord(choice.delta) ? choice.delta : {};
    if (typeof delta.refusal === "string" && delta.refusal !== "") this.refused = true;
    if (Array.isArray(delta.reasoning_details)) this.#keep(delta.reasoning_details.filter(isRecord));
    const calls = isRecord(delta.function_call)
      ? [{ index: 0, function: delta.function_call }]
      : delta.tool_calls;
    return {
      delta: {
        content: delta.content,
        refusal: delta.refusal,
        reasoning_content: reasoningOf(delta),
        ...(Array.isArray(calls) && { tool_calls: calls.filter(isRecord).map((call) => this.#call(call)) }),
      },
      finish_reason: reason,
    };
  }

  #call(call: Fields): Fields {
    const { name, arguments: args } = isRecord(call.function) ? call.function : ({} as Fields);
    // Arguments are a text on this wire; some servers send the object.
    const text =
      args === undefined || args === null || typeof args === "string" ? args : JSON.stringify(args);
    this.argumentLength += text?.length ?? 0;
    return {
      ...(typeof call.index === "number" && { index: call.index }),
      ...(call.id ? { id: String(call.id) } : {}),
      function: { ...(typeof name === "string" && { name }), arguments: text },
    };
  }

  #keep(details: Fields[]): void {
    for (const detail of details) {
      const last = this.details.at(-1);
      if (
        last &&
        last.type === detail.type &&
        last.index === detail.index &&
        detail.type === "reasoning.text"
      )
        Object.assign(
          last,
          detail,
          { text: `${last.text ?? ""}${detail.text ?? ""}` },
          signature(last, detail),
        );
      else this.details.push({ ...detail });
    }
  }
}

const signature = (last: Fields, detail: Fields) => {
  const found = detail.signature ?? last.signature;
  return found === undefined ? {} : { signature: found };
};

function parse(data: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The field has three names; where two are filled they say the same. */
function reasoningOf(delta: Fields): string | undefined {
  for (const text of [delta.reasoning_content, delta.reasoning])
    if (typeof text === "string" && text) return text;
  if (!Array.isArray(delta.reasoning_details)) return undefined;
  const texts = delta.reasoning_details.filter(isRecord).map((detail) => detail.text ?? detail.summary);
  return texts.filter((text) => typeof text === "string").join("") || undefined;
}

/** Counts in four disjoint buckets: on this wire the cached tokens are part of the prompt's. */
export function usageOf(usage: Fields): Usage {
  const details = isRecord(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {};
  const written = isRecord(usage.completion_tokens_details) ? usage.completion_tokens_details : {};
  const prompt = count(usage.prompt_tokens);
  // DeepSeek has a name of its own for it.
  const cacheRead = Math.min(prompt, count(details.cached_tokens) || count(usage.prompt_cache_hit_tokens));
  const cacheWrite = Math.min(prompt - cacheRead, count(details.cache_write_tokens));
  const reasoning = count(written.reasoning_tokens);
  let output = count(usage.completion_tokens);
  // xAI counts reasoning beside the completion; only the total gives it away.
  if (reasoning > 0 && count(usage.total_tokens) === prompt + output + reasoning) output += reasoning;
  const cost = costOf(usage);
  return {
    input: prompt - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output,
    ...(reasoning > 0 && { reasoning }),
    ...(cost !== undefined && { cost }),
  };
}

/** OpenRouter: USD. With a key of the user's own for the provider, `cost` is only the fee. */
function costOf(usage: Fields): number | undefined {
  if (typeof usage.cost !== "number") return undefined;
  const details = isRecord(usage.cost_details) ? usage.cost_details : {};
  return usage.cost + (usage.is_byok === true ? count(details.upstream_inference_cost) : 0);
}

const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);
