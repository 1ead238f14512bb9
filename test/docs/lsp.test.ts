/** doc/LSP.md has the tools and servers that there are. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createRegistry } from "../../src/tools/registry.ts";
import { codeSpans, read, rows, section, top } from "./markdown.ts";

const document = read("doc/LSP.md");
const shipped = join(top, "data/tools");
const table = JSON.parse(readFileSync(join(shipped, "lsp.json"), "utf8")) as Record<
  string,
  { command: string[]; roots: string[]; install: string }
>;

test("all tools, with arguments that they have", () => {
  const tools = createRegistry(shipped)
    .list()
    .filter(({ name }) => name.startsWith("lsp_"));
  const described = rows(section(document, "The tools")).map(([name]) => codeSpans(name!)[0]!);
  expect(described.sort()).toEqual(tools.map(({ name }) => name));
  for (const [name, , more] of rows(section(document, "The tools"))) {
    const { properties } = tools.find((tool) => tool.name === codeSpans(name!)[0])!.schema as {
      properties: object;
    };
    for (const argument of codeSpans(more!).filter((span) => /^[a-zA-Z]+(: true|: false)?$/.test(span)))
      expect([...Object.keys(properties), "declaration", "type", "implementation"]).toContain(
        argument.split(":")[0]!,
      );
  }
});

test("all servers, with what marks their projects", () => {
  const described = rows(section(document, "The servers")).map(([name, , roots]) => [
    codeSpans(name!)[0],
    codeSpans(roots!),
  ]);
  expect(described).toEqual(Object.entries(table).map(([name, { roots }]) => [name, roots]));
  for (const { install } of Object.values(table)) expect(install).not.toBe("");
});

test("all keys of a server", () => {
  const described = rows(section(document, "Another server, other options")).map(
    ([key]) => codeSpans(key!)[0]!,
  );
  expect(described.sort()).toEqual([
    "command",
    "install",
    "languages",
    "options",
    "roots",
    "settings",
    "timeout",
  ]);
  for (const spec of Object.values(table))
    for (const key of Object.keys(spec)) expect(described).toContain(key);
});
