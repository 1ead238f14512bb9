/** The `OLLIE_*` variables, parsed once into what the rest works with. An empty value means the default everywhere. */
import { z } from "zod";
import { Fault } from "../fault.ts";
import type { Environment } from "./paths.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const text = z.string().optional();
const url = z.url({ protocol: /^https?$/, error: "must be an http:// or https:// address" }).optional();
const seconds = z.coerce
  .number("must be a number of seconds")
  .positive("must be more than 0 seconds")
  .transform((value) => Math.round(value * 1000));
const words = z
  .string()
  .transform((list) =>
    list
      .split(",")
      .map((word) => word.trim())
      .filter((word) => word !== ""),
  )
  .optional();

/** One line a variable that the server itself reads. Labelled ones, `OLLIE_<LABEL>_URL` and `_KEY`, are checked by `labelled`. */
const variables = z.object({
  OLLIE_BACKEND: text,
  OLLIE_MODEL: text,
  OLLIE_ENABLED_BACKENDS: words,
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
  OLLIE_ELEVATE_SOCKET: text,
  OLLIE_ADDR: text,
  OLLIE_SSH: text,
  OLLIE_SCRIPT: text,
  OLLIE_MAX_SESSION_COST: z.coerce
    .number("must be an amount in US dollars")
    .positive("must be more than 0 US dollars")
    .optional(),
  OLLIE_CONNECT_TIMEOUT: seconds.prefault("15"),
  OLLIE_IDLE_TIMEOUT: seconds.prefault("300"),
  OLLIE_LOG: z.enum(logLevels, `must be one of ${logLevels.join(", ")}`).default("info"),
  NAMESPACE: text,
});

/** Variables that ollie gives to the tools it runs: no setting, and no mistake either where a server is started by one of them. */
const forTools = /^OLLIE_(ARG_.*|TOOL|CALL_ID|SESSION|AGENT|CWD|TMP)$/;
/** Backends whose variables are known even while they are not enabled. */
const shippedBackends = ["ollama", "openai", "anthropic", "gemini", "copilot", "kiro", "script"];

export interface Settings {
  /** Unset: `script`. */
  backend?: string;
  model?: string;
  /** Names of backends that may be used; unset: all that are configured. */
  enabledBackends?: string[];
  /** US dollars. */
  maxSessionCost?: number;
  /** Milliseconds until a provider must have answered a connection. */
  connectTimeout: number;
  /** Milliseconds without a byte from the provider after which a stream counts as dead. */
  idleTimeout: number;
  logLevel: LogLevel;
  /** Dial string of the server, where it is not the default one. */
  address?: string;
  /** A Plan 9 namespace folder. */
  namespace?: string;
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
  const values = parsed.data;
  return {
    backend: values.OLLIE_BACKEND,
    model: values.OLLIE_MODEL,
    enabledBackends: values.OLLIE_ENABLED_BACKENDS,
    maxSessionCost: values.OLLIE_MAX_SESSION_COST,
    connectTimeout: values.OLLIE_CONNECT_TIMEOUT,
    idleTimeout: values.OLLIE_IDLE_TIMEOUT,
    logLevel: values.OLLIE_LOG,
    address: values.OLLIE_ADDR,
    namespace: values.NAMESPACE,
  };
}

/** `URL` or `KEY` for the variables of a backend or label. */
function labelled(key: string): string | undefined {
  return /^OLLIE_[A-Z0-9_]+_(URL|KEY)$/.exec(key)?.[1];
}

/** `OLLIE_*` variables that nothing reads, sorted: most likely misspelt. */
export function unknownVariables(environment: Environment): string[] {
  const labels = [environment.OLLIE_ENABLED_BACKENDS, environment.OLLIE_BACKEND, shippedBackends.join()]
    .flatMap((list) => (list ?? "").split(","))
    .map(variableLabel);
  const known = new Set<string>(Object.keys(variables.shape));
  for (const label of labels) known.add(`OLLIE_${label}_URL`).add(`OLLIE_${label}_KEY`);
  return Object.keys(environment)
    .filter((key) => key.startsWith("OLLIE_") && !known.has(key) && !forTools.test(key))
    .sort();
}

/** How a backend's label is spelt within a variable's name: `open-router` → `OPEN_ROUTER`. */
export function variableLabel(label: string): string {
  return label
    .trim()
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, "_");
}
