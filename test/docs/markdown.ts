/** What the tests of the documentation read out of a Markdown file. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const top = join(import.meta.dir, "../..");

export interface Block {
  /** What follows the opening fence: the language, and words of ours behind it, which no renderer shows. */
  info: string;
  text: string;
  /** Of the opening fence, from 1. */
  line: number;
}

/** Documents by their path from the repository's root, those that exist. */
export function documents(): string[] {
  const inDoc = readdirSync(join(top, "doc")).map((name) => `doc/${name}`);
  const names = [...readdirSync(top), ...inDoc].filter((name) => name.endsWith(".md"));
  return names.sort();
}

export function read(document: string): string {
  return readFileSync(join(top, document), "utf8");
}

/** The fenced code blocks, in order. */
export function codeBlocks(markdown: string): Block[] {
  const found: Block[] = [];
  let open: Block | undefined;
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (open && fence) {
      found.push(open);
      open = undefined;
    } else if (open) open.text += `${line}\n`;
    else if (fence) open = { info: fence[1]!.trim(), text: "", line: index + 1 };
  }
  if (open) throw new Error(`the code block of line ${open.line} has no end`);
  return found;
}

/** The text without its fenced code blocks; lines keep their numbers. */
export function prose(markdown: string): string {
  let inside = false;
  const lines = markdown.split("\n").map((line) => {
    const fence = line.startsWith("```");
    if (fence) inside = !inside;
    return inside || fence ? "" : line;
  });
  return lines.join("\n");
}

/** What stands below a heading, up to the next one of the same or a higher level. */
export function section(markdown: string, heading: string): string {
  const lines = markdown.split("\n");
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading);
  if (start < 0) throw new Error(`there is no heading ${heading}`);
  const level = lines[start]!.indexOf(" ");
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= level);
  return lines.slice(start + 1, length < 0 ? undefined : start + 1 + length).join("\n");
}

/** The rows of all tables, without heads: their cells. */
export function rows(text: string): string[][] {
  const lines = text.split("\n");
  return lines
    .filter(
      (line, i) => line.startsWith("|") && !/^\|[-|\s]+$/.test(line) && !/^\|[-|]+$/.test(lines[i + 1] ?? ""),
    )
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}

/** The texts between backquotes. */
export function codeSpans(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1]!);
}
