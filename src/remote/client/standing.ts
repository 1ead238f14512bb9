/** Whether the host can be spoken to now, and those who wait until it can. */
import type { Fault } from "../../fault.ts";

type Standing<T> = { how: "ready"; peer: T } | { how: "away" } | { how: "failed" | "closed"; fault: Fault };

/** What operations go by. */
export interface Line<T> {
  readonly gate: Gate<T>;
  /** Milliseconds for an answer. */
  readonly limit: number;
  /** The other end does not answer as it should; it is left, and another way to it is looked for. */
  distrust(peer: T, why: Fault): void;
}

/** Who waits tells people that it does. */
export interface Patience {
  lost?(): void;
  back?(): void;
}

export class Gate<T> {
  #standing: Standing<T> = { how: "away" };
  #changed = Promise.withResolvers<void>();

  open(peer: T): void {
    this.#set({ how: "ready", peer });
  }

  shut(): void {
    this.#set({ how: "away" });
  }

  /** Whoever waits, and will wait, gets the fault. */
  fail(how: "failed" | "closed", fault: Fault): void {
    this.#set({ how, fault });
  }

  /** Undefined where one would have to wait. */
  get now(): T | undefined {
    return this.#standing.how === "ready" ? this.#standing.peer : undefined;
  }

  /**
   * Resolves when the host can be spoken to.
   * @param besides what has been found to be dead, whatever is said of it
   * @throws CodedFault where waiting does not help; the signal's reason
   */
  async wait(signal: AbortSignal, patience: Patience = {}, besides?: T): Promise<T> {
    let waiting = false;
    for (;;) {
      signal.throwIfAborted();
      const standing = this.#standing;
      if (standing.how === "ready" && standing.peer !== besides) {
        if (waiting) patience.back?.();
        return standing.peer;
      }
      if (standing.how === "failed" || standing.how === "closed") throw standing.fault;
      if (!waiting) patience.lost?.();
      waiting = true;
      await this.#change(signal);
    }
  }

  /** Resolves when something has changed, or the signal is aborted. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const abort = () => resolve();
      signal.addEventListener("abort", abort, { once: true });
      this.#changed.promise.then(() => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
    });
  }

  #set(standing: Standing<T>): void {
    this.#standing = standing;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
