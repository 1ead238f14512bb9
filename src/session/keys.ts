/** The keys of `cfg`, `session/new` and `agent/new`: which there are and what their values must look like. */
import type { Generation } from "../backends/backend.ts";
import { Fault } from "../fault.ts";
import { checkName as checkFolderName } from "../store/names.ts";
import type { Keys } from "./live.ts";

type Check = (key: string, value: string) => void;

const text: Check = () => {};
const number =
  (least: number, most: number, whole = false): Check =>
  (key, value) => {
    const n = Number(value);
    const right =
      value.trim() !== "" && Number.isFinite(n) && n >= least && n <= most && (!whole || Number.isInteger(n));
    if (!right)
      throw new Fault(
        "invalid",
        `${key}=${value}: ${whole ? "a whole number" : "a number"} ${range(least, most)} is right`,
      );
  };
const oneOf =
  (...words: string[]): Check =>
  (key, value) => {
    if (!words.includes(value))
      throw new Fault("invalid", `${key}=${value}: one of ${words.join(", ")} is right`);
  };

function range(least: number, most: number): string {
  return most === Number.MAX_SAFE_INTEGER ? `from ${least} up` : `from ${least} to ${most}`;
}

const any = Number.MAX_SAFE_INTEGER;

/** Generation parameters, in the order in which `cfg` lists them. */
const generationKeys: Record<keyof Generation, Check> = {
  temperature: number(0, 10),
  topP: number(0, 1),
  topK: number(0, any, true),
  minP: number(0, 1),
  maxTokens: number(1, any, true),
  frequencyPenalty: number(-10, 10),
  presencePenalty: number(-10, 10),
  repetitionPenalty: number(0, 10),
  reasoning: oneOf("true", "false"),
  reasoningEffort: text,
  stop: text,
  seed: number(-any, any, true),
  responseFormat: text,
};

export const agentKeys: Record<string, Check> = {
  backend: text,
  model: text,
  agent: text,
  cwd: text,
  maxSteps: number(1, any, true),
  ...generationKeys,
};

export const sessionKeys: Record<string, Check> = {
  name: text,
  cwd: text,
  remote: text,
  sandbox: text,
  share: text,
};

/** Refuses keys that do not exist and values that make no sense. An empty value unsets and is always right. */
export function checkKeys(keys: Keys, known: Record<string, Check>): void {
  for (const [key, value] of keys) {
    const check = Object.hasOwn(known, key) ? known[key] : undefined;
    if (!check) throw new Fault("invalid", `unknown key ${key}; there are ${Object.keys(known).join(" ")}`);
    if (value !== "") check(key, value);
  }
}

/** Generation parameters out of checked key values. */
export function generation(value: (key: string) => string | undefined): Generation {
  const found: Record<string, unknown> = {};
  for (const key of Object.keys(generationKeys)) {
    const given = value(key);
    if (given === undefined || given === "") continue;
    if (key === "reasoning") found[key] = given === "true";
    else if (key === "stop") found[key] = stopSequences(given);
    else if (key === "reasoningEffort" || key === "responseFormat") found[key] = given;
    else found[key] = Number(given);
  }
  return found;
}

/** A JSON list of strings, or one sequence as it stands. */
function stopSequences(value: string): string[] {
  if (!value.startsWith("[")) return [value];
  try {
    const list: unknown = JSON.parse(value);
    if (Array.isArray(list)) return list.map(String);
  } catch {}
  return [value];
}

/** `key=value` lines; what holds blanks, quotes or backslashes is quoted so that it can be written back. */
export function keyLines(entries: Iterable<readonly [string, string]>): string {
  let lines = "";
  for (const [key, value] of entries) lines += `${key}=${quoted(value)}\n`;
  return lines;
}

function quoted(value: string): string {
  if (!/[\s"'\\]/.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** Names that the tree itself uses beside sessions and agents. */
const reserved = new Set(["new", "idx"]);

/** A session's or agent's name is the name of a folder, and one that a shell line and a listing can hold. */
export function checkName(name: string): void {
  checkFolderName(name);
  const problem = reserved.has(name)
    ? "is taken by the tree itself"
    : name.startsWith(".")
      ? "begins with a dot"
      : /[\0-\x1f\x7f]/.test(name)
        ? "holds control characters"
        : undefined;
  if (problem) throw new Fault("invalid", `the name ${JSON.stringify(name)} ${problem}; choose another`);
}
