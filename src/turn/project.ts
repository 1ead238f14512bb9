/** What a project tells agents about itself: AGENTS.md and CLAUDE.md from the root of the repository down to the working folder. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

const names = ["AGENTS.md", "CLAUDE.md"];
/** Of one file; more would push the work itself out of the window. */
const maxBytes = 32 * 1024;

/** The files that apply to `cwd`, outermost first; of two in one folder that say the same, one. */
export function projectFiles(cwd: string): { path: string; text: string }[] {
  const found: { path: string; text: string }[] = [];
  for (const folder of foldersDown(cwd))
    for (const name of names) {
      const path = join(folder, name);
      const text = readText(path);
      if (text && !found.some((other) => other.text === text)) found.push({ path, text });
    }
  return found;
}

/** From the folder that holds `.git` (or `cwd` itself outside a repository) down to `cwd`. */
function foldersDown(cwd: string): string[] {
  const up: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    up.push(folder);
    if (existsSync(join(folder, ".git"))) return up.reverse();
    if (dirname(folder) === folder) return [cwd];
  }
}

function readText(path: string): string {
  try {
    if (!statSync(path).isFile()) return "";
    const bytes = readFileSync(path);
    const text = new TextDecoder().decode(bytes.subarray(0, maxBytes)).trim();
    return bytes.length > maxBytes
      ? `${text}\n[cut after ${maxBytes} bytes; read ${path} for the rest]`
      : text;
  } catch {
    return "";
  }
}
