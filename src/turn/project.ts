/** What a project tells agents about itself: AGENTS.md and CLAUDE.md from the root of the repository down to the working folder. */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readUntrusted } from "../sandbox/untrusted.ts";

const names = ["AGENTS.md", "CLAUDE.md"];
/** Of one file; more would push the work itself out of the window. */
const maxBytes = 32 * 1024;

/** The files that apply to `cwd`, outermost first; of several that say the same, one. */
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

/** The nearest folder at or above `cwd` that holds `.git`. */
export function repositoryOf(cwd: string): string | undefined {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** From the root of the repository (or `cwd` itself outside one) down to `cwd`. */
function foldersDown(cwd: string): string[] {
  const root = repositoryOf(cwd) ?? cwd;
  const folders = [cwd];
  while (folders[0] !== root) folders.unshift(dirname(folders[0]!));
  return folders;
}

/**
 * A link counts where it leads to another such file, as from CLAUDE.md to AGENTS.md. To any other it could have been laid by a tool that may
 * not read it and would like to see it in the next prompt.
 */
function readText(path: string): string {
  const file = readUntrusted(path, maxBytes);
  if (!file || !names.includes(basename(file.real))) return "";
  const whole = file.size <= maxBytes;
  const text = new TextDecoder().decode(file.bytes, { stream: !whole }).trim();
  return whole ? text : `${text}\n[cut after ${maxBytes} bytes; read ${path} for the rest]`;
}
