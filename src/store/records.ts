/**
 * The journal of an agent: one JSON object a line, append-only, the truth from which everything else about the agent is rebuilt.
 *
 * The order of records is the order of events. What a reader does not know it must keep and ignore, so that a newer ollie's journal
 * stays readable. `at` is milliseconds since 1970.
 */
import { z } from "zod";

const call = z.object({ id: z.string(), name: z.string(), args: z.string() });
export const usageSchema = z.object({
  input: z.number(),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  output: z.number(),
  reasoning: z.number().optional(),
  cost: z.number().optional(),
  estimated: z.boolean().optional(),
});

const at = z.number();

export const recordSchema = z.discriminatedUnion("t", [
  /** First record: the agent exists. `config` is the agent config's name. */
  z.object({ t: z.literal("agent"), at, v: z.literal(1), id: z.string(), config: z.string() }),
  /** Settings that differ from the config's; null unsets. */
  z.object({ t: z.literal("cfg"), at, set: z.record(z.string(), z.string().nullable()) }),
  /** Tools loaded and unloaded. */
  z.object({ t: z.literal("tools"), at, load: z.array(z.string()), unload: z.array(z.string()) }),
  /** A text was accepted and waits. how: prompt = starts a turn by itself; queue = waits for one; inject = wants into the running turn. */
  z.object({
    t: z.literal("prompt"),
    at,
    id: z.string(),
    text: z.string(),
    how: z.enum(["prompt", "queue", "inject"]),
  }),
  /** A waiting text was taken out again. */
  z.object({ t: z.literal("dequeue"), at, id: z.string() }),
  /** A turn began with a waiting text. Its user block stands in chat from byte `chatAt` to byte `offset`. */
  z.object({
    t: z.literal("turn"),
    at,
    id: z.string(),
    prompt: z.string(),
    chatAt: z.number(),
    offset: z.number(),
  }),
  /** A waiting inject was given to the model as a user message, here in the history. */
  z.object({ t: z.literal("inject"), at, prompt: z.string() }),
  /** A note of the runtime to the model, given as a user message (stuck model, last step …). */
  z.object({ t: z.literal("note"), at, text: z.string() }),
  /** The model's answer to one request. `partial`: the stream was cut or stopped; then `calls` is empty. */
  z.object({
    t: z.literal("assistant"),
    at,
    text: z.string(),
    reasoning: z.string().optional(),
    calls: z.array(call),
    finish: z.string().optional(),
    partial: z.boolean().optional(),
    opaque: z.object({ backend: z.string(), model: z.string(), data: z.unknown() }).optional(),
  }),
  /** A call is about to run. On disk before it does. `op`: the operation that it is on another host. */
  z.object({ t: z.literal("call"), at, id: z.string(), op: z.string().optional() }),
  /** An operation whose end the turn has not seen is accounted for: it is a job of the session now, or chat tells how it ended. */
  z.object({ t: z.literal("op"), at, op: z.string() }),
  /** Its one result, as the model gets it. */
  z.object({
    t: z.literal("result"),
    at,
    id: z.string(),
    name: z.string(),
    ok: z.boolean(),
    text: z.string(),
    how: z.enum(["done", "failed", "cancelled", "timedOut", "refused"]),
  }),
  /** Tokens and cost of one request. */
  z.object({
    t: z.literal("usage"),
    at,
    backend: z.string(),
    model: z.string(),
    usage: usageSchema,
    cost: z.number().optional(),
  }),
  /** The turn is over and all of it is in chat. */
  z.object({
    t: z.literal("end"),
    at,
    turn: z.string(),
    how: z.enum(["done", "stopped", "failed", "interrupted"]),
    reason: z.string().optional(),
  }),
  /** The history begins anew here. */
  z.object({ t: z.literal("clear"), at }),
]);

/** `t` and all other fields of a record but `at`, which the journal adds. */
export type JournalRecord = z.infer<typeof recordSchema>;
type Unstamped<R> = R extends unknown ? Omit<R, "at"> : never;
export type NewRecord = Unstamped<JournalRecord>;

export interface Waiting {
  id: string;
  text: string;
  how: "prompt" | "queue" | "inject";
}
