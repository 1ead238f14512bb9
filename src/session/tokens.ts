/** The texts of `cost`, `usage` and `ctxsz`. */
import type { AgentState } from "../store/agent-state.ts";

/** `$0.0123`, or `unknown` where the price of a request is not known. */
function dollars(amount: number | undefined): string {
  return amount === undefined ? "unknown" : `$${amount.toFixed(4)}`;
}

export function costText({ costLast, costSession }: AgentState): string {
  return `costLast=${dollars(costLast)}\ncostSession=${dollars(costSession)}\n`;
}

export function usageText({ usage, requests }: AgentState): string {
  const guess = usage.estimated ? " [estimated]" : "";
  return [
    `in=${usage.input + usage.cacheRead + usage.cacheWrite}${guess}`,
    `out=${usage.output}${guess}`,
    `cached=${usage.cacheRead}`,
    `reasoning=${usage.reasoning ?? 0}`,
    `requests=${requests}`,
    "",
  ].join("\n");
}

/** Characters a token, where no model has said otherwise. */
const charactersPerToken = 4;

/** `EST / WINDOW (P%)`; the window is `unknown` until a provider has said it. */
export function contextSize(characters: number, window: number | undefined): string {
  const estimate = Math.ceil(characters / charactersPerToken);
  if (!window) return `${estimate} / unknown`;
  return `${estimate} / ${window} (${Math.round((100 * estimate) / window)}%)`;
}
