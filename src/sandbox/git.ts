/**
 * The repository around a folder, found without running git: a repository's own config can name programs that git runs.
 * See gitrepository-layout(5), git-worktree(1) and gitsubmodules(7).
 */
import { lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { Fault } from "../fault.ts";
import { within } from "./paths.ts";
import { readUntrusted } from "./untrusted.ts";

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
  const named = /^gitdir: (.+)$/m.exec(text(file))?.[1];
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
    const workTree = workTreeOf(gitDir);
    const submodule = gitDir.includes("/modules/") && workTree !== undefined;
    if (!submodule || real(gitDir, workTree) !== folder) return doubt("which does not name it in turn");
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
  return text(file).trim();
}

/** Bytes that a pointer or a config may have. */
const longest = 256 * 1024;

/** Empty where there is no such file: a name that is empty leads nowhere. */
function text(file: string): string {
  const found = readUntrusted(file, longest);
  return found && found.size <= longest ? new TextDecoder().decode(found.bytes) : "";
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
/** Folders that are looked through for work trees and submodules: tools can make any number, and all wait while they are read. */
const mostFolders = 1000;

const obeyed = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/**
 * What may not be changed in a repository, since git runs what it says, or finds its config by it: hooks, config and the pointers
 * between folders, those of submodules and linked work trees included. Whether a path exists does not matter.
 * @throws Fault where there is more than anybody works with
 */
export function protectedPaths({ top, gitDir, commonDir }: Repository): string[] {
  const search = new Search(commonDir);
  const paths = [gitDir, commonDir].flatMap(obeyedIn);
  const trees = join(commonDir, "worktrees");
  for (const name of search.folders(trees)) paths.push(...obeyedIn(join(trees, name)));
  if (top !== gitDir) paths.push(join(top, ".git"));
  for (const folder of new Set([gitDir, commonDir])) paths.push(...search.modules(folder));
  return [...new Set(paths)].sort();
}

function obeyedIn(folder: string): string[] {
  return obeyed.map((name) => join(folder, name));
}

class Search {
  #left = mostFolders;

  /** @param place for an error */
  constructor(private readonly place: string) {}

  /** Of all submodules of a git folder. A submodule's name may hold slashes, so its git folder can lie some folders down. */
  modules(gitDir: string, levels = depth): string[] {
    if (levels === 0) return [];
    const inside = (parent: string, steps: number): string[] =>
      this.folders(parent).flatMap((name) => {
        const child = join(parent, name);
        if (isGitDir(child))
          return [...obeyedIn(child), ...pointerTo(child), ...this.modules(child, levels - 1)];
        return steps > 0 ? inside(child, steps - 1) : [];
      });
    return inside(join(gitDir, "modules"), depth);
  }

  folders(path: string): string[] {
    const found = list(path);
    this.#left -= found.length;
    if (this.#left < 0)
      throw new Fault(
        "full",
        `${this.place} has more than ${mostFolders} folders of work trees and submodules: nobody can look after so many; remove those that are not needed (git worktree prune)`,
      );
    return found;
  }
}

/** The `.git` in a submodule's work tree. */
function pointerTo(gitDir: string): string[] {
  const workTree = workTreeOf(gitDir);
  return workTree === undefined ? [] : [join(resolve(gitDir, workTree), ".git")];
}

/** As its config names it. */
function workTreeOf(gitDir: string): string | undefined {
  const named = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(text(join(gitDir, "config")))?.[1];
  return named?.replace(/^"(.*)"$/, "$1");
}

/** Names of folders. */
function list(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
