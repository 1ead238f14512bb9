/** Every command that the documentation shows with its output prints just that. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { build } from "../e2e/harness.ts";
import { read } from "./markdown.ts";
import { agrees, normalise, parseDocument, play, runDocuments } from "./transcript.ts";

setDefaultTimeout(180_000);

beforeAll(build);

describe.each(runDocuments)("%s", (document) => {
  const parts = parseDocument(read(document));
  const steps = parts.filter((part) => "command" in part);
  let printed: string[] = [];
  beforeAll(async () => {
    printed = await play(parts);
  });

  test("every command was run", () => {
    expect(printed.length).toBe(steps.length);
    expect(steps.length).toBeGreaterThan(0);
  });

  for (const [index, step] of steps.entries()) {
    test(`line ${step.line}: ${step.command.split("\n")[0]}`, () => {
      const actual = normalise(printed[index] ?? "(it was not run)");
      const expected = normalise(step.expected);
      // The difference is shown where there is one.
      if (!agrees(actual, expected)) expect(actual).toBe(expected);
    });
  }
});
