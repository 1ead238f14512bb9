/** What is told of a host that calls of a turn wait for: nothing at first, since most links come back; then once that it is away, and once that it is back. */

/** Milliseconds that are waited at most. */
const longest = 2 ** 31 - 1;

export class Outage {
  #since?: number;
  #timer?: ReturnType<typeof setTimeout>;
  #told = false;

  constructor(
    /** Milliseconds until it is told. */
    private readonly grace: () => number,
    private readonly say: (text: string) => void,
  ) {}

  /** Also told by each of several calls. */
  lost(host: string): void {
    if (this.#since !== undefined) return;
    const since = Date.now();
    this.#since = since;
    this.#timer = setTimeout(() => this.#tell(host, since), Math.min(this.grace(), longest));
    this.#timer.unref();
  }

  back(host: string): void {
    if (this.#told) this.say(`${host} is back; the turn goes on.`);
    this.over();
  }

  /** Nobody waits any more. */
  over(): void {
    clearTimeout(this.#timer);
    this.#since = undefined;
    this.#told = false;
  }

  #tell(host: string, since: number): void {
    this.#told = true;
    this.say(
      `${host} has been unreachable since ${new Date(since).toISOString()}, and this turn is paused. What runs there goes on. The turn goes on by itself when the host is back; reconnect tries at once, stop ends the turn.`,
    );
  }
}
