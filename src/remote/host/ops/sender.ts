/**
 * Sends what an operation prints to who follows it, as it comes: of each stream at most `window` bytes that have not been acknowledged. The
 * rest waits in the spool, so that a slow client costs neither memory nor the program's time.
 */
import { window } from "../../protocol/limits.ts";
import type { OpOutput } from "../../protocol/operation.ts";
import type { Source } from "./spool.ts";

export type StreamName = OpOutput["stream"];

/** Bytes of a piece: small, since many are on the way; base64 has no rest of them. */
const pieceBytes = 48 * 1024;
/** What is read is text before the next is. */
const space = Buffer.allocUnsafeSlow(pieceBytes);

interface Progress {
  /** Bytes from the start, whether sent or passed over. */
  sent: number;
  acked: number;
}

export class Sender {
  readonly #progress = new Map<StreamName, Progress>();

  /** @param stepAt which step has printed the byte at an offset */
  constructor(
    private readonly opId: string,
    private readonly streams: ReadonlyMap<StreamName, Source>,
    private readonly from: Readonly<Record<string, number>>,
    private readonly stepAt: (stream: StreamName, offset: number) => number,
    private readonly send: (output: OpOutput) => void,
  ) {}

  ack(stream: StreamName, off: number): void {
    const progress = this.#progress.get(stream);
    if (!progress) return;
    progress.acked = Math.max(progress.acked, Math.min(off, progress.sent));
    this.pump();
  }

  /** Nothing of what has been printed so far waits for an ack. */
  get drained(): boolean {
    return [...this.streams].every(([name, { size }]) => {
      const { sent, acked } = this.#of(name);
      return sent >= size || sent - acked < window;
    });
  }

  /** Sends what there is and may be sent. */
  pump(): void {
    for (const [name, source] of this.streams) {
      const progress = this.#of(name);
      while (progress.sent < source.size) {
        const room = window - (progress.sent - progress.acked);
        if (room <= 0) break;
        const { off, bytes } = source.read(progress.sent, Math.min(pieceBytes, room), space);
        // What the host has not kept needs no ack.
        if (progress.acked === progress.sent) progress.acked = off;
        const whole = name === "text" ? wholeCharacters(bytes) : bytes;
        progress.sent = off + whole.length;
        if (whole.length === 0) break;
        const data = name === "text" ? whole.toString("utf8") : whole.toString("base64");
        this.send({ opId: this.opId, step: this.stepAt(name, off), stream: name, off, data });
      }
    }
  }

  #of(name: StreamName): Progress {
    let progress = this.#progress.get(name);
    if (!progress) {
      const from = Math.max(0, this.from[name] ?? 0);
      progress = { sent: from, acked: from };
      this.#progress.set(name, progress);
    }
    return progress;
  }
}

/** Without the beginning of a character whose rest is still to come; UTF-8 (RFC 3629). Bytes that are no UTF-8 stay. */
export function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
