#!/usr/bin/env ollie-run
/** Lists where a name is used, in the whole project. */
import { print, readArgs } from "ollie:tool";
import { printList, Sources, Subject, type Target } from "./lib/lsp/ask.ts";
import type { Location } from "./lib/lsp/protocol.ts";

const { declaration = true, ...target } = await readArgs<Target & { declaration?: boolean }>();
const subject = new Subject(target);
const context = { includeDeclaration: declaration };
const found =
  (await subject.request<Location[] | null>(
    "textDocument/references",
    "referencesProvider",
    { context },
    true,
  )) ?? [];

const sources = new Sources();
const rows = new Set(
  found
    .toSorted((a, b) => (a.uri === b.uri ? a.range.start.line - b.range.start.line : a.uri < b.uri ? -1 : 1))
    .map((one) => `${sources.place(one)}: ${sources.source(one)}`),
);
const files = new Set(found.map(({ uri }) => uri)).size;
if (rows.size === 0) print(`What is at ${subject.place} is used nowhere`);
else print(`${rows.size} in ${files} ${files === 1 ? "file" : "files"}:`);
printList([...rows], "file_grep with a glob shows those of one folder");
