/** Keeps what one connection may have in memory within bounds, whatever the client sends at once. */
import { phrase } from "../errors.ts";
import { ProtocolError } from "../wire.ts";

/** Granted to every read, in bytes. */
const smallRead = 8192;

export class Budget {
  /** Bytes that running reads may return. */
  private promised = 0;
  /** Bytes of writes that wait for an earlier one on the same fid. */
  private queued = 0;

  constructor(private readonly limit: number) {}

  /** How much a read may return: less than it asked for when others, still running, may return much. */
  promise(count: number): number {
    const granted = Math.min(count, Math.max(smallRead, this.limit - this.promised));
    this.promised += granted;
    return granted;
  }

  fulfil(granted: number): void {
    this.promised -= granted;
  }

  /** A copy of the data for later; refused when too much waits already. */
  queue(data: Uint8Array): Uint8Array {
    if (this.queued + data.length > this.limit) {
      throw new ProtocolError(phrase.again, "too many bytes wait to be written on this connection");
    }
    this.queued += data.length;
    return Buffer.from(data);
  }

  unqueue(data: Uint8Array): void {
    this.queued -= data.length;
  }
}
