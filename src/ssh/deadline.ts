/** A limit for machines: the time that people take does not count. */
export class Deadline {
  private left: number;
  private since = performance.now();
  private timer: Timer | undefined;
  private holders = 0;

  /** @param limit milliseconds */
  constructor(
    limit: number,
    private readonly expire: () => void,
  ) {
    this.left = limit;
    this.start();
  }

  /** Stands still while something is waited for that a person has to do. */
  async during<T>(work: Promise<T>): Promise<T> {
    if (this.holders++ === 0 && this.timer) {
      clearTimeout(this.timer);
      this.left -= performance.now() - this.since;
    }
    try {
      return await work;
    } finally {
      if (--this.holders === 0 && this.timer) this.start();
    }
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private start(): void {
    this.since = performance.now();
    this.timer = setTimeout(this.expire, Math.max(this.left, 0));
  }
}
