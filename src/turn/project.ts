/** What a project tells agents about itself: AGENTS.md and CLAUDE.md from the root of the repository down to the working folder. */
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

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

function readText(path: string): string {
  let fd: number | undefined;
  try {
    // Before it is opened: to open a FIFO would wait for its writer.
    if (!statSync(path).isFile()) return "";
    fd = openSync(path, "r");
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(maxBytes, size));
    const whole = size <= maxBytes;
    const read = bytes.subarray(0, readSync(fd, bytes));
    const text = new TextDecoder().decode(read, { stream: !whole }).trim();
    return whole ? text : `${text}\n[cut after ${maxBytes} bytes; read ${path} for the rest]`;
  } catch {
    return "";
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
