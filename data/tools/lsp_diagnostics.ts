#!/usr/bin/env ollie-run
/** Shows the errors and warnings of a file, or of the files of a folder, as they are now. */
import { statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { print, readArgs } from "ollie:tool";
import { ask, printList, Sources } from "./lib/lsp/ask.ts";
import type { FileDiagnostics } from "./lib/lsp/diagnose.ts";
import type { Diagnostic } from "./lib/lsp/protocol.ts";
import { isInstalled, languageOf, loadServers } from "./lib/lsp/servers.ts";
import { realFile, show } from "./lib/paths.ts";
import { walk } from "./lib/walk.ts";

/** Files of a folder that are looked at. */
const mostFiles = 50;
const severities = ["error", "warning", "information", "hint"];

const path = realFile((await readArgs<{ path: string }>()).path);
const stat = statSync(path, { throwIfNoEntry: false });
if (!stat) throw new Error(`${show(path)} does not exist`);
const { paths, more } = stat.isDirectory() ? filesIn(path) : { paths: [path], more: false };
const sources = new Sources();
const files = await ask<FileDiagnostics[]>({ do: "diagnostics", paths });
const found = files.flatMap(({ path, items }) => items.map((item) => ({ path, item })));
found.sort((a, b) => severity(a.item) - severity(b.item));
if (found.length === 0)
  print(`No problems in ${show(path)}${paths.length > 1 ? ` (${paths.length} files)` : ""}`);
printList(
  found.map(({ path, item }) => rowsOf(path, item)),
  "errors come first",
);
if (more) print(`[only the first ${mostFiles} files were looked at; name a smaller folder]`);

function filesIn(folder: string): { paths: string[]; more: boolean } {
  const specs = loadServers().filter(isInstalled);
  const paths: string[] = [];
  for (const file of walk(folder)) {
    if (!specs.some((spec) => languageOf(spec, file))) continue;
    if (paths.length === mostFiles) return { paths, more: true };
    paths.push(file);
  }
  if (paths.length === 0)
    throw new Error(`no file in ${show(folder)} is of a language that a language server is installed for`);
  return { paths, more: false };
}

function severity(item: Diagnostic): number {
  return item.severity ?? 1;
}

function rowsOf(path: string, item: Diagnostic): string {
  const { range, message, code, source, relatedInformation = [] } = item;
  const located = { uri: pathToFileURL(path).href, range };
  const origin = [source, code].filter((part) => part !== undefined && part !== "").join(" ");
  const head = `${sources.place(located)}: ${severities[severity(item) - 1] ?? "error"}: ${message}${origin ? ` [${origin}]` : ""}`;
  const related = relatedInformation.map(
    ({ location, message }) => `  ${sources.place(location)}: ${message}`,
  );
  return [head, `  | ${sources.source(located)}`, ...related].join("\n");
}
