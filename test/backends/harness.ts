/** What the tests of all backends share. */
import {
  type Backend,
  BackendError,
  type Message,
  type ModelEvent,
  type ModelRequest,
} from "../../src/backends/backend.ts";
import type { Limits } from "../../src/backends/exchange.ts";

/** Generous: no test waits for one of these. */
export const limits: Limits = { connect: 10_000, first: 10_000, idle: 10_000 };

const tool = (name: string) => ({
  name,
  description: `The tool ${name}.`,
  schema: { type: "object", properties: {} },
});

export function ask(prompt: string | Message[], more: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "m",
    system: "Be brief.",
    messages: typeof prompt === "string" ? [{ role: "user", text: prompt }] : prompt,
    tools: ["read", "write", "list", "shell"].map(tool),
    params: {},
    ...more,
  };
}

export interface Outcome {
  events: ModelEvent[];
  text: string;
  reasoning: string;
  calls: { id: string; name: string; args: string }[];
  finish?: string;
  usage?: Extract<ModelEvent, { type: "usage" }>["usage"];
  opaque?: Extract<ModelEvent, { type: "finish" }>["opaque"];
  error?: Error;
  /** The error's detail, where it is a BackendError. */
  detail?: BackendError["detail"];
}

/** Reads a stream to its end, whatever the end is. */
export async function play(
  backend: Backend,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
  onEvent?: (event: ModelEvent) => void,
): Promise<Outcome> {
  const outcome: Outcome = { events: [], text: "", reasoning: "", calls: [] };
  try {
    for await (const event of backend.stream(request, signal)) {
      outcome.events.push(event);
      if (event.type === "text") outcome.text += event.text;
      else if (event.type === "reasoning") outcome.reasoning += event.text;
      else if (event.type === "call") outcome.calls.push(event.call);
      else if (event.type === "usage") outcome.usage = event.usage;
      else {
        outcome.finish = event.reason;
        outcome.opaque = event.opaque;
      }
      onEvent?.(event);
    }
  } catch (error) {
    outcome.error = error as Error;
    if (error instanceof BackendError) outcome.detail = error.detail;
  }
  return outcome;
}

/** Names and arguments of calls, for comparing; and that their ids are there and differ. */
export function called(outcome: Outcome): string[] {
  const ids = outcome.calls.map((call) => call.id);
  if (new Set(ids).size !== ids.length || ids.some((id) => id.trim() === ""))
    throw new Error(`ids: ${ids.join()}`);
  return outcome.calls.map((call) => `${call.name} ${call.args}`);
}
