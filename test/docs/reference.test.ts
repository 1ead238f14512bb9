/** The tables of keys in doc/WRITING_TOOLS.md and doc/CONFIGURATION.md say what the schemas say. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadAgent } from "../../src/config/agents.ts";
import { renderPrompt } from "../../src/config/prompt.ts";
import { Secrets } from "../../src/config/secrets.ts";
import { unattended } from "../../src/exec/env.ts";
import { blockTypes } from "../../src/store/blocks.ts";
import { callEnvironment } from "../../src/tools/environment.ts";
import { type Meta, parseMeta } from "../../src/tools/meta.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { CallContext, Tool } from "../../src/tools/tool.ts";
import type { Wishes } from "../../src/tools/wishes.ts";
import { codeBlocks, codeSpans, read, rows, section } from "./markdown.ts";

const tools = read("doc/WRITING_TOOLS.md");
const configuration = read("doc/CONFIGURATION.md");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ollie-docs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The names in the first column of a section's first table, sorted. */
function firstColumn(text: string): string[] {
  return rows(text)
    .flatMap(([names]) => codeSpans(names!))
    .sort();
}

/** A tool of which only what is needed is said. */
function plainTool(): Tool {
  writeFileSync(join(folder, "plain"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(folder, "plain.meta"), '{"description": "Nothing"}');
  return createRegistry(folder).get("plain")!;
}

describe("doc/WRITING_TOOLS.md", () => {
  test("has the keys of a sidecar", () => {
    // The compiler sees to it that this is all of them.
    const keys: Record<keyof Meta, true> = {
      description: true,
      documentation: true,
      args: true,
      cmd: true,
      tier: true,
      concurrency: true,
      readOnly: true,
      elevated: true,
      sudo: true,
      timeout: true,
      remote: true,
      service: true,
      variants: true,
    };
    expect(firstColumn(section(tools, "The sidecar"))).toEqual(Object.keys(keys).sort());
  });

  test("has the arguments that mean something to ollie", () => {
    const names: Record<Exclude<keyof Wishes, "sudo">, true> = {
      elevated: true,
      detach: true,
      notify: true,
      timeout: true,
    };
    expect(firstColumn(section(tools, "Arguments"))).toEqual(Object.keys(names).sort());
  });

  test("has the keys of a match", () => {
    const keys: Record<keyof NonNullable<Meta["variants"]>[number]["match"], true> = {
      binary: true,
      file: true,
      os: true,
      arch: true,
      env: true,
      nenv: true,
    };
    expect(firstColumn(section(tools, "Variants"))).toEqual(Object.keys(keys).sort());
  });

  test("has the defaults of a sidecar", () => {
    const tool = plainTool();
    const said = rows(section(tools, "The sidecar")).map(([key, value]) => [
      codeSpans(key!)[0]!,
      codeSpans(value!),
    ]);
    const compared = ["tier", "readOnly", "timeout", "remote", "elevated", "sudo"] as const;
    const table = new Map(said as [string, string[]][]);
    for (const key of compared) expect(table.get(key)).toEqual([String(tool[key])]);
    expect(table.get("concurrency")).toEqual(["read", "readOnly", tool.concurrency]);
  });

  test("has sidecars that are right", () => {
    const sidecars = codeBlocks(tools).filter(({ info }) => info.startsWith("json"));
    expect(sidecars.length).toBeGreaterThan(2);
    for (const { text } of sidecars) expect(() => parseMeta(text)).not.toThrow();
  });

  test("has every variable of a call", () => {
    const context: CallContext = {
      session: "s",
      agent: "a",
      cwd: "/",
      env: {},
      secrets: new Secrets(),
      tmp: "/t",
      address: (over) => (over === "unix" ? { addr: "unix!/a" } : { addr: "tcp!127.0.0.1!1", token: "t" }),
      toolsPath: "/tools",
      memoryPath: "/memory",
      skillsPath: "/skills",
      cage: async () => undefined,
      serviceCage: async () => undefined,
    };
    const environment = callEnvironment(plainTool(), { path: "x" }, context, "id");
    const names = [...Object.keys(environment), ...Object.keys(unattended), "OLLIE_EXEC"];
    const words = codeSpans(section(tools, "Environment")).flatMap((text) => text.split(/[ =]/));
    const patterns = [/^OLLIE_ARG_/, /^LC_/, /_proxy$/i];
    const missing = names.filter(
      (name) => !words.includes(name) && !patterns.some((pattern) => pattern.test(name)),
    );
    expect(missing).toEqual([]);
  });

  test("has everything that ollie:tool exports", () => {
    const exported = [...read("data/tools/ollie-tool.d.ts").matchAll(/export (?:function|const) (\w+)/g)];
    const words = codeSpans(section(tools, "TypeScript tools")).map((text) => /^\w+/.exec(text)?.[0]);
    for (const [, name] of exported) expect(words).toContain(name);
  });
});

describe("doc/CONFIGURATION.md", () => {
  test("has the keys of an agent config", () => {
    writeFileSync(join(folder, "wrong.json"), '{"no such key": 1}');
    let message = "";
    try {
      loadAgent("wrong", [folder]);
    } catch (error) {
      message = (error as Error).message;
    }
    const keys = /known are (.*)$/.exec(message)![1]!.split(" ");
    const [table] = section(configuration, "Agent configs").split("In prompts");
    expect(firstColumn(table!)).toEqual(keys.sort());
  });

  test("has the templates of prompts", () => {
    const facts = { cwd: "CWD", platform: "PLATFORM", date: "DATE", git: "GIT" };
    const said = firstColumn(section(configuration, "Agent configs").split("In prompts")[1]!);
    expect(said.length).toBe(Object.keys(facts).length);
    expect(renderPrompt(said.join(" "), [], facts)).toBe("CWD DATE GIT PLATFORM");
  });
});

describe("doc/USAGE.md", () => {
  test("has the types of blocks in a chat", () => {
    expect(firstColumn(section(read("doc/USAGE.md"), "Reading the chat"))).toEqual([...blockTypes].sort());
  });
});
