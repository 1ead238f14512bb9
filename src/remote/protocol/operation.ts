/** `op.*`, `execute`, `sudo.*`, and the notifications `output` and `exit`. */
import { z } from "zod";
import { base64, id, seconds, sha256, variables } from "./values.ts";

export const step = z.union([
  /** A program of an interpreter; the policy must allow that (`allow_code_steps`). */
  z.strictObject({ code: z.string(), lang: z.enum(["sh", "bash", "python", "perl"]).default("bash") }),
  /** A program itself, never through a shell. */
  z.strictObject({
    program: z.string(),
    args: z.array(z.string()).default([]),
    env: variables.default({}),
    cwd: z.string().optional(),
    stdin: z.string().optional(),
  }),
  /** A tool call as the dispatcher runs it; `args` have been checked by the client. */
  z.strictObject({
    tool: z.string(),
    args: z.record(z.string(), z.unknown()),
    callId: z.string(),
    agent: z.string(),
    session: z.string(),
    cwd: z.string().optional(),
    /** Sandbox config. */
    sandbox: z.string().default(""),
    repaired: z.string().optional(),
  }),
]);
export type Step = z.infer<typeof step>;

/** A human's yes, made by the client's elevation for one request: HMAC-SHA-256 over `opId`, `hash`, `expires`, `scope` and `root` with the session's key. */
export const grant = z.object({
  scope: z.enum(["once", "session"]),
  /** As root, through sudo. */
  root: z.boolean(),
  /** Milliseconds since 1970 of the host's clock (its hello). */
  expires: z.number(),
  mac: base64,
});

export const opStart = z.object({
  opId: id,
  /** SHA-256 over `steps`, `timeout`, `sandbox` and `detach` (hash.ts): the same id with another hash is `op.mismatch`. */
  hash: sha256,
  steps: z.array(step).min(1).max(32),
  /** Seconds for all steps; a tool call has its own. */
  timeout: seconds.optional(),
  sandbox: z.string().default(""),
  /** Nobody waits: it ends by itself, with the session, or by `op.cancel`. */
  detach: z.boolean().default(false),
  grant: grant.optional(),
  /** As `op.follow` in the same request: from these offsets on output is sent as it comes, and then the end. No part of the hash. */
  follow: z.record(z.string(), z.int()).optional(),
});
export type OpStart = z.infer<typeof opStart>;

/** `accepted` is on disk before the program starts; `interrupted`: the daemon or the host has ended first; how far it came nobody knows. */
export const opStatus = z.enum([
  "accepted",
  "running",
  "exited",
  "signaled",
  "timeout",
  "cancelled",
  "interrupted",
  "denied",
]);
export type OpStatus = z.infer<typeof opStatus>;

/** What is known of an operation; also what the notification `exit` carries. */
export const opReport = z.object({
  opId: id,
  hash: sha256,
  status: opStatus,
  detach: z.boolean(),
  /** For people: the command line, or the tool and its arguments. */
  title: z.string(),
  started: z.number().optional(),
  ended: z.number().optional(),
  code: z.int().optional(),
  signal: z.string().optional(),
  /** Bytes of each stream so far. */
  streams: z.record(z.string(), z.int()),
  /** Of a tool call: its result. */
  outcome: z
    .object({
      ok: z.boolean(),
      how: z.enum(["done", "failed", "cancelled", "timedOut", "refused"]),
      text: z.string(),
      closing: z.string().optional(),
    })
    .optional(),
  /** Of steps: what they printed, head and tail. */
  output: z.string().optional(),
});
export type OpReport = z.infer<typeof opReport>;

/**
 * Notification. `off` counts the bytes of the stream before `data`. Streams: `out`, `err` of steps, raw (base64); `text` of a tool call, cleaned
 * for display (as it is).
 */
export const opOutput = z.object({
  opId: id,
  step: z.int(),
  stream: z.enum(["out", "err", "text"]),
  off: z.int(),
  data: z.string(),
});
export type OpOutput = z.infer<typeof opOutput>;

export const opAck = z.object({ opId: id, stream: z.string(), off: z.int() });
export const opName = z.object({ opId: id });
/** A long poll: answers when the operation has ended, or after `limit` seconds with what there is. */
export const opWait = z.object({ opId: id, limit: seconds.max(30).default(25) });
export const opCancel = z.object({
  opId: id,
  signal: z.int().min(1).max(64).optional(),
  grace: z.number().min(0).default(0.5),
});
export const opRange = z.object({ opId: id, stream: z.string(), from: z.int().min(0), to: z.int().min(0) });
/** The answer. What the host no longer has is passed over: `from` says where `data`, which is as in `output`, begins. */
export const opPiece = z.object({ from: z.int(), data: z.string(), end: z.boolean() });
/** From now on output of this operation is sent as it comes, from the offset on. */
export const opFollow = z.object({ opId: id, from: z.record(z.string(), z.int()) });
/** Notification, before `op.start`: a password. Kept in memory until the operation has started, or a minute. */
export const opSecret = z.object({ opId: id, secret: base64 });

/** The documented convenience: `op.start` and `op.wait` in one, with the output in the answer and in `output` notifications on the way. */
export const execute = z.object({
  steps: z.array(step).min(1).max(32),
  timeout: seconds.default(60),
  sandbox: z.string().default("default"),
  opId: id.optional(),
});
export const executed = z.object({ output: z.string(), exit_code: z.int() });

/** What sudo wants on that host: `sudo.probe`, and with a password (`op.secret` under the same id) `sudo.check`. */
export const sudoProbe = z.object({ opId: id });
export const sudoAnswer = z.object({
  program: z.string(),
  password: z.boolean(),
  refused: z.string().optional(),
});
