/** Agent configs: `NAME.json` in a folder of `OLLIE_AGENTS_PATH`; the first folder that has a name wins. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import type { Generation } from "../backends/backend.ts";
import { Fault, toFault } from "../fault.ts";

const number = (what: z.ZodNumber) => what.optional();
const probability = number(z.number().min(0).max(1));
const penalty = number(z.number().min(-2).max(2));
const count = number(z.int().positive());

/** Generation parameters as an agent config has them. */
export const generationShape = {
  temperature: number(z.number().min(0)),
  topP: probability,
  topK: count,
  minP: probability,
  maxTokens: count,
  frequencyPenalty: penalty,
  presencePenalty: penalty,
  repetitionPenalty: number(z.number().positive()),
  reasoning: z.boolean().optional(),
  reasoningEffort: z.string().min(1).optional(),
  stop: z.array(z.string()).optional(),
  seed: number(z.int()),
  responseFormat: z.string().min(1).optional(),
} satisfies Record<keyof Generation, z.ZodType>;

const promptPart = z.union([z.string(), z.strictObject({ file: z.string().min(1) })], {
  error: 'must be a text, {"file": NAME} or a list of these',
});
/** A text, a file of a folder of `OLLIE_PROMPTS_PATH`, or several of either, joined by blank lines. */
export type PromptSource = z.infer<typeof promptPart> | z.infer<typeof promptPart>[];

const hookEvents = [
  "agentSpawn",
  "preTurn",
  "postTurn",
  "preTool",
  "postTool",
  "preCompact",
  "postCompact",
  "turnError",
] as const;
const command = z.union([z.string(), z.array(z.string())], {
  error: "must be a shell command or a list of them",
});

const agentSchema = z.strictObject({
  description: z.string().default(""),
  prompt: z
    .union([promptPart, z.array(promptPart)], { error: 'must be a text, {"file": NAME} or a list of these' })
    .default(""),
  backend: z.string().min(1).optional(),
  model: z.string().min(1).optional(),
  /** Tools loaded when the agent is made. */
  autoLoad: z.array(z.string()).default([]),
  /** Not empty: nothing else may be loaded or called. */
  allowTools: z.array(z.string()).default([]),
  hooks: z.partialRecord(z.enum(hookEvents), command).default({}),
  /** Name of a sandbox policy. */
  sandbox: z.string().min(1).optional(),
  /** Requests with tools that a turn may make. */
  maxSteps: count,
  ...generationShape,
});

export interface AgentConfig {
  name: string;
  /** Where it was read from. */
  file: string;
  description: string;
  prompt: PromptSource;
  backend?: string;
  model?: string;
  autoLoad: string[];
  allowTools: string[];
  hooks: Partial<Record<(typeof hookEvents)[number], string | string[]>>;
  sandbox?: string;
  maxSteps?: number;
  params: Generation;
}

/**
 * Reads one agent config.
 * @param folders those of `OLLIE_AGENTS_PATH`
 * @throws Fault "missing" that lists what there is; Fault "invalid" that names the file and the key
 */
export function loadAgent(name: string, folders: readonly string[]): AgentConfig {
  for (const folder of folders) {
    // A name with a slash could reach files that are no configs.
    if (basename(name) !== name) break;
    const file = join(folder, `${name}.json`);
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      const fault = toFault(error);
      if (fault.kind === "missing") continue;
      throw new Fault(fault.kind, `cannot read ${file}: ${fault.message}`, { cause: error });
    }
    return parseAgent(text, name, file);
  }
  const known = agentNames(folders);
  throw new Fault(
    "missing",
    `no agent ${name}: ${known.length > 0 ? `there are ${known.join(", ")}` : `no agents in ${folders.join(":")}`}`,
  );
}

function parseAgent(text: string, name: string, file: string): AgentConfig {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new Fault("invalid", `${file}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  const parsed = agentSchema.safeParse(json);
  if (!parsed.success) throw new Fault("invalid", `${file}: ${explain(parsed.error.issues[0]!)}`);
  const { description, prompt, backend, model, autoLoad, allowTools, hooks, sandbox, maxSteps, ...params } =
    parsed.data;
  return {
    name,
    file,
    description,
    prompt,
    backend,
    model,
    autoLoad,
    allowTools,
    hooks,
    sandbox,
    maxSteps,
    params,
  };
}

function explain(issue: z.core.$ZodIssue): string {
  const where = issue.path.map(String).join(".");
  if (issue.code !== "unrecognized_keys") return where === "" ? issue.message : `${where}: ${issue.message}`;
  const known = where === "" ? Object.keys(agentSchema.shape) : where === "hooks" ? hookEvents : ["file"];
  return `unknown key ${[where, issue.keys[0]].filter(Boolean).join(".")}: known are ${known.join(" ")}`;
}

/** Names of all agent configs, sorted. */
export function agentNames(folders: readonly string[]): string[] {
  const names = new Set<string>();
  for (const folder of folders) {
    for (const entry of list(folder)) if (entry.endsWith(".json")) names.add(entry.slice(0, -".json".length));
  }
  return [...names].sort();
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // a folder of a search path need not exist
  }
}

/** All agent configs with their descriptions, sorted; one that cannot be read has its error in place of a description. */
export function listAgents(
  folders: readonly string[],
): { name: string; description: string; broken?: string }[] {
  return agentNames(folders).map((name) => {
    try {
      return { name, description: loadAgent(name, folders).description };
    } catch (error) {
      const broken = toFault(error).message;
      return { name, description: broken, broken };
    }
  });
}
