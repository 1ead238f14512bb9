/**
 * The repository around a folder, found without running git: a repository's own config can name programs that git runs.
 * See gitrepository-layout(5), git-worktree(1) and gitsubmodules(7).
 */
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { within } from "./paths.ts";

export interface Repository {
  /** Top of the work tree; of a bare repository the git folder itself. Links resolved, as all paths here. */
  top: string;
  /** Where HEAD and index are. */
  gitDir: string;
  /** Where objects, refs, config and hooks are; differs from `gitDir` in a linked work tree. */
  commonDir: string;
}

export interface Found {
  repository?: Repository;
  /** Why the git folder that a `.git` file names is not believed. */
  doubt?: string;
}

/** Folders above `home` are not looked at, nor is a repository of the home folder that `cwd` only lies below. */
export function findRepository(cwd: string, home: string): Found {
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (folder !== cwd && within(home, folder)) return {};
    if (isGitDir(folder)) return { repository: { top: topOf(folder), gitDir: folder, commonDir: folder } };
    const found = at(folder);
    if (found) return found;
    if (folder === "/") return {};
  }
}

/** What `folder/.git` leads to; undefined where there is none. */
function at(folder: string): Found | undefined {
  const path = join(folder, ".git");
  try {
    const stat = lstatSync(path);
    if (stat.isFile()) return pointed(folder, path);
    const gitDir = realpathSync(path);
    if (!isGitDir(gitDir)) return undefined;
    if (!within(gitDir, folder)) return { doubt: `${path} is a link to ${gitDir}` };
    return { repository: { top: folder, gitDir, commonDir: gitDir } };
  } catch {
    return undefined;
  }
}

/**
 * A `.git` file names a git folder elsewhere. Anybody can write such a file, so it is believed only where that folder names this one in
 * turn, in the form that `git worktree add` or `git submodule` gave it.
 */
function pointed(folder: string, file: string): Found {
  const named = /^gitdir: (.+)$/m.exec(readFileSync(file, "utf8"))?.[1];
  if (named === undefined) return {};
  const doubt = (why: string) => ({ doubt: `${file} names ${named}, ${why}` });
  try {
    const gitDir = realpathSync(resolve(folder, named));
    const common = basename(dirname(gitDir)) === "worktrees" ? dirname(dirname(gitDir)) : undefined;
    if (common !== undefined && isGitDir(common)) {
      if (real(gitDir, line(join(gitDir, "commondir"))) !== common)
        return doubt("whose common folder is elsewhere");
      if (real(gitDir, line(join(gitDir, "gitdir"))) !== file)
        return doubt("which belongs to another folder");
      return { repository: { top: folder, gitDir, commonDir: common } };
    }
    if (!isGitDir(gitDir)) return doubt("which is no git folder");
    const workTree = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(readFileSync(join(gitDir, "config"), "utf8"))?.[1];
    const submodule = gitDir.includes("/modules/") && workTree !== undefined;
    if (!submodule || real(gitDir, workTree.replace(/^"(.*)"$/, "$1")) !== folder)
      return doubt("which does not name it in turn");
    return { repository: { top: folder, gitDir, commonDir: gitDir } };
  } catch {
    return doubt("which cannot be read");
  }
}

/** What git's own test of a git folder asks for, without its content. */
export function isGitDir(folder: string): boolean {
  return isFolder(join(folder, "objects")) && isFolder(join(folder, "refs")) && exists(join(folder, "HEAD"));
}

/** Of a git folder that the search came upon from inside. */
function topOf(gitDir: string): string {
  return basename(gitDir) === ".git" ? dirname(gitDir) : gitDir;
}

function line(file: string): string {
  return readFileSync(file, "utf8").trim();
}

function real(folder: string, path: string): string {
  return realpathSync(resolve(folder, path));
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Submodules in submodules are looked for down to here. */
const depth = 4;

/**
 * What may not be changed in a repository, since git runs what it says, or finds its config by it: hooks, config and the pointers
 * between folders, those of submodules and linked work trees included. Whether a path exists does not matter.
 */
export function protectedPaths({ top, gitDir, commonDir }: Repository): string[] {
  const own = ["hooks", "config", "config.worktree", "commondir", "gitdir"];
  const paths = [gitDir, commonDir].flatMap((folder) => own.map((name) => join(folder, name)));
  for (const name of folders(join(commonDir, "worktrees")))
    paths.push(...own.map((file) => join(commonDir, "worktrees", name, file)));
  if (top !== gitDir) paths.push(join(top, ".git"));
  return [...new Set([...paths, ...modules(gitDir, own, depth), ...modules(commonDir, own, depth)])].sort();
}

/** A submodule's name may hold slashes, so its git folder can lie some folders down. */
function modules(folder: string, own: string[], left: number): string[] {
  if (left === 0) return [];
  const inside = (parent: string, steps: number): string[] =>
    folders(parent).flatMap((name) => {
      const child = join(parent, name);
      if (isGitDir(child)) return [...own.map((file) => join(child, file)), ...modules(child, own, left - 1)];
      return steps > 0 ? inside(child, steps - 1) : [];
    });
  return inside(join(folder, "modules"), depth);
}

function folders(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
