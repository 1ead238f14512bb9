/** Finds out that nobody is at the other end any more, where the network does not tell. */
import { coded } from "../protocol/errors.ts";
import type { Peer } from "../protocol/peer.ts";

/** Milliseconds: of silence before a question, for its answer, and between two looks at the clock. */
const quiet = 10_000;
const patience = 15_000;
const interval = 2500;
/** Milliseconds by which a look may come late; more, and the machine has slept. */
const slept = 20_000;
/** Milliseconds for an answer after a sleep. */
const wakePatience = 10_000;

export class Heartbeat {
  #heard = performance.now();
  #looked = Date.now();
  #missed = 0;
  #asking = false;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly peer: Peer,
    private readonly lost: (error: Error) => void,
  ) {
    this.#timer = setInterval(() => this.#look(), interval);
    this.#timer.unref();
  }

  /** Something has come from the other end. */
  heard(): void {
    this.#heard = performance.now();
    this.#missed = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const woke = Date.now() - this.#looked > slept;
    this.#looked = Date.now();
    if (woke) void this.#ask(wakePatience, 1);
    else if (performance.now() - this.#heard > quiet) void this.#ask(patience, 2);
  }

  async #ask(limit: number, chances: number): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      await this.peer.request("ping", {}, { limit });
    } catch (error) {
      // An error is an answer as well.
      if ((error as { code?: string }).code !== "proto.timeout") return;
      if (++this.#missed >= chances)
        this.lost(
          coded("ssh.dropped", "the host does not answer any more", { retry: true }, { cause: error }),
        );
    } finally {
      this.#asking = false;
    }
  }
}
