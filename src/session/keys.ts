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

/** A key: what its value must look like, and what a template says of it. */
export interface Key {
  check: Check;
  help: string;
}

const key = (check: Check, help: string): Key => ({ check, help });

/** Generation parameters, in the order in which `cfg` lists them. */
const generationKeys: Record<keyof Generation, Key> = {
  temperature: key(number(0, any), "how freely the model chooses its words"),
  topP: key(number(0, 1), "only words within this share of probability"),
  topK: key(number(1, any, true), "only the K likeliest words"),
  minP: key(number(0, 1), "no word less likely than this share of the likeliest"),
  maxTokens: key(number(1, any, true), "most tokens of one answer"),
  frequencyPenalty: key(number(-2, 2), "against words by how often they came"),
  presencePenalty: key(number(-2, 2), "against words that came at all"),
  repetitionPenalty: key(number(0, any), "against repetition, 1 = none"),
  reasoning: key(oneOf("true", "false"), "whether the model thinks first"),
  reasoningEffort: key(text, "how long it thinks, as the provider names it"),
  stop: key(text, "a text that ends the answer, or a JSON list of them"),
  seed: key(number(-any, any, true), "for answers that can be repeated"),
  responseFormat: key(text, "json, or what else the provider takes"),
};

export const agentKeys: Record<string, Key> = {
  backend: key(text, "as the file backends lists them"),
  model: key(text, "as the file models lists them"),
  agent: key(text, "agent config, as the file agents lists them"),
  cwd: key(text, "working folder, an absolute path"),
  maxSteps: key(number(1, any, true), "requests with tools that a turn may make"),
  ...generationKeys,
};

export const sessionKeys: Record<string, Key> = {
  name: key(text, "a file name of at most 128 bytes; empty: one that sorts by time"),
  cwd: key(text, "working folder, an absolute path"),
  remote: key(text, "user@host where tools run; empty: here"),
  sandbox: key(text, "sandbox config of the tools"),
  share: key(text, "sessions whose tools may prompt this one, with commas"),
};

/** What can only be said when a session is made. */
export const newSessionKeys: Record<string, Key> = {
  ...sessionKeys,
  remoteSession: key((name, value) => {
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value))
      throw new Fault(
        "invalid",
        `${name}=${value}: the whole id of a session there is right (olliesrv remote ls)`,
      );
  }, "id of a session on that host, to go on with it"),
};

/** Refuses keys that do not exist and values that make no sense. An empty value unsets and is always right. */
export function checkKeys(keys: Keys, known: Record<string, Key>): void {
  for (const [key, value] of keys) {
    const rule = Object.hasOwn(known, key) ? known[key] : undefined;
    if (!rule) throw new Fault("invalid", `unknown key ${key}; there are ${Object.keys(known).join(" ")}`);
    if (value !== "") rule.check(key, value);
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
export function keyLines(entries: Iterable<readonly [key: string, value: string]>): string {
  let lines = "";
  for (const [key, value] of entries) lines += `${key}=${quoted(value, /[\s"'\\]/)}\n`;
  return lines;
}

/** `KEY=VALUE` lines; a value is the rest of its line, quoted only where that would not bring it back. */
export function envLines(entries: Iterable<readonly [key: string, value: string]>): string {
  let lines = "";
  for (const [key, value] of entries) lines += `${key}=${quoted(value, /^["']|\n/)}\n`;
  return lines;
}

/** What a read of `new` gives before a write: one `key=default` a line, with what the key means. */
export function template(keys: Record<string, Key>, defaults: Record<string, string>): string {
  return Object.entries(keys)
    .map(
      ([key, { help }]) => `${`${key}=${quoted(defaults[key] ?? "", /[\s"'\\#]/)}`.padEnd(24)} # ${help}\n`,
    )
    .join("");
}

function quoted(value: string, needed: RegExp): string {
  if (!needed.test(value)) return value;
  return `"${value.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"`;
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
