/** Runs asynchronous jobs one after the other, in the order they came. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#last.then(job);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when every job given so far is over. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
