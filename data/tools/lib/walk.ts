/** The files below a folder that a project would call its own: without `.git` and what .gitignore files exclude. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { ignoreRules } from "ollie:tool";

/** Folder entries after which a walk ends. */
const mostEntries = 300_000;

interface Rules {
  folder: string;
  rules: ReturnType<typeof ignoreRules>;
}

/**
 * Absolute paths, folder by folder. Symbolic links to folders are not followed. The generator's result tells whether there was more
 * than it may look at.
 */
export function* walk(root: string): Generator<string, { cut: boolean }> {
  const above = rulesAbove(root);
  // Whoever names an ignored folder wants to see into it.
  const waiting = [{ folder: root, rules: isIgnored(root, true, above) ? [] : above }];
  let seen = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { folder } = next;
    const rules = [...next.rules, ...rulesOf(folder)];
    for (const entry of list(folder)) {
      if (++seen > mostEntries) return { cut: true };
      const path = join(folder, entry.name);
      const isFolder = entry.isDirectory();
      if (entry.name === ".git" || isIgnored(path, isFolder, rules)) continue;
      if (isFolder) waiting.push({ folder: path, rules });
      else if (entry.isFile() || entry.isSymbolicLink()) yield path;
    }
  }
  return { cut: false };
}

function list(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return []; // not ours to read, or gone in the meantime
  }
}

/** The rules of the folders above, up to the one that holds the repository. */
function rulesAbove(root: string): Rules[] {
  const folders: string[] = [];
  for (let folder = root; !existsSync(join(folder, ".git")); folder = dirname(folder)) {
    if (dirname(folder) === folder) return []; // not in a repository
    folders.unshift(dirname(folder));
  }
  return folders.flatMap(rulesOf);
}

function rulesOf(folder: string): Rules[] {
  return [join(folder, ".git/info/exclude"), join(folder, ".gitignore")].flatMap((file) => {
    try {
      return [{ folder, rules: ignoreRules(readFileSync(file, "utf8")) }];
    } catch {
      return [];
    }
  });
}

/** gitignore(5): the nearest file that says anything decides. */
function isIgnored(path: string, isFolder: boolean, all: Rules[]): boolean {
  for (const { folder, rules } of all.toReversed()) {
    const inside = relative(folder, path);
    if (inside === "" || inside.startsWith("..")) continue;
    const { ignored, unignored } = rules.test(isFolder ? `${inside}/` : inside);
    if (ignored || unignored) return ignored;
  }
  return false;
}
