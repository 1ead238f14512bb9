/** Which calls of one model answer may start: a pure rule over their order and classes. */
import type { Concurrency } from "../src/tools/tool.ts";

export interface Scheduled {
  concurrency: Concurrency;
  status: "waiting" | "queued" | "approving" | "running" | "cutOff" | "settled";
}

/** Calls of one answer that run side by side at most: each is a process, and a model may ask for any number. */
const atOnce = 32;

/**
 * The waiting calls that may start now. Neighbouring `read` calls run side by side, up to a limit; a `write` or `exclusive` call waits for all calls
 * before it and holds up all after it, so that a read behind an edit sees the edit.
 */
export function startable<C extends Scheduled>(calls: readonly C[]): C[] {
  const found: C[] = [];
  let running = calls.filter(({ status }) => status !== "waiting" && status !== "settled").length;
  for (const call of calls) {
    if (call.status === "settled") continue;
    if (call.concurrency === "read") {
      if (call.status === "waiting" && running < atOnce) {
        found.push(call);
        running++;
      }
      continue;
    }
    const first = calls.every(
      (other) => other === call || other.status === "settled" || isAfter(calls, other, call),
    );
    if (first && call.status === "waiting") found.push(call);
    break;
  }
  return found;
}

function isAfter<C>(calls: readonly C[], one: C, other: C): boolean {
  return calls.indexOf(one) > calls.indexOf(other);
}
