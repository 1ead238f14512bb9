/**
 * Calls that a model writes as text. Small models served without a fitting template answer `{"name": "shell", "arguments": {…}}`, fenced
 * or in `<tool_call>` tags, where a call was meant. Only an answer that is nothing but that, and names a tool that was offered, is taken
 * for a call: an answer that merely quotes one stays text.
 */
import type { ModelCall, ModelEvent, ModelRequest } from "./backend.ts";
import { passGate } from "./gate.ts";

/** How an answer begins that may turn out to be a call: an opening, and the first key of an object. */
const opening =
  /^\s*(<tool_call>\s*|```(json|tool_call)?\s*)?\{\s*"(name|arguments|parameters|function|type)"/;
/** Longer than any opening; what has not matched by then is text. */
const longest = 48;

/** Passes events on; text is held back only while it may still be a call. */
export async function* liftTextCalls(
  events: AsyncIterable<ModelEvent>,
  request: ModelRequest,
): AsyncGenerator<ModelEvent> {
  if (request.tools.length === 0) return yield* events;
  let held = "";
  let holding = true;
  let native = false;
  try {
    for await (const event of events) {
      if (event.type === "text" && holding) {
        held += event.text;
        holding = opening.test(held) || (held.length < longest && /^\s*($|[<`{])/.test(held));
        if (holding) continue;
        yield { type: "text", text: held };
        held = "";
        continue;
      }
      if (event.type === "call") native = true;
      if (event.type === "finish" && held !== "") {
        const calls = event.reason === "stop" && !native ? callsIn(held, request) : [];
        if (calls.length > 0) {
          for (const call of calls) yield { type: "call", call };
          yield { ...event, reason: "tool-calls" };
          return;
        }
      }
      if (held !== "" && (event.type === "call" || event.type === "finish")) {
        yield { type: "text", text: held };
        held = "";
      }
      yield event;
    }
  } catch (error) {
    // What a broken answer had said is shown.
    if (held !== "") yield { type: "text", text: held };
    throw error;
  }
}

function callsIn(text: string, request: ModelRequest): ModelCall[] {
  const raw = bodies(text.trim()).map(callOf);
  if (raw.length === 0 || !raw.every((call) => call && request.tools.some((tool) => tool.name === call.name)))
    return [];
  const calls = raw.filter((call) => call !== undefined);
  return passGate({ backend: "", reason: "tool-calls", calls, history: request.messages }).calls;
}

/** The objects that the text consists of; none where there is anything beside them. */
function bodies(text: string): string[] {
  const tagged = /^(<tool_call>\s*\{[\s\S]*?\}\s*<\/tool_call>\s*)+$/.test(text);
  if (tagged)
    return text
      .split(/<\/tool_call>/)
      .slice(0, -1)
      .map((part) => part.replace(/^\s*<tool_call>/, ""));
  const fenced = /^```\w*\s*(\{[\s\S]*\})\s*```$/.exec(text);
  return [fenced?.[1] ?? text];
}

function callOf(text: string): { name: string; args: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const outer = value as { function?: unknown } | null;
  const call = (typeof outer?.function === "object" ? outer.function : outer) as Record<
    string,
    unknown
  > | null;
  const args = call?.arguments ?? call?.parameters;
  if (typeof call?.name !== "string" || args === undefined) return undefined;
  return { name: call.name, args: typeof args === "string" ? args : JSON.stringify(args) };
}
