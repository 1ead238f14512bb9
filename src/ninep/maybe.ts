/** Working on values that may be there already: what is at hand is answered in the same turn, without a detour by a promise. */
import type { Maybe } from "./file.ts";

/** `next` on the value, now if it is there. */
export function andThen<T, U>(value: Maybe<T>, next: (value: T) => Maybe<U>): Maybe<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `step`, and `cleanup` as soon as that has failed. */
export function orElse<T>(step: () => Maybe<T>, cleanup: () => void): Maybe<T> {
  try {
    const value = step();
    if (!(value instanceof Promise)) return value;
    return value.catch((error) => {
      cleanup();
      throw error;
    });
  } catch (error) {
    cleanup();
    throw error;
  }
}

/** The error with which `step` fails, undefined if it does not. */
export function failure(step: () => Maybe<unknown>): Maybe<unknown> {
  try {
    const value = step();
    return value instanceof Promise ? value.then(() => undefined, reason) : undefined;
  } catch (error) {
    return reason(error);
  }
}

/** Never undefined, whatever was thrown. */
function reason(error: unknown): unknown {
  return error ?? new Error("failed without a reason");
}
