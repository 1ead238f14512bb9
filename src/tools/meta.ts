/** The sidecar of a tool: `NAME.meta`, JSON. Checked here, once; unknown keys are errors. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { z } from "zod";
import { Fault } from "../fault.ts";

const words = z.union([z.string(), z.array(z.string()).min(1)]);

const match = z.strictObject({
  /** On PATH. */
  binary: words.optional(),
  /** Exists; `~/` is the home folder. */
  file: words.optional(),
  /** As `process.platform`: linux, darwin. */
  os: words.optional(),
  /** As `process.arch` or `uname -m`: x64 or x86_64, arm64 or aarch64. */
  arch: words.optional(),
  /** `NAME`: set, or `NAME=VALUE`. */
  env: words.optional(),
  /** Not set. */
  nenv: words.optional(),
});

const service = z.strictObject({
  cmd: z.string().min(1),
  /** Seconds. */
  idle: z.number().positive().optional(),
  /** A variable of the session's env that holds another number. */
  idleVariable: z.string().min(1).optional(),
});

const keys = z.strictObject({
  description: z.string().min(1).optional(),
  documentation: z.string().optional(),
  args: z.looseObject({ type: z.literal("object").default("object") }).optional(),
  cmd: z.string().min(1).optional(),
  tier: z.enum(["hot", "cold"]).optional(),
  concurrency: z.enum(["read", "write", "exclusive"]).optional(),
  readOnly: z.boolean().optional(),
  elevated: z.boolean().optional(),
  sudo: z.boolean().optional(),
  timeout: z.number().positive().optional(),
  remote: z.boolean().optional(),
  service: service.optional(),
});

const schema = keys.extend({ variants: z.array(keys.extend({ match })).optional() });

export type Meta = z.infer<typeof schema>;
/** A sidecar with one variant laid over it. */
export type ResolvedMeta = z.infer<typeof keys>;
type Match = z.infer<typeof match>;

/** What variants ask of a machine. */
export interface Host {
  os: string;
  arch: string;
  env: Record<string, string | undefined>;
  hasBinary(name: string): boolean;
  hasFile(path: string): boolean;
}

/** The machine and the environment this process runs in, as they are at the time of asking. */
export const thisHost: Host = {
  os: process.platform,
  arch: process.arch,
  env: process.env,
  hasBinary: (name) => Bun.which(name, { PATH: process.env.PATH ?? "" }) !== null,
  hasFile: (path) => existsSync(path.replace(/^~(?=\/)/, homedir())),
};

/** @throws Fault "invalid" that says which key is wrong and what it should be */
export function parseMeta(text: string): Meta {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Fault("invalid", `it is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  throw new Fault("invalid", result.error.issues.map(explain).join("; "), { cause: result.error });
}

function explain(issue: z.core.$ZodIssue): string {
  const place = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    return `${issue.keys.map((key) => (place ? `${place}.${key}` : key)).join(", ")}: there is no such key`;
  }
  return place ? `${place}: ${issue.message}` : issue.message;
}

/** The first variant that matches, laid over the top level; undefined if there are variants and none does. */
export function resolve(meta: Meta, host: Host): ResolvedMeta | undefined {
  const { variants, ...top } = meta;
  if (!variants) return top;
  const variant = variants.find((candidate) => matches(candidate.match, host));
  if (!variant) return undefined;
  const { match: _, ...over } = variant;
  return { ...top, ...over };
}

function matches(match: Match, host: Host): boolean {
  const tests: { [Key in keyof Match]-?: (word: string) => boolean } = {
    binary: host.hasBinary,
    file: host.hasFile,
    os: (name) => name === host.os,
    arch: (name) => name === host.arch || name === machine[host.arch],
    env: (word) => isSet(word, host.env),
    nenv: (name) => host.env[name] === undefined,
  };
  return Object.entries(match).every(([key, wanted]) => [wanted].flat().some(tests[key as keyof Match]));
}

/** What `uname -m` calls it. */
const machine: Record<string, string> = { x64: "x86_64", arm64: "aarch64", ia32: "i686" };

function isSet(word: string, env: Host["env"]): boolean {
  const equals = word.indexOf("=");
  return equals < 0 ? env[word] !== undefined : env[word.slice(0, equals)] === word.slice(equals + 1);
}
