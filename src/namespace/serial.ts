import type { Maybe } from "../ninep/file.ts";

/** Runs one piece of work at a time, in the order of the calls: requests on one fid may arrive before the previous one is done. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Maybe<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
