/**
 * What the two ends of a remote say to each other: JSON-RPC 2.0, one message a line (framing: peer.ts). The client's end is `src/remote/client`,
 * the host's `src/remote/host`. What comes from the other end is parsed with these schemas, at the border, once.
 *
 * Until a session is attached the bridge answers (`ollie-remote serve`); what is the session's own is answered by its daemon, to which the
 * bridge passes lines on as they are. doc/REMOTE_PROTOCOL.md has every method with an example.
 */
import { z } from "zod";

/** The protocol versions that this program speaks. */
export const protocol = { min: 1, max: 1 } as const;
/** Bytes of a line, its newline included, unless the hello says less. */
export const maxFrame = 8 * 1024 * 1024;
/** Bytes of a piece of bulk data before base64. */
export const pieceBytes = 128 * 1024;
/** Bytes of one stream of an operation that may be on the wire without an ack. */
export const window = 256 * 1024;

/** Made by the client, so that it can ask for an operation whose acceptance it has not seen: a UUID, version 7 (RFC 9562). */
const id = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** Seconds. */
const seconds = z.number().positive();
const base64 = z.string().regex(/^[A-Za-z0-9+/]*={0,2}$/);
/** A path, or its bytes where they are no UTF-8. */
export const pathName = z.union([z.string(), z.strictObject({ b64: base64 })]);
const variables = z.record(z.string(), z.string());

// hello

const hostSandbox = z.object({
  state: z.enum(["enforced", "partial", "off", "unknown"]),
  abi: z.int(),
  enforced: z.array(z.string()),
  missing: z.array(z.string()),
});

/** The bridge says it unasked, as soon as it runs. */
export const hostHello = z.object({
  proto: z.object({ min: z.int(), max: z.int() }),
  version: z.string(),
  /** SHA-256 of the program that speaks. */
  digest: z.string(),
  os: z.string(),
  arch: z.string(),
  libc: z.string(),
  kernel: z.string(),
  home: z.string(),
  user: z.string(),
  shell: z.string(),
  /** Folder that sessions and their journals lie below. */
  root: z.string(),
  caps: z.array(z.string()),
  limits: z.object({ maxFrame: z.int(), window: z.int() }),
  /** As the last daemon here has found out; `unknown` where none has run since the host was started. */
  sandbox: hostSandbox,
  /** Of the tools that are here already; empty = none. */
  tools: z.array(z.string()),
  /** Milliseconds since 1970, and the boot id: a clock that is wrong, a host that was restarted. */
  clock: z.number(),
  boot: z.string(),
  sessions: z.array(z.object({ sessionId: id, state: z.string() })),
  /** Operations outlive a logout of the user. */
  persist: z.boolean(),
});
export type HostHello = z.infer<typeof hostHello>;

export const clientHello = z.object({
  proto: z.int(),
  /** Which server this is: the same for all its connections, another for another's. */
  client: z.string().min(1).max(128),
  /** Without these the client cannot work; what is missing is the error `caps.missing`. */
  need: z.array(z.string()),
  want: z.array(z.string()).default([]),
});
export type ClientHello = z.infer<typeof clientHello>;

/** What a host of this version can. */
export const capabilities = [
  "session",
  "op",
  "op.detach",
  "op.elevate",
  "file",
  "tools",
  "blob",
  "execute",
] as const;

// session.*

export const workspace = z.discriminatedUnion("kind", [
  /** A folder of the host that is there already. `~` is the home folder. */
  z.strictObject({ kind: z.literal("inplace"), path: z.string() }),
  /** A folder of the session's own, below the root; it goes with the session. */
  z.strictObject({ kind: z.literal("managed"), seed: z.enum(["empty", "git"]), url: z.string().optional() }),
]);

/** What a session works with; a client may say it anew at any attach, and with `session.configure`. */
export const sessionSettings = z.object({
  /** The session's env file. */
  env: variables,
  /** Sandbox configs of the client, by name, as YAML. */
  sandboxes: z.record(z.string(), z.string()),
  /** SHA-256 of project files (`.ollie-sandbox.yaml`) that the user has approved for this target. */
  approved: z.array(sha256),
  /** Of the tools to be used, which have been activated. */
  toolsHash: z.string(),
});
export type SessionSettings = z.infer<typeof sessionSettings>;

export const sessionCreate = z.object({
  sessionId: id,
  workspace,
  settings: sessionSettings,
  /** The client's restrictions (`src/remote/policy`); what the host's hard policy allows less of is narrowed without a word. */
  policy: z.unknown(),
  envRefs: z.record(z.string(), z.object({ kind: z.enum(["host", "session_sqlite"]) })),
  /** 32 bytes: what grants for elevated operations are sealed with. */
  key: base64,
});

export const sessionAttach = z.object({
  sessionId: id,
  /** As `session.create` has answered; another one is an error, `session.policy_broader` or `session.envref`. */
  policyHash: z.string(),
  envRefHash: z.string(),
  /** The attachment that this one follows; an older bridge of the same client is cut. */
  epoch: z.int(),
  settings: sessionSettings,
  /** Also where another client holds the session. */
  takeover: z.boolean().default(false),
});

/** Of create and attach. */
export const attached = z.object({
  sessionId: id,
  epoch: z.int(),
  /** The working folder, links resolved. */
  cwd: z.string(),
  policyHash: z.string(),
  envRefHash: z.string(),
  /** SHA-256 of the daemon's program, which may be older than the bridge. */
  digest: z.string(),
  state: z.enum(["active", "sealed"]),
  sandbox: hostSandbox,
  /** All that the journal knows. */
  ops: z.array(z.lazy(() => opReport)),
  /** What a project file asks for and nobody has approved. */
  asks: z.object({ file: z.string(), sha256, text: z.string(), asks: z.array(z.string()) }).optional(),
});
export type Attached = z.infer<typeof attached>;

// op.*

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

// tools.*, blob.*

export const toolFile = z.object({
  /** Below the folder; a tool folder of the client comes first as `0/`, the next as `1/`, so that their order counts. */
  path: z.string(),
  mode: z.int(),
  sha256,
  size: z.int(),
});
export type ToolFile = z.infer<typeof toolFile>;

/** `hash` is that of the sorted list (hash.ts). Answers with the hashes of files that are not here yet. */
export const toolsManifest = z.object({ hash: sha256, files: z.array(toolFile).max(20_000) });
export const toolsMissing = z.object({
  missing: z.array(sha256),
  /** Bytes of missing ones that are here from an upload that broke off: the next piece may be the one behind them. */
  begun: z.record(sha256, z.int()).default({}),
});
/** Pieces in order; the last has `last`, after which the whole is held against its hash. */
export const blobPut = z.object({ sha256, off: z.int(), data: base64, last: z.boolean() });
export const toolsActivate = z.object({ hash: sha256 });

/** A tool as the host has found it, its variants weighed there. Paths are the host's. */
export const remoteTool = z.object({
  name: z.string(),
  description: z.string(),
  documentation: z.string(),
  schema: z.record(z.string(), z.unknown()),
  path: z.string(),
  folder: z.string(),
  tier: z.enum(["hot", "cold"]),
  concurrency: z.enum(["read", "write", "exclusive"]),
  readOnly: z.boolean(),
  elevated: z.boolean(),
  sudo: z.boolean(),
  timeout: z.number(),
  remote: z.boolean(),
  service: z.object({ path: z.string(), idle: z.number(), idleVariable: z.string().optional() }).optional(),
});
export const toolsList = z.object({
  tools: z.array(remoteTool),
  problems: z.array(z.object({ file: z.string(), reason: z.string() })),
});

/** What sudo wants on that host: `sudo.probe`, and with a password (`op.secret` under the same id) `sudo.check`. */
export const sudoProbe = z.object({ opId: id });
export const sudoAnswer = z.object({
  program: z.string(),
  password: z.boolean(),
  refused: z.string().optional(),
});

export const projectAsk = z.object({ cwd: z.string().optional() });
/** `project.survey {cwd}`: what every request tells the model of the project. */
export const projectSurvey = z.object({
  platform: z.string(),
  git: z.string(),
  files: z.array(z.object({ path: z.string(), text: z.string() })),
});
