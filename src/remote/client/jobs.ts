/** Background jobs on the host, as the session's own jobs stand before them. A job's id there is the one of its operation. */
import type { OpReport } from "../protocol/operation.ts";

/** How it ended: by itself, by a signal, or the host was restarted and nobody knows. */
export interface RemoteEnding {
  how: "exited" | "killed" | "lost";
  /** The exit status, or the signal's name. */
  detail?: string;
}

export interface RemoteJob {
  readonly opId: string;
  /** What is known of it, which is old while the host is out of reach. */
  readonly report: OpReport;
  /** Undefined while it runs. */
  readonly ending: RemoteEnding | undefined;
  /** Bytes of its output that are known of. */
  readonly length: number;
  /** Called at each change of the three above. */
  watch(listener: () => void): () => void;
  /**
   * Resolves when it has ended, however long the host is out of reach meanwhile.
   * @throws CodedFault where the host knows nothing of it any more, or cannot be used
   */
  ended(signal: AbortSignal): Promise<RemoteEnding>;
  /**
   * Output from `offset` on, at most `count` bytes of it; `next` is where the next read goes on, and lies further ahead than the bytes reach
   * where the host has dropped some. Waits while the host is out of reach.
   */
  read(offset: number, count: number, signal: AbortSignal): Promise<{ bytes: Uint8Array; next: number }>;
  /** Ends it and all that it has started. Waits while the host is out of reach. */
  kill(signal: AbortSignal): Promise<void>;
  /** @param number of a signal, for its processes */
  signal(number: number, signal: AbortSignal): Promise<void>;
}

export interface RemoteJobs {
  /** Those that the host knows, and those that this server has started. Oldest first. */
  list(): RemoteJob[];
  /** Also an operation that somebody waited for once: whoever did may have ended since, and then it goes on like a job. */
  get(opId: string): RemoteJob | undefined;
  /** Called when there is another one. */
  watch(listener: () => void): () => void;
}
