/** Placeholder: see the contract below; the implementation lands with the folder. */
export interface RunOptions {
  /** argv[0] is a path; nothing is looked up and no shell is involved. */
  argv: string[];
  cwd: string;
  /** The whole environment of the child; nothing is inherited. */
  env: Record<string, string>;
  stdin: string | Uint8Array;
  /** Milliseconds until the group is ended (TERM, then KILL). */
  timeout: number;
  /** Called with what was printed as it comes, cleaned for display; never awaited. */
  onOutput?: (text: string) => void;
  /** Aborted = end the group: TERM at once, KILL after 500 ms. */
  signal: AbortSignal;
  /** Where the whole output is kept, at most 10 MiB; created only when the output outgrows what a result may hold. */
  spill: string;
}

export interface RunResult {
  /** Exit status, or undefined when a signal ended it. */
  code?: number;
  signal?: string;
  ended: "exit" | "timeout" | "cancelled";
  /** stdout, then stderr under a line of its own; cleaned (UTF-8, no NUL, no ANSI, `\r` progress collapsed), head and tail within 16 KiB. */
  text: string;
  /** Bytes printed in all. */
  bytes: number;
  /** Set when `text` does not hold everything. */
  spilled?: string;
  /** Milliseconds. */
  wall: number;
  /** Processes that outlived the call and were ended, or that could not be. */
  leftovers?: string;
}
