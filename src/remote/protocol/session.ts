/** `session.*`, and `project.survey`. */
import { z } from "zod";
import { hostSandbox } from "./hello.ts";
import { opReport } from "./operation.ts";
import { base64, id, sha256, variables } from "./values.ts";

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
  /** Absent: the session goes on with those it has. */
  settings: sessionSettings.optional(),
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
  ops: z.array(opReport),
  /** What a project file asks for and nobody has approved. */
  asks: z.object({ file: z.string(), sha256, text: z.string(), asks: z.array(z.string()) }).optional(),
});
export type Attached = z.infer<typeof attached>;

export const projectAsk = z.object({ cwd: z.string().optional() });
/** `project.survey {cwd}`: what every request tells the model of the project. */
export const projectSurvey = z.object({
  platform: z.string(),
  git: z.string(),
  files: z.array(z.object({ path: z.string(), text: z.string() })),
});
