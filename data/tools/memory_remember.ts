#!/usr/bin/env ollie-run
/** Adds a note to the user's memory folder. */
import { mkdirSync } from "node:fs";
import { print, readArgs } from "ollie:tool";
import { essence, fileOf, format, memoryFolder, parse } from "./lib/notes.ts";
import { replaceFile } from "./lib/replace.ts";

const { topic, text } = await readArgs<{ topic: string; text: string }>();
const name = topic.replace(/\s+/g, " ").trim();
if (essence(text) === "") throw new Error('"text" is empty: what is to be remembered?');
const path = fileOf(name);
mkdirSync(memoryFolder(), { recursive: true, mode: 0o700 });

let known = false;
await replaceFile(path, (current) => {
  const before = current ?? Buffer.from(`# ${name}\n\n`);
  known = parse(before.toString("utf8"), "").notes.some((note) => essence(note) === essence(text));
  if (known) return before;
  const end = before.length === 0 || before.at(-1) === 10 ? "" : "\n";
  // Bytes, not text: what the user wrote need not be UTF-8.
  return Buffer.concat([before, Buffer.from(`${end}${format(text, today())}\n`)]);
});
print(known ? `That is remembered already, in ${path}` : `Remembered in ${path}`);

/** The user's day, not Greenwich's. */
function today(): string {
  const now = new Date();
  return [now.getFullYear(), now.getMonth() + 1, now.getDate()]
    .map((part) => String(part).padStart(2, "0"))
    .join("-");
}
