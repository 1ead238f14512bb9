/** Notices a model that goes in circles. Pure bookkeeping over one turn. */

/** The same call with the same arguments and the same result: a note to the model, then the end of the turn. */
const repeatNote = 3;
const repeatStop = 5;
/** Rounds in a row in which every call failed. */
const failNote = 5;
const failStop = 10;

export class LoopGuard {
  readonly #seen = new Map<string, number>();
  #failedRounds = 0;
  #worst = { count: 0, name: "" };
  #noted = false;
  #failNoted = false;

  /**
   * One settled round. Counts over the whole turn, so that A, B, A, B is seen as well as A, A, A. Equal calls side by side count once:
   * whoever makes them has not seen a result yet.
   */
  round(results: readonly { name: string; args: string; text: string; ok: boolean }[]): void {
    this.#worst = { count: 0, name: "" };
    const keys = new Map<string, string>();
    for (const { name, args, text } of results)
      keys.set(
        new Bun.CryptoHasher("sha256").update(JSON.stringify([name, args, text])).digest("base64"),
        name,
      );
    for (const [key, name] of keys) {
      const count = (this.#seen.get(key) ?? 0) + 1;
      this.#seen.set(key, count);
      if (count > this.#worst.count) this.#worst = { count, name };
    }
    this.#failedRounds = results.some((result) => result.ok) ? 0 : this.#failedRounds + 1;
    if (this.#failedRounds === 0) this.#failNoted = false;
  }

  /** Why the turn has to end, if it has to. */
  stop(): string | undefined {
    if (this.#worst.count >= repeatStop)
      return `the model made the same ${this.#worst.name} call ${this.#worst.count} times with the same result`;
    if (this.#failedRounds >= failStop)
      return `every tool call of the last ${this.#failedRounds} rounds failed`;
    return undefined;
  }

  /** What to tell the model before the next request, at most once for each kind of trouble. */
  note(): string | undefined {
    if (this.#worst.count >= repeatNote && !this.#noted) {
      this.#noted = true;
      return `You have made the same ${this.#worst.name} call ${this.#worst.count} times and got the same result each time. Do something else, or say what blocks you.`;
    }
    if (this.#failedRounds >= failNote && !this.#failNoted) {
      this.#failNoted = true;
      return `Every tool call of the last ${this.#failedRounds} rounds failed. Read the errors, change your approach, or say what blocks you.`;
    }
    return undefined;
  }
}
