/** The byte stream below a connection: a unix socket, an ssh channel, a pipe in a test. Nothing here knows of messages. */

/** One end of a stream, as server and client use it. */
export interface ByteStream {
  /** Says who gets what arrives. Called once, before anything can have arrived. */
  attach(user: StreamUser): void;
  /**
   * Takes as many bytes as fit now and returns how many those were. When it was not all of them, `drained` follows.
   * The bytes are valid during the call only: what is kept must be copied.
   */
  write(bytes: Uint8Array): number;
  /** After `pause` nothing more is delivered until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the stream in both directions once what was written is out. `closed` follows. */
  close(): void;
}

/** What the owner of a stream is told. */
export interface StreamUser {
  /** The chunk belongs to the receiver from now on. */
  receive(chunk: Buffer): void;
  /** There is room to write again. */
  drained(): void;
  /** The end; nothing follows. */
  closed(): void;
}
