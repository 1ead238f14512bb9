/** doc/REMOTE.md: its commands print what it says, against a real sshd; its settings are taken; the errors are those that there are. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ollieRemote } from "../../src/cli/remote/program.ts";
import { loadRemotes } from "../../src/remote/policy/remotes.ts";
import { build } from "../e2e/harness.ts";
import { lacksHosts, startHost } from "../rig/rig.ts";
import { codeBlocks, codeSpans, read, rows, section, top } from "./markdown.ts";
import { agrees, normalise, parseDocument, play } from "./transcript.ts";

setDefaultTimeout(240_000);

const document = read("doc/REMOTE.md");
const possible = !lacksHosts();

describe.skipIf(!possible)("the commands", () => {
  const parts = parseDocument(document);
  const steps = parts.filter((part) => "command" in part);
  let printed: string[] = [];
  beforeAll(async () => {
    if (!possible) return;
    await build();
    const { client } = await startHost({ name: "build" });
    try {
      printed = await play(parts, (argv, cwd) => client.argv(argv, cwd));
    } finally {
      await client.close();
    }
  });

  test("were all run", () => {
    expect(printed.length).toBe(steps.length);
    expect(steps.length).toBeGreaterThan(20);
  });

  for (const [index, step] of steps.entries()) {
    test(`line ${step.line}: ${step.command.split("\n")[0]}`, () => {
      const actual = normalise(printed[index] ?? "(it was not run)");
      const expected = normalise(step.expected);
      if (!agrees(actual, expected)) expect(actual).toBe(expected);
    });
  }
});

test("every command of ollie-remote is told", () => {
  const told = rows(section(document, "ollie-remote")).flatMap(([names]) => codeSpans(names!));
  const names = told.map((span) => span.split(" ")[1]!);
  expect(names.sort()).toEqual(Object.keys(ollieRemote.commands).sort());
});

test("the settings are taken, and are all", () => {
  const folder = mkdtempSync(join(tmpdir(), "ollie-docs-"));
  try {
    const text = codeBlocks(document).find(({ info }) => info === "yaml")!.text;
    const file = join(folder, "remotes.yaml");
    writeFileSync(file, text);
    expect(loadRemotes(file).profileFor("").ssh.name).toBe("alice@build.example:2222");
    for (const part of ["", "runner", "timeouts", "limits"]) {
      const keys = keysOf(file, part);
      expect(keys.length).toBeGreaterThan(1);
      for (const key of keys) expect(text).toContain(`${key}:`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** The known keys of a target, by what is said where one is wrong. */
function keysOf(file: string, part: string): string[] {
  const wrong = part ? `${part}: { nonsense: 1 }` : "nonsense: 1";
  writeFileSync(file, `schema_version: 1\ntargets: { a: { kind: ssh, host_alias: a, ${wrong} } }\n`);
  try {
    loadRemotes(file);
  } catch (error) {
    return /known are (.*)/.exec((error as Error).message)![1]!.split(" ");
  }
  return [];
}

test("every error of the way is told, and no other", () => {
  const files = [...new Bun.Glob("src/{remote,ssh,session}/**/*.ts").scanSync({ cwd: top })];
  const sources = files.map((file) => readFileSync(join(top, file), "utf8")).join("\n");
  const told = rows(section(document, "Errors")).flatMap(([codes]) => codeSpans(codes!));
  for (const code of told)
    expect(sources).toContain(code.endsWith("*") ? `"${code.slice(0, -1)}` : `"${code}"`);
  const made = new Set([...sources.matchAll(/"((?:ssh|boot)\.[a-z_]+)"/g)].map((match) => match[1]!));
  expect([...made].filter((code) => !told.includes(code)).sort()).toEqual([]);
});
