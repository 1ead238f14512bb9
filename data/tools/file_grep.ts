#!/usr/bin/env ollie-run
/** Searches the content of files for a regular expression, line by line. */
import { readFileSync, statSync } from "node:fs";
import { print, readArgs } from "ollie:tool";
import { absolute, show } from "./lib/paths.ts";
import { matcher as nameMatcher } from "./lib/pattern.ts";
import { LineMatcher } from "./lib/regexp.ts";
import { walk } from "./lib/walk.ts";

/** Matching lines that are shown. */
const mostMatches = 200;
/** Bytes that are shown. */
const mostOutput = 12_000;
/** Characters of a line; of a longer one the part around the match. */
const lineLimit = 300;
/** Bytes of a file that is looked into. */
const largest = 64 * 1024 * 1024;

const args = await readArgs<{
  pattern: string;
  path?: string;
  glob?: string;
  ignoreCase?: boolean;
  context?: number;
}>();
const root = absolute(args.path ?? ".");
const context = Math.min(args.context ?? 0, 20);
const matcher = new LineMatcher(args.pattern, args.ignoreCase ?? false);
const stat = statSync(root, { throwIfNoEntry: false });
if (!stat) throw new Error(`${show(root)} does not exist`);

let matches = 0;
let output = 0;
let skipped = 0;
let full = false;
let cut = false;
if (stat.isDirectory()) {
  const wanted = args.glob ? nameMatcher(args.glob, root) : () => true;
  const files = walk(root);
  let step = files.next();
  for (; !step.done && !full; step = files.next()) if (wanted(step.value)) search(step.value);
  cut = step.done === true && step.value.cut;
} else {
  search(root);
}
if (matches === 0) print(`Nothing matches ${args.pattern} in ${show(root)}`);
if (full)
  print(`[stopped after ${matches} matching lines; a narrower pattern, path or glob shows the others]`);
if (skipped > 0) print(`[${skipped} files of more than 64 MiB were not searched]`);
if (matcher.cut)
  print("[very long lines were searched in parts; a match that spans many characters may be missing]");
if (cut) print("[the folder is too large to look at all of it; name a smaller path]");

function search(file: string): void {
  const lines = linesOf(file);
  const hits = new Set<number>();
  for (let i = 0; i < lines.length; i++) if (matcher.find(lines[i]!) !== undefined) hits.add(i);
  if (hits.size === 0) return;
  emit(show(file));
  let last = -1;
  for (const hit of hits) {
    if (full) return;
    matches++;
    const from = Math.max(last + 1, hit - context);
    if (context > 0 && last >= 0 && from > last + 1) emit("  --");
    for (let i = from; i <= Math.min(lines.length - 1, hit + context); i++) {
      if (i > hit && hits.has(i)) break;
      emit(`${String(i + 1).padStart(6)}${hits.has(i) ? ":" : "-"} ${clip(lines[i]!)}`);
      last = i;
    }
    if (matches >= mostMatches) full = true;
  }
}

/** Empty where there is nothing to search: a folder or device behind a link, a binary, or a file that cannot be read. */
function linesOf(file: string): string[] {
  try {
    const stat = statSync(file);
    if (!stat.isFile()) return [];
    if (stat.size > largest) {
      skipped++;
      return [];
    }
    const bytes = readFileSync(file);
    if (bytes.subarray(0, 8192).includes(0)) return [];
    return bytes.toString("utf8").split(/\r?\n/);
  } catch {
    return [];
  }
}

function clip(line: string): string {
  if (line.length <= lineLimit) return line;
  const at = Math.max(0, (matcher.find(line) ?? 0) - lineLimit / 3);
  const part = line.slice(at, at + lineLimit);
  return `${at > 0 ? "…" : ""}${part.toWellFormed()}${at + lineLimit < line.length ? "…" : ""} [column ${at + 1} of ${line.length}]`;
}

function emit(line: string): void {
  if (full) return;
  print(line);
  output += Buffer.byteLength(line) + 1;
  if (output > mostOutput) full = true;
}
