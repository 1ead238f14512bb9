/** One request that a client has sent and that has not been answered. */
import { NineError, phrase } from "../errors.ts";
import type { Peer, Request } from "../file.ts";
import type { Fid } from "./fid.ts";

export class Call implements Request {
  /** Counts as work of this fid: the fid's end waits for it. */
  fid?: Fid;
  /** The fid that this request is about to make. */
  reserved?: Fid;
  /** What the request is about, for the one who is told of refusals. */
  path = "";
  /** Ended by the end of its fid: a read or an open, which may take for ever. */
  blocking = false;
  /** Answered, or never to be answered: what its work still brings is dropped. */
  settled = false;
  /** The connection is gone or has begun anew: nobody waits for the answer. */
  mute = false;
  /** Tags of the Tflush requests that are answered right after this one. */
  flushes?: number[];
  /** Of a waiting Tflush: the request that it waits for. */
  flushing?: Call;
  /** Ends the patience with a tree that does not heed the signal. */
  timer?: Timer;
  private controller?: AbortController;
  private reason?: NineError;

  constructor(
    readonly tag: number,
    public peer: Peer,
  ) {}

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.reason) this.controller.abort(this.reason);
    }
    return this.controller.signal;
  }

  get interrupted(): boolean {
    return this.reason !== undefined;
  }

  interrupt(): void {
    if (this.reason) return;
    this.reason = new NineError(phrase.interrupted);
    this.controller?.abort(this.reason);
  }

  /** Between two steps of a request: an interrupted one goes no further. */
  check(): void {
    if (this.reason) throw this.reason;
  }
}
