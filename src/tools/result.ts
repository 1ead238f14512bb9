/** What a call's result says of it, beside what its program has printed. */
import type { Secrets } from "../config/secrets.ts";
import type { RunResult } from "../exec/process.ts";
import { Fault } from "../fault.ts";
import type { CallOutcome, Tool } from "./tool.ts";
import { understands } from "./wishes.ts";

/** Characters of the arguments that are shown when they had to be repaired. */
const shownArguments = 300;

export interface FinishedCall {
  tool: Tool;
  args: Record<string, unknown>;
  /** What was done to the arguments before they made sense. */
  repaired?: string;
  /** Seconds that it was allowed to take. */
  limit: number;
  /** Its reason says who has cancelled the call. */
  signal: AbortSignal;
  secrets: Secrets;
  /** What else there is to say, ahead of how it ended; empty ones are left out. */
  remarks: readonly string[];
  /** How far it was confined; undefined: as far as the policy wants. */
  confined: string | undefined;
}

export function outcomeOf(result: RunResult, call: FinishedCall): CallOutcome {
  const { args, repaired, secrets, remarks } = call;
  const note = repaired
    ? `[arguments repaired: ${repaired}; ran with ${shorten(secrets.mask(JSON.stringify(args)))}]\n`
    : "";
  const output = result.text.replace(/\n$/, "") || "(no output)";
  const closing = [...remarks, status(result, call)]
    .filter((line) => line !== "")
    .map((line) => `[${secrets.mask(line)}]`)
    .join("\n");
  const text = [`${note}${output}`, ...(closing ? [closing] : [])].join("\n");
  return { ...verdict(result), text, closing };
}

function verdict({ ended, code }: RunResult): Pick<CallOutcome, "ok" | "how"> {
  if (ended === "cancelled") return { ok: false, how: "cancelled" };
  if (ended === "timeout") return { ok: false, how: "timedOut" };
  return code === 0 ? { ok: true, how: "done" } : { ok: false, how: "failed" };
}

/** One line: chat shows what a tool prints as it comes, and of the result then only this. */
function status(result: RunResult, call: FinishedCall): string {
  const parts = [ending(result, call), result.leftovers, call.confined];
  return parts.filter((part) => part).join(", ");
}

function ending(
  { ended, code, signal, wall }: RunResult,
  { tool, limit, signal: stop }: FinishedCall,
): string {
  if (ended === "cancelled") {
    const how = stop.reason instanceof Fault ? stop.reason.message : "cancelled by the user";
    return `${how} after ${(wall / 1000).toFixed(1)} s`;
  }
  if (ended === "timeout") {
    const more = understands(tool, "timeout") ? '; "timeout" asks for more' : "";
    return `killed after ${limit} s (not a crash: that is its time limit${more}), what it printed until then is above`;
  }
  if (signal) return `killed by ${signal}`;
  return code === 0 ? "" : `exit ${code}`;
}

function shorten(text: string): string {
  return text.length > shownArguments ? `${text.slice(0, shownArguments)}…` : text;
}
