/**
 * The `OLLIE_*` variables: which there are, and what they may hold. Everything is checked at the start, so that a mistake is told then
 * and not in the middle of a turn. An empty value means the default everywhere.
 */
import { z } from "zod";
import { Fault } from "../fault.ts";
import type { Environment } from "./paths.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const text = z.string().optional();
const url = z.url({ protocol: /^https?$/, error: "must be an http:// or https:// address" }).optional();
const seconds = z.coerce
  .number("must be a number of seconds")
  .nonnegative("must be a number of seconds, 0 for no limit")
  .optional();
/** What a sandbox is made of; see `src/sandbox/launch/probe.ts`. */
export const sandboxParts = ["landlock", "namespaces", "seccomp"] as const;
export type SandboxPart = (typeof sandboxParts)[number];
const parts = z
  .string()
  .transform((list) => list.split(/[\s,]+/).filter(Boolean))
  .pipe(z.array(z.enum(sandboxParts, `must name parts of a sandbox: ${sandboxParts.join(", ")}`)))
  .optional();
/** How SSH gets to other hosts. */
const sshWays = ["auto", "ssh2", "openssh"] as const;
const tokens = z.coerce
  .number("must be a number of tokens")
  .int()
  .positive("must be a number of tokens")
  .optional();

/** One line a variable that ollie reads, wherever it does. Labelled ones, `OLLIE_<LABEL>_URL` and `_KEY`, are checked by `labelled`. */
const variables = z.object({
  OLLIE_BACKEND: text,
  OLLIE_MODEL: text,
  OLLIE_ENABLED_BACKENDS: text,
  OLLIE_COMPLETE_BACKEND: text,
  OLLIE_COMPLETE_MODEL: text,
  OLLIE_ROUTE_BACKEND: text,
  OLLIE_ROUTE_MODEL: text,
  OLLIE_COPILOT_TOKEN: text,
  OLLIE_KIRO_TOKEN: text,
  OLLIE_TOOLS_PATH: text,
  OLLIE_MEMORY_PATH: text,
  OLLIE_AGENTS_PATH: text,
  OLLIE_PROMPTS_PATH: text,
  OLLIE_SKILLS_PATH: text,
  OLLIE_STATE_PATH: text,
  OLLIE_TRANSCRIPTS_PATH: text,
  OLLIE_ELEVATE_SOCKET: z.string().startsWith("/", "must be an absolute path").optional(),
  OLLIE_ELEVATE_TIMEOUT: seconds.default(300),
  OLLIE_SANDBOX_WITHOUT: parts,
  OLLIE_ADDR: text,
  OLLIE_SSH: z.enum(sshWays, `must be one of ${sshWays.join(", ")}`).optional(),
  OLLIE_REMOTES: z.string().startsWith("/", "must be an absolute path").optional(),
  OLLIE_RECONNECT_GRACE: seconds,
  /** Read on the host of a remote session, not here. */
  OLLIE_DIR: text,
  OLLIE_SCRIPT_SCENARIO: text,
  OLLIE_OLLAMA_NUM_CTX: tokens,
  OLLIE_TOOL_MEMORY: text,
  OLLIE_LSP: text,
  OLLIE_LSP_IDLE: text,
  OLLIE_MAX_SESSION_COST: z.coerce
    .number("must be an amount in US dollars")
    .positive("must be more than 0 US dollars")
    .optional(),
  OLLIE_CONNECT_TIMEOUT: seconds,
  OLLIE_IDLE_TIMEOUT: seconds,
  OLLIE_LOG: z.enum(logLevels, `must be one of ${logLevels.join(", ")}`).default("info"),
  NAMESPACE: text,
});

/** Variables that ollie gives to the tools it runs: no setting, and no mistake either where a server is started by one of them. */
const forTools = /^OLLIE_(ARG_.*|TOOL|CALL_ID|SESSION|AGENT|CWD|TMP|EXEC|SERVICE|TOKEN)$/;
/** Known so that one env file serves this version and the next, but what reads them is not built in yet. */
const forLater =
  /^OLLIE_((COMPLETE|ROUTE)_(BACKEND|MODEL)|(ANTHROPIC|GEMINI)_(URL|KEY)|(COPILOT|KIRO)_TOKEN|MAX_SESSION_COST)$/;
/** Backends whose variables are known even while they are not enabled. */
const shippedBackends = ["ollama", "openai", "anthropic", "gemini", "copilot", "kiro", "script"];

export interface Settings {
  model?: string;
  logLevel: LogLevel;
  /** Seconds that a call waits to be allowed; 0 = no limit. */
  elevateTimeout: number;
  /** What is not to be used though the kernel may offer it. */
  sandboxWithout?: readonly SandboxPart[];
  ssh?: (typeof sshWays)[number];
  /** Seconds that a lost host is waited for before that is told, whatever its profile says. */
  reconnectGrace?: number;
}

/**
 * Reads the settings.
 * @throws Fault "invalid" that names the variable and what it should hold
 */
export function parseSettings(environment: Environment): Settings {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = variables.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new Fault("invalid", `${String(issue.path[0])}: ${issue.message}`);
  }
  for (const [key, value] of Object.entries(given)) {
    const checked = labelled(key) === "URL" ? url.safeParse(value) : undefined;
    if (checked?.success === false) throw new Fault("invalid", `${key}: ${checked.error.issues[0]!.message}`);
  }
  const {
    OLLIE_MODEL,
    OLLIE_LOG,
    OLLIE_ELEVATE_TIMEOUT,
    OLLIE_SANDBOX_WITHOUT,
    OLLIE_SSH,
    OLLIE_RECONNECT_GRACE,
  } = parsed.data;
  return {
    model: OLLIE_MODEL,
    logLevel: OLLIE_LOG,
    elevateTimeout: OLLIE_ELEVATE_TIMEOUT,
    sandboxWithout: OLLIE_SANDBOX_WITHOUT,
    ssh: OLLIE_SSH,
    reconnectGrace: OLLIE_RECONNECT_GRACE,
  };
}

/** `URL` or `KEY` for the variables of a backend or label. */
function labelled(key: string): string | undefined {
  return /^OLLIE_[A-Z0-9_]+_(URL|KEY)$/.exec(key)?.[1];
}

/** `OLLIE_*` variables that nothing reads, sorted: most likely misspelt. */
export function unknownVariables(environment: Environment): string[] {
  const labels = [environment.OLLIE_ENABLED_BACKENDS, environment.OLLIE_BACKEND, shippedBackends.join()]
    .flatMap((list) => (list ?? "").split(/[\s,]+/))
    .map(variableLabel);
  const known = new Set<string>(Object.keys(variables.shape));
  for (const label of labels) known.add(`OLLIE_${label}_URL`).add(`OLLIE_${label}_KEY`);
  return Object.keys(environment)
    .filter((key) => key.startsWith("OLLIE_") && !known.has(key) && !forTools.test(key))
    .sort();
}

/** `OLLIE_*` variables that are set, known and without effect: who set a limit must learn that nothing keeps to it yet. Sorted. */
export function idleVariables(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((key) => forLater.test(key) && environment[key] !== "")
    .sort();
}

/** How a backend's label is spelt within a variable's name: `open-router` → `OPEN_ROUTER`. */
function variableLabel(label: string): string {
  return label
    .trim()
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, "_");
}
