/** doc/REMOTE_POLICY.md has all keys of a policy with their defaults, and examples that are taken. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseYaml } from "../../src/config/yaml.ts";
import { splitCommand } from "../../src/remote/host/anchor/words.ts";
import { fromHard } from "../../src/remote/policy/effective.ts";
import { hardPolicy } from "../../src/remote/policy/keys.ts";
import { loadRemotes } from "../../src/remote/policy/remotes.ts";
import { codeBlocks, codeSpans, read, rows, section } from "./markdown.ts";

const document = read("doc/REMOTE_POLICY.md");
const folder = mkdtempSync(join(tmpdir(), "ollie-docs-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const examples = codeBlocks(document).filter(({ info }) => info === "yaml");
const policies = rows(section(document, "Policies"));

test("the example of remotes.yaml is one", () => {
  const file = join(folder, "remotes.yaml");
  writeFileSync(file, examples[0]!.text);
  const profile = loadRemotes(file).profileFor("");
  expect(profile.ssh.name).toBe("alice@build.example");
  expect(profile.policy.allowed_programs).toEqual(["cargo", "git", "sh"]);
});

test("the example of a hard policy is one", () => {
  expect(parseYaml(examples[1]!.text, "example", hardPolicy).allow_code_steps).toBe(false);
});

test("every key of a policy is in the table, and no other", () => {
  const named = policies.flatMap(([keys]) => codeSpans(keys!)).sort();
  expect(named).toEqual(Object.keys(hardPolicy.shape).sort());
});

test("defaults are those that hold", () => {
  const open = fromHard({}) as unknown as Record<string, unknown>;
  const numbers = policies.flatMap(([keys, told]) => {
    const values = told!.split(",").map((word) => word.trim());
    return codeSpans(keys!).map((key, index) => [key, values[index] ?? values[0]!] as const);
  });
  const checked = numbers.filter(([, told]) => /^(?:\d+|true|false)$/.test(told));
  expect(checked.length).toBeGreaterThan(10);
  for (const [key, told] of checked) expect([key, String(open[key])]).toEqual([key, told]);
});

test("every key of a target is told", () => {
  const file = join(folder, "wrong.yaml");
  const told = section(document, "remotes.yaml");
  for (const part of ["", "runner", "timeouts", "limits"]) {
    const wrong = part ? `${part}: { nonsense: 1 }` : "nonsense: 1";
    writeFileSync(file, `schema_version: 1\ntargets: { a: { kind: ssh, host_alias: a, ${wrong} } }\n`);
    const [, keys] = /known are (.*)/.exec(messageOf(() => loadRemotes(file))) ?? [];
    for (const key of keys!.split(" ")) {
      if (part === "" && ["runner", "timeouts", "limits"].includes(key)) continue;
      expect(told).toContain(`\`${part ? `${part}.` : ""}${key}\``);
    }
  }
});

test("the forced command is one that is taken apart", () => {
  const [, forced] = /command="([^"]+)"/.exec(document) ?? [];
  expect(splitCommand(forced!).slice(1, 3)).toEqual(["bootstrap", "--forced"]);
});

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}
