/** doc/CONFIGURATION.md knows every variable that the sources read, and no other, with the defaults that they have. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OllamaBackend } from "../../src/backends/ollama.ts";
import type { OpenAIBackend } from "../../src/backends/openai.ts";
import { BackendRegistry } from "../../src/backends/registry.ts";
import { loadConfig } from "../../src/config/config.ts";
import { idleVariables, unknownVariables } from "../../src/config/settings.ts";
import { codeBlocks, codeSpans, prose, read, rows, section, top } from "./markdown.ts";

const document = read("doc/CONFIGURATION.md");
/** Blocks that are run contain deliberate mistakes. */
const described = [
  prose(document),
  ...codeBlocks(document).flatMap(({ info, text }) => (info === "sh" ? text : [])),
].join("\n");
const documented = new Set(described.match(/\bOLLIE_[A-Z0-9_]+\b/g));

/** Names in the sources; what build.ts puts in is no variable. */
function named(): string[] {
  const files = [...new Bun.Glob("{src,actors,data}/**").scanSync({ cwd: top })];
  const all = files.map((file) => readFileSync(join(top, file), "utf8")).join("\n");
  const constants = new Set([...all.matchAll(/declare const (OLLIE_\w+)/g)].map((match) => match[1]));
  const found = new Set(all.match(/\bOLLIE_[A-Z0-9]+(?:_[A-Z0-9]+)*\b/g));
  return [...found].filter((name) => !constants.has(name) && name !== "OLLIE_ARG").sort();
}

/** Of one table, by the variable's name. */
function defaults(heading: string): Map<string, string> {
  return new Map(
    rows(section(document, heading)).map(([name, value]) => [
      codeSpans(name!)[0]!,
      codeSpans(value!)[0] ?? "",
    ]),
  );
}

describe("variables", () => {
  test("every one that the sources name is documented", () => {
    const pattern = /^OLLIE_ARG_|^OLLIE_\w+_(URL|KEY)$/;
    expect(described).toContain("`OLLIE_ARG_<NAME>`");
    expect(described).toContain("`OLLIE_<LABEL>_URL`");
    expect(named().filter((name) => !documented.has(name) && !pattern.test(name))).toEqual([]);
  });

  test("every one that is documented exists", () => {
    const set = Object.fromEntries([...documented].map((name) => [name, "x"]));
    expect(unknownVariables({ ...set, OLLIE_ENABLED_BACKENDS: "openrouter,gpu-box" })).toEqual([]);
  });

  test("those without effect are those that are listed as such", () => {
    const later = rows(section(document, "For later")).flatMap(([names]) => codeSpans(names!));
    const set = Object.fromEntries([...documented].map((name) => [name, "x"]));
    expect(later.sort()).toEqual(idleVariables(set));
  });

  test("folders have the defaults that are documented", () => {
    const { paths } = loadConfig({ HOME: "/home/you" });
    const wanted = {
      OLLIE_AGENTS_PATH: paths.agents.join(":"),
      OLLIE_PROMPTS_PATH: paths.prompts.join(":"),
      OLLIE_TOOLS_PATH: paths.tools.join(":"),
      OLLIE_SKILLS_PATH: paths.skills.join(":"),
      OLLIE_MEMORY_PATH: paths.memory,
      OLLIE_STATE_PATH: paths.state,
    };
    const said = defaults("Folders");
    for (const [name, path] of Object.entries(wanted))
      expect(said.get(name)).toBe(path.replace("/home/you", "~"));
  });

  test("so have backends", () => {
    const said = defaults("Models");
    const registry = new BackendRegistry({ OLLIE_OPENAI_KEY: "k" });
    const openai = registry.get("openai") as OpenAIBackend;
    const ollama = registry.get("ollama") as OllamaBackend;
    registry.close();
    expect(openai.options.url).toBe(said.get("OLLIE_OPENAI_URL")!);
    expect(ollama.options.url).toBe(said.get("OLLIE_OLLAMA_URL")!);
    const idle = 1000 * Number(said.get("OLLIE_IDLE_TIMEOUT"));
    const connect = 1000 * Number(said.get("OLLIE_CONNECT_TIMEOUT"));
    expect(openai.options.limits).toEqual({ connect, first: 2 * idle, idle });
    expect(loadConfig({ HOME: "/home/you" }).settings.logLevel as string).toBe(
      defaults("The server").get("OLLIE_LOG")!,
    );
  });
});
