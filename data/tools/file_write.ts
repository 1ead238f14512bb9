#!/usr/bin/env ollie-run
/** Writes a whole file. One that exists must have been read, so that nobody's work is lost; its line ends and byte order mark stay. */
import { print, readArgs, unifiedDiff } from "ollie:tool";
import { mustKnow, remember, sha256 } from "./lib/ledger.ts";
import { realFile, show, statFile } from "./lib/paths.ts";
import { replaceFile } from "./lib/replace.ts";
import { isBinary } from "./lib/text.ts";

const { path: given, content } = await readArgs<{ path: string; content: string }>();
const path = realFile(given);
statFile(path);

let summary = "";
let written: Uint8Array = new Uint8Array();
await replaceFile(path, (current) => {
  if (current && current.length > 0) mustKnow(path, current);
  const before = current?.toString("utf8") ?? "";
  const text = inStyleOf(before, content);
  written = Buffer.from(text);
  summary = `${show(path)}: ${written.length} bytes written`;
  if (current && !isBinary(before)) summary += `\n${unifiedDiff(show(path), before, text)}`;
  return written;
});
remember(path, sha256(written), written);
print(summary);

/** file_read shows neither CR nor byte order mark, so a model cannot know that it should write them. */
function inStyleOf(before: string, text: string): string {
  const lines = before.split("\n");
  const crlf = lines.length > 1 && lines.slice(0, -1).every((line) => line.endsWith("\r"));
  const body = crlf && !text.includes("\r") ? text.replaceAll("\n", "\r\n") : text;
  return before.startsWith("\uFEFF") && !text.startsWith("\uFEFF") ? `\uFEFF${body}` : body;
}
