#!/usr/bin/env ollie-run
/** Shows where a name is defined, declared or implemented, or its type is defined. */
import { print, readArgs } from "ollie:tool";
import { type Located, printList, Sources, Subject, type Target } from "./lib/lsp/ask.ts";
import type { Location, LocationLink } from "./lib/lsp/protocol.ts";

const ways = {
  definition: ["textDocument/definition", "definitionProvider"],
  declaration: ["textDocument/declaration", "declarationProvider"],
  type: ["textDocument/typeDefinition", "typeDefinitionProvider"],
  implementation: ["textDocument/implementation", "implementationProvider"],
} as const;

const { kind = "definition", ...target } = await readArgs<Target & { kind?: keyof typeof ways }>();
const subject = new Subject(target);
const [method, needs] = ways[kind];
type Answer = Location | (Location | LocationLink)[] | null;
// Implementations may be anywhere in the project.
const answer = await subject.request<Answer>(method, needs, {}, kind === "implementation");
const found = (Array.isArray(answer) ? answer : answer ? [answer] : []).map(located);
const sources = new Sources();
if (found.length === 0) print(`No ${kind} of what is at ${subject.place} was found`);
printList(
  found.map((one) => `${sources.place(one)}: ${sources.source(one)}`),
  "there are no more",
);

function located(one: Location | LocationLink): Located {
  return "uri" in one ? one : { uri: one.targetUri, range: one.targetSelectionRange };
}
