#!/usr/bin/env ollie-run
/** Shows lines of a file with their numbers, a page at a time, and notes that the agent has read it. */
import { print, readArgs } from "ollie:tool";
import { describeBinary } from "./lib/binary.ts";
import { remember } from "./lib/ledger.ts";
import { readPage } from "./lib/pager.ts";
import { realFile, show, statFile } from "./lib/paths.ts";

/** Bytes of a page: less than a tool's result may have. */
const pageBytes = 12_000;
/** Characters of a line; with its number and the note of what is missing still less than the 2,000 of a tool's output. */
const width = 1900;
/** Bytes up to which a file is read to its end, which it must be to be edited later. */
const wholeLimit = 64 * 1024 * 1024;

const args = await readArgs<{ path: string; offset?: number; limit?: number; column?: number }>();
const offset = args.offset ?? 1;
const column = args.column ?? 1;
const path = realFile(args.path);
const stat = statFile(path);
if (!stat) throw new Error(`${show(path)} does not exist`);
const binary = describeBinary(path, stat.size);
if (binary) print(binary);
else showPage(stat.size <= wholeLimit);

function showPage(whole: boolean): void {
  const limit = args.limit ?? Number.POSITIVE_INFINITY;
  const page = readPage(path, { offset, limit, column, width, bytes: pageBytes }, whole);
  const last = offset + page.lines.length - 1;
  if (page.sha256) remember(path, page.sha256, page.content, [offset, last]);
  if (page.total === 0) {
    print("(the file is empty)");
    return;
  }
  if (page.lines.length === 0) throw new Error(`${show(path)} has only ${page.total} lines`);
  print(page.lines.map((line, i) => `${String(offset + i).padStart(6)}\t${line}`).join("\n"));
  for (const note of notes(page, last)) print(`[${note}]`);
}

function notes(page: ReturnType<typeof readPage>, last: number): string[] {
  const more = page.total === undefined || last < page.total;
  return [
    more || offset > 1
      ? `lines ${offset}-${last} of ${page.total ?? "more"}${more ? `; offset=${last + 1} goes on` : ""}`
      : "",
    page.cut ? `long lines are cut; column=${column + width} shows how they go on` : "",
    page.crlf ? "lines end in CRLF" : "",
    !more && !page.endsWithNewline ? "no newline at the end of the file" : "",
    page.lines.some((line) => line.includes("\uFFFD")) ? "not all of it is UTF-8" : "",
  ].filter((note) => note !== "");
}
