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
  grant(count: number): number {
    return Math.min(count, Math.max(smallRead, this.limit - this.promised));
  }

  /** Counts what was granted until the read is done. */
  async running(granted: number, read: Promise<Uint8Array>): Promise<Uint8Array> {
    this.promised += granted;
    try {
      return await read;
    } finally {
      this.promised -= granted;
    }
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
