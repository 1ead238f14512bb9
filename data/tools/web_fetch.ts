#!/usr/bin/env ollie-run
/** Shows a web page as text, a page at a time. What is no text is saved. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { print, readArgs } from "ollie:tool";
import { readPage } from "./lib/pager.ts";
import { type Content, load } from "./lib/web/load.ts";
import { takeProxies } from "./lib/web/proxy.ts";
import { type Answer, ask, parseUrl } from "./lib/web/request.ts";

/** Milliseconds for all of it, redirects included: less than the sidecar gives, so that the reason can be told. */
const patience = 45_000;
/** Bytes. */
const limits = { text: 5 * 1024 * 1024, file: 100 * 1024 * 1024 };
/** Bytes of a page, and characters of a line: less than a tool's result may have. */
const pageBytes = 12_000;
const width = 1900;
/** Characters of an error page. */
const errorText = 1500;

const {
  url: text,
  offset = 1,
  raw = false,
} = await readArgs<{ url: string; offset?: number; raw?: boolean }>();
const url = parseUrl(text);
const id = createHash("sha256").update(`${url.href} ${raw}`).digest("hex").slice(0, 12);
const folder = join(tmpdir(), "web");
const copy = join(folder, `${id}.${raw ? "txt" : "md"}`);

// The pages of one text have to come from one answer.
if (offset > 1 && existsSync(copy)) showPage();
else await fetchPage();

async function fetchPage(): Promise<void> {
  const answer = await ask(url, { proxyFor: takeProxies(process.env), patience });
  const content = await load(answer, limits, raw, (name) => join(folder, `${id}-${name}`));
  if (answer.response.status >= 400) throw new Error(refusal(answer, content));
  show(answer, content);
}

function refusal({ response, url }: Answer, content: Content): string {
  const status = `${url.href} answers ${response.status} ${response.statusText}`.trim();
  if (content.kind !== "text" || content.text.trim() === "") return status;
  const words = [content.title, content.text].filter(Boolean).join("\n").trim();
  return `${status}:\n${words.slice(0, errorText).toWellFormed()}${words.length > errorText ? "…" : ""}`;
}

function show(answer: Answer, content: Content): void {
  const size = `${content.bytes.toLocaleString("en")} bytes`;
  print(`${answer.url.href} (${content.mime}, ${content.whole ? "" : "more than "}${size})`);
  if (answer.hops.length > 0) print(`redirected from ${answer.hops.map(({ href }) => href).join(", ")}`);
  if (content.kind === "file") {
    print(content.whole ? `No text. Saved as ${content.path}` : "No text, and too long to be saved.");
    return;
  }
  const heading =
    content.title && !content.text.startsWith(`# ${content.title}\n`) ? `# ${content.title}\n\n` : "";
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(`${copy}.${process.pid}`, heading + content.text, { mode: 0o600 });
  renameSync(`${copy}.${process.pid}`, copy);
  print("");
  showPage();
  if (content.note) print(`[${content.note}]`);
  if (!content.whole) print(`[only the first ${size} were looked at]`);
}

function showPage(): void {
  const page = readPage(
    copy,
    { offset, limit: Number.POSITIVE_INFINITY, column: 1, width, bytes: pageBytes },
    true,
  );
  const { lines, total = 0 } = page;
  if (total === 0) {
    print("(there is no text in it)");
    return;
  }
  if (lines.length === 0) throw new Error(`the text has only ${total} lines`);
  print(lines.join("\n"));
  const last = offset + lines.length - 1;
  const more = last < total;
  if (more || offset > 1)
    print(`[lines ${offset}-${last} of ${total}${more ? `; offset=${last + 1} goes on` : ""}]`);
  if (more || page.cut) print(`[the whole text is in ${copy}, for file_read and file_grep]`);
}
