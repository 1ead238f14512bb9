#!/usr/bin/env ollie-run
/** Renames a symbol in the whole project: shows the changes as a diff, and makes them if it is told to. */
import { readFileSync, statSync } from "node:fs";
import { print, readArgs, unifiedDiff } from "ollie:tool";
import { isKnown, mustKnow, remember, sha256 } from "./lib/ledger.ts";
import { Subject, type Target } from "./lib/lsp/ask.ts";
import { applyEdits, editsOf } from "./lib/lsp/edits.ts";
import type { WorkspaceEdit } from "./lib/lsp/protocol.ts";
import { realFile, show } from "./lib/paths.ts";
import { replaceFiles } from "./lib/replace.ts";

/** Bytes of diffs that are shown. */
const mostBytes = 11_000;

const { newName, apply = false, ...target } = await readArgs<Target & { newName: string; apply?: boolean }>();
const asked = Date.now();
const subject = new Subject(target);
const edit = await subject.request<WorkspaceEdit | null>(
  "textDocument/rename",
  "renameProvider",
  { newName },
  true,
);
const edits = [...editsOf(edit ?? {})]
  .map(([path, list]) => ({ path: realFile(path), list }))
  .sort((a, b) => (a.path < b.path ? -1 : 1));
if (edits.length === 0) throw new Error(`nothing at ${subject.place} can be renamed to ${newName}`);
const paths = edits.map(({ path }) => path);
let contents: Buffer[] = paths.map((path) => readFileSync(path));
let renamed = change(contents);
if (apply) {
  await replaceFiles(paths, (current) => {
    contents = current.map((content, i) => unchanged(paths[i]!, content));
    renamed = change(contents);
    return renamed;
  });
  // Of the others the agent still knows nothing but what the diff shows.
  for (const [i, path] of paths.entries())
    if (isKnown(path)) remember(path, sha256(renamed[i]!), renamed[i]!);
}
const places = edits.reduce((sum, { list }) => sum + list.length, 0);
const files = `${paths.length} ${paths.length === 1 ? "file" : "files"}`;
print(
  `${places} places in ${files} ${apply ? "changed" : "would change; nothing was written, apply does it"}`,
);
let room = mostBytes;
for (const [i, path] of paths.entries()) {
  const diff = unifiedDiff(show(path), contents[i]!.toString("utf8"), renamed[i]!.toString("utf8"), room);
  const text = diff.startsWith("(") ? `${show(path)}: ${edits[i]!.list.length} places ${diff}` : diff;
  room = Math.max(0, room - Buffer.byteLength(text));
  print(text);
}

function change(before: readonly Buffer[]): Buffer[] {
  return before.map((content, i) => applyEdits(paths[i]!, content, edits[i]!.list));
}

/** The places that the server named are those of the file as it was when it was asked. */
function unchanged(path: string, content: Buffer | undefined): Buffer {
  if (!content) throw new Error(`${show(path)} has been removed meanwhile; nothing was written`);
  if (statSync(path).mtimeMs > asked)
    throw new Error(`${show(path)} was changed while the server was asked; nothing was written, try again`);
  if (isKnown(path)) mustKnow(path, content);
  return content;
}
