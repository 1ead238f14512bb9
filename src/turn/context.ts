/** The system prompt of an agent. The same inputs give the same bytes, so that providers' prompt caches hit. */
import { join } from "node:path";
import type { AgentConfig } from "../config/agents.ts";
import { renderPrompt } from "../config/prompt.ts";
import { readUntrusted } from "../sandbox/untrusted.ts";
import type { Tool } from "../tools/tool.ts";
import { projectFiles, repositoryOf } from "./project.ts";

export interface PromptParts {
  config: AgentConfig;
  cwd: string;
  /** Folders of `OLLIE_PROMPTS_PATH`. */
  prompts: readonly string[];
  /** Tools the agent may load but has not. */
  loadable: readonly Tool[];
}

/** @throws Fault "missing" that names a prompt file which the config asks for and nobody has */
export function systemPrompt({ config, cwd, prompts, loadable }: PromptParts): string {
  const parts = [
    renderPrompt(config.prompt, prompts, {
      cwd,
      platform: `${process.platform} ${process.arch}`,
      // The day, not the time: a prompt that changed every second would never be found in a cache.
      date: new Date().toISOString().slice(0, 10),
      git: gitFacts(cwd),
    }),
    ...projectFiles(cwd).map(({ path, text }) => `# ${path}\n\n${text}`),
  ];
  if (loadable.length > 0)
    parts.push(
      `# Tools that can be loaded\n\n${loadable.map(({ name, description }) => `- ${name}: ${description}`).join("\n")}`,
    );
  return parts.filter((part) => part !== "").join("\n\n");
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
