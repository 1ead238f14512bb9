/** What doc/NAMESPACE.md says of tools is what the tables of the tree say. */
import { expect, test } from "bun:test";
import { mayNotEnd, type ToolAccess } from "../../src/namespace/access.ts";
import { agentRows } from "../../src/namespace/agent.ts";
import { jobRows } from "../../src/namespace/job.ts";
import { newAgent, sessionRows } from "../../src/namespace/session.ts";
import { codeSpans, read, section } from "./markdown.ts";

type Standing = keyof ToolAccess;

const [sessions, agents, jobs] = section(read("doc/NAMESPACE.md"), "What a tool sees")
  .split("\n\n")
  .filter((part) => part.startsWith("| file"))
  .map((table) =>
    table
      .split("\n")
      .slice(2)
      .map((line) => line.split("|").slice(1, -1)),
  );

/** Of each file the letters at each standing, as a table of the document has them. */
function documented(lines: string[][] | undefined, standings: Standing[]): Record<string, ToolAccess> {
  const found: Record<string, ToolAccess> = {};
  for (const [names, ...cells] of lines ?? []) {
    const grants = standings.flatMap((standing, i) => {
      const letters = /^ (rw|r|w)\b/.exec(cells[i]!)?.[1];
      return letters ? [[standing, letters]] : [];
    });
    for (const name of codeSpans(names!)) found[name] = Object.fromEntries(grants);
  }
  return found;
}

const granted = (rows: readonly { name: string; tools?: ToolAccess }[]) =>
  Object.fromEntries(rows.flatMap(({ name, tools }) => (tools ? [[name, { ...tools }]] : [])));

test("the files of a session", () => {
  const making = { ...newAgent, name: "agent/new" };
  expect(documented(sessions, ["own", "child", "sharing"])).toEqual(granted([...sessionRows, making]));
});

test("the files of an agent", () => {
  expect(documented(agents, ["self", "own", "child", "sharing"])).toEqual(granted(agentRows));
});

test("the files of a job", () => {
  expect(documented(jobs, ["own", "child"])).toEqual(granted(jobRows));
});

test("a refusal fits", () => {
  expect(Buffer.byteLength(`permission denied: ${mayNotEnd}`)).toBeLessThanOrEqual(128);
});
