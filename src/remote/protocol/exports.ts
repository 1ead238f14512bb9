/**
 * `session.export`: the working folder of a session as one file, in pieces. Begun anew it may be asked for from any offset on: the file is kept on the
 * host until the session has been changed and asked again, or is destroyed. `session.destroy`, `session.sweep`.
 */
import { z } from "zod";
import { pieceBytes } from "./limits.ts";
import { id, sha256 } from "./values.ts";

/** `tar`: the files, the same for the same files on any host, compressed with zstd. `bundle`: the commits of its repository (git-bundle(1)). */
export const exportFormat = z.enum(["tar", "bundle"]);

/** Without `export` one is made; with it, that very one is read on. */
export const sessionExport = z.strictObject({
  format: exportFormat.default("tar"),
  /** SHA-256 of the whole, as the first answer has said. */
  export: sha256.optional(),
  off: z.int().min(0).default(0),
  bytes: z.int().positive().max(pieceBytes).default(pieceBytes),
});
export const sessionExported = z.object({
  export: sha256,
  format: exportFormat,
  /** Bytes of the whole. */
  size: z.int(),
  off: z.int(),
  data: z.string(),
  /** Of this piece. */
  sha256,
  eof: z.boolean(),
  /** Files that are not in it: the policy hides them, or they are no files. */
  left: z.int(),
  /** Of a bundle: the commit that HEAD was at. */
  head: z.string().optional(),
});
export type SessionExported = z.infer<typeof sessionExported>;

/** `session.list`. `sizes`: with the bytes that each has on the disk. */
export const sessionList = z.strictObject({ sizes: z.boolean().default(false) });

/** Everything of the session goes: processes, sockets, files. An in-place working folder stays. */
export const sessionDestroy = z.strictObject({
  sessionId: id,
  /** The same, typed by a person. */
  confirm: z.string(),
});
export const sessionDestroyed = z.object({
  sessionId: id,
  /** Bytes that were freed. */
  bytes: z.int(),
  /** Processes that were ended. */
  ended: z.int(),
});

/** `session.sweep`, also `ollie-remote gc`: what is past its time goes. `dry`: only told. */
export const sessionSweep = z.strictObject({ dry: z.boolean().default(false) });
export const sessionSwept = z.object({
  sessions: z.array(
    z.object({
      sessionId: z.string(),
      bytes: z.int(),
      /** Why it goes; undefined: it stays. */
      expired: z.enum(["idle", "old", "damaged"]).optional(),
      /** Milliseconds since 1970 at which it will be past its time, if nobody uses it. */
      until: z.number().optional(),
    }),
  ),
  /** Bytes of all that lies below BASE, and of what was freed. */
  base: z.int(),
  freed: z.int(),
  /** What could not be removed, one sentence each. */
  problems: z.array(z.string()),
});
export type SessionSwept = z.infer<typeof sessionSwept>;
