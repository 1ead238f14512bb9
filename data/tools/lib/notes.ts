/**
 * What agents remember: one Markdown file a topic in the folder OLLIE_MEMORY_PATH, made to be read and edited by people too. A note
 * that ollie writes is a list item with its date; the rest of what stands in a file counts as notes as well, a paragraph each.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const suffix = ".md";
/** Characters of a file's name: with four bytes each, and what `replaceFile` puts around it, less than the 255 bytes of a file system. */
const nameLimit = 50;
/** Bytes of a file that is looked into. Nobody's notes are longer. */
const largest = 4 * 1024 * 1024;

export interface Topic {
  /** The file's first heading, else its name. */
  title: string;
  path: string;
  notes: string[];
}

/** @throws where the server has named no folder */
export function memoryFolder(): string {
  const folder = process.env.OLLIE_MEMORY_PATH;
  if (!folder) throw new Error("OLLIE_MEMORY_PATH is not set: there is no place for notes");
  return folder;
}

/** Topics that differ in case, blanks or punctuation only share a file. */
export function fileOf(topic: string): string {
  const words = wordsOf(topic);
  if (words.length === 0) throw new Error(`"topic" has no letter or digit: ${JSON.stringify(topic)}`);
  const name = [...words.join("-")].slice(0, nameLimit).join("").replace(/-$/, "");
  return join(memoryFolder(), name + suffix);
}

/** All topics, the one that was changed last first. */
export function readTopics(): Topic[] {
  const folder = memoryFolder();
  return names(folder)
    .flatMap((name) => {
      const path = join(folder, name);
      const stat = statSync(path, { throwIfNoEntry: false });
      // A pipe would never end.
      if (!stat?.isFile() || stat.size > largest) return [];
      return { ...parse(readFileSync(path, "utf8"), name), path, changed: stat.mtimeMs };
    })
    .sort((a, b) => b.changed - a.changed || (a.path < b.path ? -1 : 1));
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(suffix) && !name.startsWith("."));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** A note is a list item with what is indented below it, or a paragraph. */
export function parse(text: string, name: string): Pick<Topic, "title" | "notes"> {
  let title = "";
  const notes: string[] = [];
  let inParagraph = false;
  for (const line of text.split(/\r?\n/)) {
    const heading = /^#+ (.*)$/.exec(line);
    const starts = heading !== null || /^[-*] /.test(line);
    if (line.trim() === "") inParagraph = false;
    else if (heading && title === "" && notes.length === 0) title = heading[1]!.trim();
    else if (notes.length > 0 && (/^\s/.test(line) || (inParagraph && !starts)))
      notes[notes.length - 1] += `\n${line}`;
    else {
      notes.push(line);
      inParagraph = !starts;
    }
  }
  return { title: title || name.slice(0, -suffix.length), notes };
}

/** @param day as `2026-11-30` */
export function format(text: string, day: string): string {
  const [first, ...rest] = clean(text).split("\n");
  return [`- ${day}: ${first}`, ...rest.map((line) => (line === "" ? "" : `  ${line}`))].join("\n");
}

/** The note's words alone: what makes two notes the same. */
export function essence(note: string): string {
  return wordsOf(bare(note)).join(" ");
}

/** A note without its mark and its date. */
export function bare(note: string): string {
  return note.replace(/^[-*] (?:\d{4}-\d\d-\d\d: )?/, "");
}

export function wordsOf(text: string): string[] {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  );
}

/** Without control characters, and without empty lines at the ends and in a row. */
function clean(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "")
    .replace(/\n{2,}/g, "\n")
    .trim();
}
