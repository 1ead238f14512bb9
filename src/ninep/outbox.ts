/** What a connection has to send: messages are encoded into one buffer, which goes out in as few writes as the stream allows. */
import type { ByteStream } from "./stream.ts";
import { Writer } from "./wire.ts";

const firstSize = 64 * 1024;
const largestSpare = 4 * 1024 * 1024;
const none: Buffer = Buffer.alloc(0);
/** Buffers between two uses. An idle connection owns none, and two are enough for those that are busy in one turn. */
const spare: Buffer[] = [];

export class Outbox {
  /** Encode here, then `flush` or `flushSoon`. */
  readonly writer = new Writer(none);
  private sent = 0;
  private scheduled = false;
  private closed = false;

  constructor(private readonly stream: ByteStream) {}

  /** Bytes encoded and not yet taken by the stream. */
  get unsent(): number {
    return this.writer.end - this.sent;
  }

  /** To be called before encoding: makes sure that there is a buffer. */
  begin(): Writer {
    const { writer } = this;
    if (writer.bytes.length === 0) writer.bytes = spare.pop() ?? Buffer.allocUnsafeSlow(firstSize);
    else if (this.sent > writer.bytes.length / 2) this.compact();
    return writer;
  }

  /** Gives the stream what it takes; returns the number of bytes. The rest waits for the next flush. */
  flush(): number {
    const { writer } = this;
    const length = writer.end - this.sent;
    if (length === 0 || this.closed) return 0;
    const count = this.stream.write(writer.bytes.subarray(this.sent, writer.end));
    this.sent += count;
    if (count === length) this.release();
    return count;
  }

  /** Flushes at the end of this turn, so that what is answered together goes out together. */
  flushSoon(done?: (count: number) => void): void {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(() => {
      this.scheduled = false;
      const count = this.flush();
      done?.(count);
    });
  }

  /** Forgets what is unsent and sends nothing any more. */
  close(): void {
    this.closed = true;
    this.release();
  }

  private compact(): void {
    this.writer.bytes.copyWithin(0, this.sent, this.writer.end);
    this.writer.end -= this.sent;
    this.sent = 0;
  }

  private release(): void {
    const { bytes } = this.writer;
    if (bytes.length > 0 && bytes.length <= largestSpare && spare.length < 2) spare.push(bytes);
    this.writer.bytes = none;
    this.writer.end = this.sent = 0;
  }
}
