/** The texts of `cost`, `usage` and `ctxsz`. */
import type { AgentState } from "../store/agent-state.ts";

/** `$0.0123`, or `unknown` where the price of a request is not known. */
function dollars(amount: number | undefined): string {
  return amount === undefined ? "unknown" : `$${amount.toFixed(4)}`;
}

/** `last`: of the agent's last turn. `session`: of all turns of all agents of its session. */
export function costText(last: number | undefined, session: number | undefined): string {
  return `costLast=${dollars(last)}\ncostSession=${dollars(session)}\n`;
}

/** The sum, or undefined as soon as one part is. */
export function sumOfCosts(states: readonly AgentState[]): number | undefined {
  let sum = 0;
  for (const { total } of states) {
    if (total.cost === undefined) return undefined;
    sum += total.cost;
  }
  return sum;
}

export function usageText({ total }: AgentState): string {
  const guess = total.estimated ? " [estimated]" : "";
  return [
    `in=${total.input + total.cacheRead + total.cacheWrite}${guess}`,
    `out=${total.output}${guess}`,
    `cached=${total.cacheRead}`,
    `reasoning=${total.reasoning}`,
    `requests=${total.requests}`,
    "",
  ].join("\n");
}

/** Characters a token, where no model has said otherwise. */
const charactersPerToken = 4;

/** Tokens of a text that no model has counted yet. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

/** Tokens that the last request and its answer took up, as the provider counted them; undefined where there was none or it did not count. */
export function lastContext({ lastRequest }: AgentState): number | undefined {
  if (!lastRequest || lastRequest.usage.estimated) return undefined;
  const { input, cacheRead, cacheWrite, output } = lastRequest.usage;
  return input + cacheRead + cacheWrite + output;
}

/** `EST / WINDOW (P%)`; the window is `unknown` until a provider has said it. */
export function contextSize(tokens: number, window: number | undefined): string {
  if (!window) return `${tokens} / unknown\n`;
  return `${tokens} / ${window} (${Math.round((100 * tokens) / window)}%)\n`;
}
