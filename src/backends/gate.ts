/**
 * The finish gate. Calls are held back until the provider's own end signal has come; a stream without one has failed, and none of its
 * calls exists for the rest of the program.
 */
import { Fault } from "../fault.ts";
import { BackendError, type Finish, type Message, type ModelCall } from "./backend.ts";

/** A call as it came over the wire. */
export interface RawCall {
  id?: string;
  name: string;
  args: string;
}

export interface Ending {
  backend: string;
  /** The end signal in the provider's spelling; undefined = none came. */
  reason: string | undefined;
  /** The model declined to answer, whatever the end signal says. */
  refused?: boolean;
  calls: RawCall[];
  /** The conversation so far: its call ids are taken. */
  history: Message[];
}

/**
 * Lets calls through, with ids that are unique in the conversation and `{}` for empty arguments.
 * @throws BackendError, retryable, where the stream was cut or its end contradicts its content
 */
export function passGate(ending: Ending): { calls: ModelCall[]; finish: Finish } {
  const { backend, reason } = ending;
  if (reason === undefined) throw broken(backend, "the answer broke off before its end");
  if (failures.test(reason)) throw broken(backend, `the answer ended with "${reason}"`);
  const finish = ending.refused ? "filter" : finishOf(reason);
  const pending = ending.calls.length > 0;
  if (!finish && pending)
    throw broken(backend, `the answer ended with "${reason}", which is no reason to trust its tool calls`);
  if (!pending && finish === "tool-calls")
    throw broken(backend, "the answer announced tool calls but had none");
  return {
    calls: distinct(ending.calls, ending.history),
    // Several servers end an answer that has calls with a plain "stop".
    finish: pending && finish === "stop" ? "tool-calls" : (finish ?? "stop"),
  };
}

/** A stream that is not to be trusted; the same request may be sent again. */
export function broken(backend: string, what: string, cause?: unknown): BackendError {
  return new BackendError(new Fault("io", `${backend}: ${what}`, { cause }), { retryable: true });
}

const failures =
  /^(error|failed|network_error|insufficient_system_resource|interrupted|abort(ed)?|cancel+ed)$/i;

function finishOf(reason: string): Finish | undefined {
  if (/^(stop|stop_sequence|end_turn|eos|eos_token|complete[d]?|done)$/i.test(reason)) return "stop";
  if (/^(tool[_-]?calls?|tool_use|function_call)$/i.test(reason)) return "tool-calls";
  if (/^(length|max_(output_|completion_)?tokens|model_length)$/i.test(reason)) return "length";
  if (/^(content[_-]?filter(ed)?|safety|refusal|recitation|blocklist|prohibited_content)$/i.test(reason))
    return "filter";
  return undefined;
}

function distinct(calls: RawCall[], history: Message[]): ModelCall[] {
  const taken = new Set<string>();
  for (const message of history)
    if (message.role === "assistant") for (const call of message.calls) taken.add(call.id);
  return calls.map(({ id, name, args }) => {
    let unique = id?.trim() ?? "";
    while (unique === "" || taken.has(unique)) unique = freshId();
    taken.add(unique);
    return { id: unique, name, args: args.trim() === "" ? "{}" : args };
  });
}

const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";

/** Nine letters and digits: the one form of id that every provider takes back (Mistral takes no other). */
function freshId(): string {
  return Array.from(
    crypto.getRandomValues(new Uint8Array(9)),
    (byte) => alphabet[byte % alphabet.length],
  ).join("");
}

/**
 * A call's arguments as an object, as Ollama and many chat templates need them in the history. What is no JSON object (a call that was
 * refused for it) is kept under one key.
 */
export function argsObject(args: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(args);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Falls through: the text itself is all there is.
  }
  return { invalid: args };
}
