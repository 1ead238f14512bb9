import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadAgent } from "../../src/config/agents.ts";
import type { Host } from "../../src/tools/meta.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import { shippedTools } from "./helper.ts";

/** A host with a desktop, and one that has nothing at all. */
const bare: Host = { os: "linux", arch: "x64", env: {}, hasBinary: () => false, hasFile: () => false };
const full: Host = { ...bare, hasBinary: () => true, hasFile: () => true };
const registry = createRegistry(shippedTools, full);
const names = (host: Host) =>
  createRegistry(shippedTools, host)
    .list()
    .map(({ name }) => name);

const everywhere = [
  ..."file_edit file_glob file_grep file_read file_write".split(" "),
  ..."lsp_completion lsp_definition lsp_diagnostics lsp_hover lsp_references lsp_rename lsp_symbols".split(
    " ",
  ),
  ..."memory_recall memory_remember reasoning_think shell skill_load".split(" "),
  ..."task_add task_check task_clear tool_help tool_load web_fetch".split(" "),
];
const withPrograms = "gui_dialog gui_notify gui_screenshot system_logs".split(" ");

test("every shipped tool can be used, those for desktop and logs where there are programs for it", () => {
  expect(registry.problems()).toEqual([]);
  expect(names(bare)).toEqual(everywhere);
  expect(names(full)).toEqual([...everywhere, ...withPrograms].sort());
});

test("what an agent begins with and what it can load leave a first request of 8 kB room for its prompt", () => {
  const { autoLoad } = loadAgent("default", [join(shippedTools, "../agents")]);
  const loaded = registry.list().filter(({ name }) => autoLoad.includes(name));
  const others = registry.list().filter(({ name }) => !autoLoad.includes(name));
  const specs = loaded.map((tool) => ({ type: "function", function: registry.spec(tool) }));
  expect(loaded.length).toBe(autoLoad.length);
  expect(JSON.stringify(specs).length).toBeLessThan(4000);
  expect(others.map(({ name, description }) => `- ${name}: ${description}\n`).join("").length).toBeLessThan(
    2000,
  );
});

test("each is described in a line, and explained to who asks", () => {
  for (const { name, description, documentation } of registry.list()) {
    expect(`${name}: ${description}`).toMatch(/: [A-Z].{10,158}\.$/);
    expect(`${name}: ${documentation}`).toMatch(/: \S.{20,}\.$/s);
  }
});

test("none needs more of a host than /bin/sh and the ollie binary, apart from what its variants ask for", () => {
  const files = readdirSync(shippedTools).map((name) => join(shippedTools, name));
  const programs = files.filter((file) => statSync(file).isFile() && statSync(file).mode & 0o100);
  expect(programs.length).toBeGreaterThan(registry.list().length);
  for (const path of programs) {
    expect(readFileSync(path, "utf8").split("\n")[0]).toBeOneOf(["#!/bin/sh", "#!/usr/bin/env ollie-run"]);
  }
});

test("what needs the session's tree, the user's notes or the user's desktop runs where those are", () => {
  const local = registry.list().filter(({ remote }) => !remote);
  expect(local.map(({ name }) => name)).toEqual([
    ..."gui_dialog gui_notify gui_screenshot memory_recall memory_remember skill_load".split(" "),
    ..."task_add task_check task_clear tool_help tool_load".split(" "),
  ]);
});

test("what only looks may run side by side", () => {
  const reading = registry
    .list()
    .filter(({ concurrency, name }) => concurrency === "read" && !/^lsp_/.test(name));
  expect(reading.map(({ name }) => name)).toEqual([
    ..."file_glob file_grep file_read memory_recall reasoning_think skill_load system_logs tool_help".split(
      " ",
    ),
    "web_fetch",
  ]);
});

test("what needs the user's desktop asks the user first", () => {
  const elevated = registry.list().filter((tool) => tool.elevated || tool.sudo);
  expect(elevated.map(({ name }) => name)).toEqual(["gui_dialog", "gui_notify", "gui_screenshot"]);
});
