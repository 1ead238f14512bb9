import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listAgents, loadAgent } from "../../src/config/agents.ts";
import { renderPrompt } from "../../src/config/prompt.ts";

const shipped = join(import.meta.dir, "../../data");
const facts = { cwd: "/w", platform: "linux x64", date: "2026-01-31", git: "none" };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-agents-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: unknown) =>
  writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));

describe("agent configs", () => {
  test("every shipped one can be used, and its prompt speaks of where it works", () => {
    const names = listAgents([join(shipped, "agents")]);
    expect(names.map((agent) => agent.name)).toEqual(["default", "developer", "reviewer", "tester"]);
    for (const { name, description, broken } of names) {
      expect(broken).toBeUndefined();
      expect(description).not.toBe("");
      const { prompt } = loadAgent(name, [join(shipped, "agents")]);
      const text = renderPrompt(prompt, [join(shipped, "prompts")], facts);
      expect(text).toContain("/w");
      expect(text).not.toContain("{{");
    }
  });

  test("the first folder that has the name wins, folders that do not exist are passed over", () => {
    mkdirSync(join(folder, "a"));
    mkdirSync(join(folder, "b"));
    write("a/x.json", { description: "first" });
    write("b/x.json", { description: "second" });
    write("b/y.json", { description: "y" });
    const folders = [join(folder, "none"), join(folder, "a"), join(folder, "b")];
    expect(loadAgent("x", folders).description).toBe("first");
    expect(listAgents(folders)).toEqual([
      { name: "x", description: "first" },
      { name: "y", description: "y" },
    ]);
  });

  test("generation parameters are kept apart from the rest", () => {
    write("x.json", { model: "m", temperature: 0.3, stop: ["END"], maxSteps: 9 });
    expect(loadAgent("x", [folder])).toMatchObject({
      model: "m",
      maxSteps: 9,
      params: { temperature: 0.3, stop: ["END"] },
    });
  });

  test.each([
    ["{", /x\.json: not JSON: /],
    [{ promt: "" }, /x\.json: unknown key promt: known are description prompt /],
    [{ hooks: { preturn: "true" } }, /x\.json: unknown key hooks\.preturn: known are agentSpawn /],
    [{ prompt: { flie: "a" } }, /x\.json: prompt: must be a text, \{"file": NAME\} or a list of these/],
    [{ temperature: "hot" }, /x\.json: temperature: /],
    [{ maxSteps: 0 }, /x\.json: maxSteps: /],
    [[], /x\.json: /],
  ])("%j is refused with file and key", (content, message) => {
    write("x.json", content);
    expect(() => loadAgent("x", [folder])).toThrow(message);
    expect(listAgents([folder])[0]?.broken).toMatch(message);
  });

  test("a name that does not exist gets the names that do; a path is no name", () => {
    write("x.json", {});
    write("../outside.json", {});
    expect(() => loadAgent("y", [folder])).toThrow("no agent y: there are x");
    expect(() => loadAgent("../outside", [folder])).toThrow("no agent ../outside");
    rmSync(join(folder, "../outside.json"));
  });
});

describe("prompts", () => {
  test("parts are joined by blank lines, templates filled, anything else in braces left alone", () => {
    write("a.md", "From a file in {{cwd}}.\n");
    const text = renderPrompt(
      ["On {{platform}}, {{date}}.", { file: "a.md" }, "", "{{name}} {{ cwd }}"],
      [folder],
      facts,
    );
    expect(text).toBe("On linux x64, 2026-01-31.\n\nFrom a file in /w.\n\n{{name}} {{ cwd }}");
  });

  test("a fact that looks like a template or a replacement pattern is put in as it is", () => {
    expect(renderPrompt("{{cwd}}", [], { ...facts, cwd: "/$&/{{date}}" })).toBe("/$&/{{date}}");
  });

  test("a file that is nowhere is an error that says where it was looked for", () => {
    expect(() => renderPrompt({ file: "no.md" }, ["/p", "/q"], facts)).toThrow(
      "prompt file no.md is not in /p:/q",
    );
  });
});
