/** Lets ordinary calls of a session run together and an `exclusive` one alone. First come, first served. */
export class Gate {
  #inside = 0;
  #alone = false;
  readonly #line: { alone: boolean; enter: () => void }[] = [];

  /** Resolves with the function that leaves again (to be called once or more; only the first call counts). */
  enter(alone: boolean): Promise<() => void> {
    return new Promise((resolve) => {
      this.#line.push({ alone, enter: () => resolve(this.#leaver(alone)) });
      this.#advance();
    });
  }

  #leaver(alone: boolean): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#inside--;
      if (alone) this.#alone = false;
      this.#advance();
    };
  }

  #advance(): void {
    for (let next = this.#line[0]; next; next = this.#line[0]) {
      if (this.#alone || (next.alone && this.#inside > 0)) return;
      this.#line.shift();
      this.#inside++;
      this.#alone = next.alone;
      next.enter();
    }
  }
}
