import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentConfig } from "../../src/config/agents.ts";
import { projectFiles, surveyProject } from "../../src/tools/project.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { systemPrompt } from "../../src/turn/context.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-context-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Makes a file with the folders above it and returns its path. */
function put(path: string, text: string | Uint8Array): string {
  const full = join(folder, path);
  mkdirSync(join(full, ".."), { recursive: true });
  writeFileSync(full, text);
  return full;
}

const found = (cwd: string) =>
  projectFiles(join(folder, cwd)).map(({ path, text }) => [path.slice(folder.length + 1), text]);

describe("what a project says of itself", () => {
  test("is read from the root of the repository down to the working folder", () => {
    put("AGENTS.md", "outside");
    put("repo/.git/HEAD", "ref: refs/heads/main\n");
    put("repo/AGENTS.md", "root");
    put("repo/a/CLAUDE.md", "middle\n");
    put("repo/a/b/AGENTS.md", "inner");
    put("repo/a/other/AGENTS.md", "aside");
    expect(found("repo/a/b")).toEqual([
      ["repo/AGENTS.md", "root"],
      ["repo/a/CLAUDE.md", "middle"],
      ["repo/a/b/AGENTS.md", "inner"],
    ]);
  });

  test("is only that of the working folder outside a repository", () => {
    put("AGENTS.md", "above");
    put("a/AGENTS.md", "here");
    expect(found("a")).toEqual([["a/AGENTS.md", "here"]]);
  });

  test("is said once where two files say the same", () => {
    put("AGENTS.md", "same");
    put("CLAUDE.md", "same\n");
    expect(found("")).toEqual([["AGENTS.md", "same"]]);
  });

  test("is cut where it is long, between characters, and the cut is told", () => {
    put("AGENTS.md", `x${"ä".repeat(40_000)}`);
    const [, text] = found("")[0]!;
    expect(text).toMatch(/^xä+\n\[cut after 32768 bytes; read \S+AGENTS\.md for the rest\]$/);
  });

  test("is passed over where it cannot be read: a folder, a FIFO, nothing", () => {
    mkdirSync(join(folder, "AGENTS.md"));
    Bun.spawnSync(["mkfifo", join(folder, "CLAUDE.md")]);
    expect(found("")).toEqual([]);
    expect(found("nowhere")).toEqual([]);
  });
});

describe("the system prompt", () => {
  const config = {
    name: "default",
    prompt: "In {{cwd}} on {{platform}}: {{git}}.",
  } as unknown as AgentConfig;
  const prompt = (parts: Partial<Parameters<typeof systemPrompt>[0]> = {}) =>
    systemPrompt({
      config,
      cwd: folder,
      project: surveyProject(parts.cwd ?? folder),
      prompts: [],
      loadable: [],
      ...parts,
    });

  test("knows the branch, a detached head, a worktree, and where there is no repository", () => {
    expect(prompt()).toContain("not in a git repository");
    put(".git/HEAD", "ref: refs/heads/feature/x\n");
    expect(prompt()).toContain(`repository ${folder}, branch feature/x`);
    put(".git/HEAD", `${"a1".repeat(20)}\n`);
    expect(prompt()).toContain("detached at a1a1a1a1a1a1");
    put("tree/.git", `gitdir: ${join(folder, "elsewhere")}\n`);
    put("elsewhere/HEAD", "ref: refs/heads/side\n");
    expect(prompt({ cwd: join(folder, "tree") })).toContain(`repository ${folder}/tree, branch side`);
  });

  test("lists the tools that can be loaded, and is the same for the same", () => {
    const loadable = [{ name: "web_fetch", description: "Fetches a page" }] as Tool[];
    expect(prompt({ loadable })).toEndWith("# Tools that can be loaded\n\n- web_fetch: Fetches a page");
    expect(prompt({ loadable })).toBe(prompt({ loadable }));
    expect(prompt()).not.toContain("loaded");
  });

  test("names the prompt file that nobody has", () => {
    const missing = { ...config, prompt: [{ file: "nosuch.md" }] } as unknown as AgentConfig;
    expect(() => prompt({ config: missing })).toThrow("nosuch.md");
  });
});
