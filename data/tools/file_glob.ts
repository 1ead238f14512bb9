#!/usr/bin/env ollie-run
/** Lists files by name, the newest first. */
import { statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { print, readArgs } from "ollie:tool";
import { absolute, show } from "./lib/paths.ts";
import { matcher } from "./lib/pattern.ts";
import { walk } from "./lib/walk.ts";

/** Files that are listed. */
const most = 200;

const args = await readArgs<{ pattern: string; path?: string }>();
const { root, pattern } = split(args.pattern, absolute(args.path ?? "."));
if (!statSync(root, { throwIfNoEntry: false })?.isDirectory())
  throw new Error(`${show(root)} is not a folder`);

const matches = matcher(pattern, root);
const found: { path: string; changed: number }[] = [];
const files = walk(root);
let step = files.next();
for (; !step.done; step = files.next()) {
  if (!matches(step.value)) continue;
  const stat = statSync(step.value, { throwIfNoEntry: false });
  if (stat?.isFile()) found.push({ path: step.value, changed: stat.mtimeMs });
}

found.sort((a, b) => b.changed - a.changed || (a.path < b.path ? -1 : 1));
for (const { path } of found.slice(0, most)) print(show(path));
if (found.length === 0) print(`No file matches ${args.pattern} in ${show(root)}`);
if (found.length > most) print(`[${found.length - most} more; a narrower pattern or path shows them]`);
if (step.value.cut) print("[the folder is too large to look at all of it; name a smaller path]");

/** An absolute pattern, or one that leads out of the folder, brings its own root. */
function split(pattern: string, root: string): { root: string; pattern: string } {
  if (!isAbsolute(pattern) && !pattern.startsWith("../") && !pattern.startsWith("~/"))
    return { root, pattern };
  const parts = pattern.split("/");
  const firstMagic = parts.findIndex((part, i) => /[*?[{]/.test(part) || i === parts.length - 1);
  const base = parts.slice(0, firstMagic).join("/") || "/";
  const folder = isAbsolute(base) || base.startsWith("~") ? absolute(base) : join(root, base);
  return { root: folder, pattern: parts.slice(firstMagic).join("/") };
}
