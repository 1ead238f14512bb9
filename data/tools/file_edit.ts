#!/usr/bin/env ollie-run
/** Replaces text in a file that the agent has read. How the text is found: lib/locate.ts. */
import { print, readArgs, unifiedDiff } from "ollie:tool";
import { mustKnow, remember, sha256 } from "./lib/ledger.ts";
import { locate } from "./lib/locate.ts";
import { realFile, show, statFile } from "./lib/paths.ts";
import { replaceFile } from "./lib/replace.ts";
import { FlatText, forDisplay, fromFile, fromModel, isBinary, toFile } from "./lib/text.ts";

/** Bytes; nobody edits a longer text by quoting it. */
const largest = 32 * 1024 * 1024;

const args = await readArgs<{ path: string; old: string; new: string; all?: boolean }>();
const old = fromModel(args.old);
const by = fromModel(args.new);
const path = realFile(args.path);
const stat = statFile(path);

if (!stat) throw new Error(`${show(path)} does not exist; file_write makes new files`);
if (stat.size > largest) throw new Error(`${show(path)} is too long to edit (${stat.size} bytes)`);
if (old === "") throw new Error('"old" is empty: quote the lines to replace; file_write writes whole files');
if (old === by) throw new Error('"old" and "new" are the same: there is nothing to change');

let summary = "";
let written: Uint8Array = new Uint8Array();
await replaceFile(path, (current) => {
  if (!current) throw new Error(`${show(path)} has been removed`);
  mustKnow(path, current);
  const before = fromFile(current);
  if (isBinary(before)) throw new Error(`${show(path)} is a binary file`);
  const flat = new FlatText(before);
  const { edits, how } = locate(flat.text, old, by, args.all ?? false, (offset) => flat.lineOf(offset));
  const after = flat.splice(edits);
  const places = edits.length === 1 ? "1 place" : `${edits.length} places`;
  summary = `${show(path)}: ${places} changed${how ? ` (${how})` : ""}\n${unifiedDiff(show(path), forDisplay(before), forDisplay(after))}`;
  written = toFile(after);
  return written;
});
remember(path, sha256(written), written);
print(summary);
