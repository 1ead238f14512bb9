/**
 * What the two ends of a remote say to each other: JSON-RPC 2.0, one message a line (framing: peer.ts). The client's end is `src/remote/client`,
 * the host's `src/remote/host`. What comes from the other end is parsed with the schemas of this folder, at the border, once.
 *
 * Until a session is attached the bridge answers (`ollie-remote serve`); what is the session's own is answered by its daemon, to which the
 * bridge passes lines on as they are. doc/REMOTE_PROTOCOL.md has every method with an example.
 */

/** The protocol versions that this program speaks. */
export const protocol = { min: 1, max: 1 } as const;
/** Bytes of a line, its newline included, unless the hello says less. */
export const maxFrame = 8 * 1024 * 1024;
/** Bytes of a piece of bulk data before base64. */
export const pieceBytes = 128 * 1024;
/** Bytes of one stream of an operation that may be on the wire without an ack. */
export const window = 256 * 1024;
