/** Tokens where the provider did not count them, and what a request cost where the provider says. */
import type { ModelRequest, Usage } from "./backend.ts";

/** Characters a token, on the average of English prose and code. */
const charactersPerToken = 4;

/**
 * A guess for a provider that reported nothing.
 * @param written characters of text, reasoning and calls that the model wrote
 */
export function guessUsage(request: ModelRequest, written: number): Usage {
  return { ...guess(request, written), estimated: true };
}

export function guess(request: ModelRequest, written: number): Usage {
  let read = request.system.length;
  if (request.tools.length > 0) read += JSON.stringify(request.tools).length;
  for (const message of request.messages) {
    read += message.text.length;
    if (message.role === "assistant")
      for (const call of message.calls) read += call.name.length + call.args.length;
  }
  return { input: tokens(read), cacheRead: 0, cacheWrite: 0, output: tokens(written) };
}

const tokens = (characters: number): number => Math.ceil(characters / charactersPerToken);

/** USD: what the provider charged, nothing for what runs at home, undefined where only a price table can tell. */
export function costOf(usage: Usage, backend: string, _model: string): number | undefined {
  if (usage.cost !== undefined) return usage.cost;
  return backend === "script" || backend === "ollama" ? 0 : undefined;
}
