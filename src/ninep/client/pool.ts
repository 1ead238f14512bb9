/** Numbers that are in use or not: tags and fids. */
import { NineError, phrase } from "../errors.ts";

export class Pool {
  private readonly free: number[] = [];
  private next = 0;

  /** Hands out 0 to `limit` - 1. */
  constructor(private readonly limit: number) {}

  take(): number {
    const number = this.free.pop();
    if (number !== undefined) return number;
    if (this.next === this.limit)
      throw new NineError(phrase.again, `${this.limit} requests or fids are in use`);
    return this.next++;
  }

  give(number: number): void {
    this.free.push(number);
  }
}
