/**
 * Skills: folders with a `SKILL.md` whose front matter says `name` and `description`, the public agent-skills format; or a single file
 * `NAME.md` of the same kind.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

export interface Skill {
  name: string;
  description: string;
  file: string;
  /** Its own folder, with what else belongs to it; a single file has none. */
  folder?: string;
  /** What the file says behind its front matter. */
  body: string;
}

const frontMatter = /^\uFEFF?---\r?\n(.*?)\r?\n---[^\S\n]*(?:\n|$)/s;

/** All skills of these folders, sorted; of two with one name the first folder's. One whose front matter is broken says so. */
export function listSkills(folders: readonly string[]): Skill[] {
  const found = new Map<string, Skill>();
  for (const folder of folders)
    for (const entry of entries(folder)) {
      const skill = readSkill(folder, entry);
      if (skill && !found.has(skill.name)) found.set(skill.name, skill);
    }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A README tells people about the folder. */
function entries(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name !== "README.md");
  } catch {
    return []; // a folder of a search path need not exist
  }
}

function readSkill(parent: string, entry: string): Skill | undefined {
  const single = entry.endsWith(".md");
  const file = single ? join(parent, entry) : join(parent, entry, "SKILL.md");
  const ownName = entry.replace(/\.md$/, "");
  const text = readOr(file);
  if (text === undefined) return undefined;
  const front = frontMatter.exec(text)?.[1] ?? "";
  const { name, description, problem } = readFront(front);
  return {
    name: name ?? ownName,
    description: description ?? (problem ? `${file}: ${problem}` : ""),
    file,
    body: text.replace(frontMatter, "").trim(),
    ...(!single && { folder: join(parent, entry) }),
  };
}

/** Many a description has a colon in it, which YAML wants in quotes: then the lines are taken as they stand. */
function readFront(front: string): { name?: string; description?: string; problem?: string } {
  const text = (value: unknown) =>
    value === undefined || value === null ? undefined : oneLine(String(value));
  try {
    const { name, description } = (parse(front) ?? {}) as Record<string, unknown>;
    return { name: text(name), description: text(description) };
  } catch (error) {
    const line = (key: string) => text(new RegExp(`^${key}:[ \\t]+(\\w.*)$`, "m").exec(front)?.[1]);
    return {
      name: line("name"),
      description: line("description"),
      problem: oneLine((error as Error).message),
    };
  }
}

function readOr(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
