#!/usr/bin/env ollie-run
/** Shows what a language server knows of a name: its type, its documentation. */
import { print, readArgs } from "ollie:tool";
import { Subject, type Target } from "./lib/lsp/ask.ts";
import type { Hover } from "./lib/lsp/protocol.ts";

/** Characters that are shown. */
const limit = 8000;

const subject = new Subject(await readArgs<Target>());
const hover = await subject.request<Hover | null>("textDocument/hover", "hoverProvider");
const text = hover ? textOf(hover.contents) : "";
if (text === "") print(`Nothing is known of what is at ${subject.place}`);
else print(`${subject.place}:\n${text.length > limit ? `${text.slice(0, limit).toWellFormed()}…` : text}`);

function textOf(contents: Hover["contents"]): string {
  const parts = (Array.isArray(contents) ? contents : [contents]).map((part) =>
    typeof part === "string"
      ? part
      : part.language
        ? `\`\`\`${part.language}\n${part.value}\n\`\`\``
        : part.value,
  );
  return parts
    .join("\n\n")
    .replace(/\r\n/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}
