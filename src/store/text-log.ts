/** An append-only text on disk. */
export interface TextLog {
  /** Bytes, counted from the first ever written. */
  readonly length: number;
  /** Offset of the first byte, from `offset` on, that is still kept; absent where nothing is ever dropped. */
  kept?(offset: number): number;
  /** At most `count` bytes from `offset`; empty at the end. Reads the disk synchronously (page cache) and never waits. */
  read(offset: number, count: number): Uint8Array;
}
