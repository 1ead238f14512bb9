/** Takes in one answer of a model as it streams. */
import { BackendError, type ModelCall, type ModelEvent, type Usage } from "../backends/backend.ts";
import { Fault } from "../fault.ts";
import type { AnswerWriter } from "./answer.ts";

export type Finish = Extract<ModelEvent, { type: "finish" }>;

/** Milliseconds after which others get their turn: what is there already is taken in without a pause, and it may be a whole answer. */
const patience = 5;

/**
 * Shows the answer through `writer` and returns its calls and its end. Throws what the stream throws, a BackendError where it just
 * ends, and the signal's reason once that is aborted: what still comes after a stop belongs to nobody.
 */
export async function receive(
  stream: AsyncIterable<ModelEvent>,
  writer: AnswerWriter,
  signal: AbortSignal,
  onUsage: (usage: Usage) => void,
): Promise<{ calls: ModelCall[]; end: Finish }> {
  const calls: ModelCall[] = [];
  let end: Finish | undefined;
  let since = performance.now();
  for await (const event of stream) {
    signal.throwIfAborted();
    if (event.type === "text") writer.write("assistant", event.text);
    else if (event.type === "reasoning") writer.write("reasoning", event.text);
    else if (event.type === "call") calls.push(event.call);
    else if (event.type === "usage") onUsage(event.usage);
    else end = event;
    if (performance.now() - since < patience) continue;
    await new Promise(setImmediate);
    since = performance.now();
  }
  signal.throwIfAborted();
  if (end) return { calls, end };
  throw new BackendError(new Fault("io", "the answer ended without an end signal"), { retryable: true });
}
