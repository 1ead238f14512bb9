/** Whether and when a failed request is sent again. Pure: who asks does the waiting. */
import { BackendError } from "./backend.ts";

/** How often a request is repeated. */
export const maxRetries = 3;
/** A provider's wish to wait longer than this (milliseconds) is not granted: better to tell the user than to stand still. */
export const maxWait = 5 * 60_000;
const firstWait = 1000;

/**
 * Milliseconds until the request may be sent again, or undefined: give up (`whyNot` says why).
 * @param attempt how often the request has been repeated already: 0 after the first failure
 * @param random a number in [0, 1), to keep many agents from knocking at the same instant
 */
export function retryDelay(
  error: unknown,
  attempt: number,
  random: () => number = Math.random,
): number | undefined {
  if (!mayRepeat(error) || attempt >= maxRetries) return undefined;
  const { retryAfter } = error.detail;
  if (retryAfter === undefined) return Math.round(firstWait * 2 ** attempt * (0.75 + random() / 2));
  // Never earlier than the provider asked for.
  return retryAfter > maxWait ? undefined : Math.round(retryAfter + random() * 250);
}

/** For the user, where `retryDelay` gave up on an error that looks as if it would pass; undefined where the error says it all. */
export function whyNot(error: unknown, attempt: number): string | undefined {
  if (!mayRepeat(error)) return undefined;
  const { retryAfter = 0 } = error.detail;
  if (retryAfter > maxWait)
    return `the provider asks to wait ${Math.ceil(retryAfter / 60_000)} minutes; at most ${maxWait / 60_000} are waited for`;
  if (attempt >= maxRetries) return `tried ${attempt + 1} times`;
  return undefined;
}

function mayRepeat(error: unknown): error is BackendError {
  return error instanceof BackendError && error.detail.retryable;
}
