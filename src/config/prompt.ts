/**
 * The text of an agent config's `prompt`.
 *
 * Templates in it are replaced: `{{cwd}}` the agent's folder, `{{platform}}` operating system and architecture, `{{date}}` the day in
 * ISO 8601, `{{git}}` what is known of the repository that cwd lies in. Anything else in double braces stays as it is, since a prompt
 * may well speak of templates.
 */
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { Fault, toFault } from "../fault.ts";
import type { PromptSource } from "./agents.ts";

/** What the templates stand for. */
export interface PromptFacts {
  cwd: string;
  platform: string;
  date: string;
  git: string;
}

/**
 * Reads and joins the parts of a prompt and fills in the templates.
 * @param folders those of `OLLIE_PROMPTS_PATH`; a file is looked for in each, an absolute one is taken as it is
 * @throws Fault "missing" that names the file and the folders
 */
export function renderPrompt(source: PromptSource, folders: readonly string[], facts: PromptFacts): string {
  const parts = Array.isArray(source) ? source : [source];
  const texts = parts.map((part) =>
    (typeof part === "string" ? part : readPrompt(part.file, folders)).trim(),
  );
  return texts
    .filter((text) => text !== "")
    .join("\n\n")
    .replace(/\{\{(cwd|platform|date|git)\}\}/g, (_, key: keyof PromptFacts) => facts[key]);
}

function readPrompt(file: string, folders: readonly string[]): string {
  for (const path of isAbsolute(file) ? [file] : folders.map((folder) => join(folder, file))) {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      const fault = toFault(error);
      if (fault.kind !== "missing")
        throw new Fault(fault.kind, `cannot read ${path}: ${fault.message}`, { cause: error });
    }
  }
  throw new Fault("missing", `prompt file ${file} is not in ${folders.join(":")}`);
}
