import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createRegistry } from "../../src/tools/registry.ts";
import { shippedTools } from "./helper.ts";

const registry = createRegistry(shippedTools);

test("every shipped tool can be used here", () => {
  expect(registry.problems()).toEqual([]);
  expect(registry.list().map(({ name }) => name)).toEqual([
    "file_edit",
    "file_glob",
    "file_grep",
    "file_read",
    "file_write",
    "reasoning_think",
    "shell",
    "task_add",
    "task_check",
    "task_clear",
    "tool_help",
    "tool_load",
  ]);
});

test("all of them together leave a first request of 8 kB room for its prompt", () => {
  const specs = registry.list().map((tool) => registry.spec(tool));
  expect(JSON.stringify(specs.map((spec) => ({ type: "function", function: spec }))).length).toBeLessThan(
    4000,
  );
});

test("none needs more of a host than /bin/sh and the ollie binary", () => {
  for (const { path } of registry.list()) {
    expect(readFileSync(path, "utf8").split("\n")[0]).toBeOneOf(["#!/bin/sh", "#!/usr/bin/env ollie-run"]);
  }
});

test("what talks to the session's tree runs where the tree is", () => {
  const local = registry.list().filter(({ remote }) => !remote);
  expect(local.map(({ name }) => name)).toEqual([
    "task_add",
    "task_check",
    "task_clear",
    "tool_help",
    "tool_load",
  ]);
});

test("what only looks may run side by side", () => {
  const reading = registry.list().filter(({ concurrency }) => concurrency === "read");
  expect(reading.map(({ name }) => name)).toEqual([
    "file_glob",
    "file_grep",
    "file_read",
    "reasoning_think",
    "tool_help",
  ]);
});
