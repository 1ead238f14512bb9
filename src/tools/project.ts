/** What every request tells the model of the project: its platform, its branch, and AGENTS.md and CLAUDE.md from the root of the repository down. */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readUntrusted } from "../sandbox/untrusted.ts";
import type { ProjectSurvey } from "./hands.ts";

const names = ["AGENTS.md", "CLAUDE.md"];
/** Of one file; more would push the work itself out of the window. */
const maxBytes = 32 * 1024;

/** Of this machine. Reads the disk synchronously. */
export function surveyProject(cwd: string): ProjectSurvey {
  return { platform: `${process.platform} ${process.arch}`, git: gitFacts(cwd), files: projectFiles(cwd) };
}

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

/** Which branch is checked out, read from the files of git itself: no process is started for it. */
function gitFacts(cwd: string): string {
  const root = repositoryOf(cwd);
  if (!root) return "not in a git repository";
  return `repository ${root}, ${readHead(join(root, ".git")) ?? "no branch"}`;
}

function readHead(dotGit: string): string | undefined {
  const head = (readOr(join(dotGit, "HEAD")) ?? worktreeHead(dotGit))?.trim() ?? "";
  const branch = /^ref: refs\/heads\/(.+)$/.exec(head);
  if (branch) return `branch ${branch[1]}`;
  // Anything else is no HEAD but a link to somebody's secret, for all that is known.
  return /^[0-9a-f]{40,64}$/.test(head) ? `detached at ${head.slice(0, 12)}` : undefined;
}

/** In a worktree `.git` is a file that names the real folder. */
function worktreeHead(dotGit: string): string | undefined {
  const target = /^gitdir: (.+)$/m.exec(readOr(dotGit) ?? "")?.[1];
  return target && readOr(join(target, "HEAD"));
}

/** Bytes; the files that are read hold a line. */
const longest = 4096;

function readOr(path: string): string | undefined {
  const file = readUntrusted(path, longest);
  return file && new TextDecoder().decode(file.bytes);
}
