/** Skills: folders with a `SKILL.md` whose front matter says `name` and `description`, the public agent-skills format. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

export interface Skill {
  name: string;
  description: string;
  file: string;
}

/** All skills of these folders, sorted; of two with one name the first folder's. One whose front matter is broken says so. */
export function listSkills(folders: readonly string[]): Skill[] {
  const found = new Map<string, Skill>();
  for (const folder of folders)
    for (const entry of entries(folder)) {
      const file = join(folder, entry, "SKILL.md");
      const skill = readSkill(entry, file);
      if (skill && !found.has(skill.name)) found.set(skill.name, skill);
    }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // a folder of a search path need not exist
  }
}

function readSkill(entry: string, file: string): Skill | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  try {
    const front = /^---\r?\n(.*?)\r?\n---/s.exec(text)?.[1] ?? "";
    const { name, description } = (parse(front) ?? {}) as { name?: unknown; description?: unknown };
    return { name: String(name ?? entry), description: oneLine(String(description ?? "")), file };
  } catch (error) {
    return { name: entry, description: `${file}: ${oneLine((error as Error).message)}`, file };
  }
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
