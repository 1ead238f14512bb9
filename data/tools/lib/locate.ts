/**
 * Finding the text that a model wants to replace. The attempts, in this order; the first that finds anything decides:
 *
 * 1. exactly (line ends aside: LF matches CRLF);
 * 2. whole lines, blanks at their ends ignored;
 * 3. whole lines, indentation ignored too; the new text gets the file's indentation;
 * 4. whole lines, any run of blanks counting as one blank.
 *
 * More than one place is an error unless all were meant: nothing is ever replaced at a guess.
 */

export interface Edit {
  start: number;
  end: number;
  by: string;
}

export interface Located {
  edits: Edit[];
  /** Which attempt it was, where it was not the first. */
  how?: string;
}

interface Attempt {
  how?: string;
  find(text: string, old: string, by: string): Edit[];
}

const attempts: Attempt[] = [
  { find: exactly },
  { how: "blanks at line ends ignored", find: byLines((line) => line.trimEnd()) },
  { how: "indentation ignored", find: byLines((line) => line.trim(), true) },
  { how: "blanks ignored", find: byLines((line) => line.trim().replace(/[ \t]+/g, " "), true) },
];

/** @throws if there is no such place, or more than one and not `all` */
export function locate(
  text: string,
  old: string,
  by: string,
  all: boolean,
  lineOf: (offset: number) => number,
): Located {
  for (const { how, find } of attempts) {
    const edits = find(text, old, by);
    if (edits.length === 0) continue;
    if (edits.length > 1 && !all) {
      const lines = edits.map(({ start }) => lineOf(start));
      const shown = lines.length > 10 ? `${lines.slice(0, 10).join(", ")}, …` : lines.join(", ");
      throw new Error(
        `"old" occurs ${edits.length} times${how ? ` (${how})` : ""}, at lines ${shown}: give more lines around it, or set "all"`,
      );
    }
    return { edits, how };
  }
  const numbered = old.split("\n").every((line) => /^\s*\d+\t/.test(line));
  throw new Error(
    `"old" does not occur in the file, not even with other blanks${numbered ? ": leave out the line numbers that file_read puts before each line" : ": read the file again and copy the lines as they are"}`,
  );
}

function exactly(text: string, old: string, by: string): Edit[] {
  const edits: Edit[] = [];
  for (let at = text.indexOf(old); at >= 0; at = text.indexOf(old, at + old.length)) {
    edits.push({ start: at, end: at + old.length, by });
  }
  return edits;
}

function byLines(form: (line: string) => string, reindenting = false): Attempt["find"] {
  return (text, old, by) => {
    if (old.trim() === "") return [];
    const wanted = withoutLastNewline(old).split("\n");
    const forms = wanted.map(form);
    const lines = text.split("\n");
    const lineForms = lines.map(form);
    const edits: Edit[] = [];
    let start = 0;
    for (let i = 0; i + wanted.length <= lines.length; ) {
      if (!forms.every((line, k) => line === lineForms[i + k])) {
        start += lines[i]!.length + 1;
        i++;
        continue;
      }
      const found = lines.slice(i, i + wanted.length);
      const length = found.join("\n").length;
      // Whole lines were found, so whole lines are put in: the newline stays, and goes only if the lines go.
      const newline = by === "" && start + length < text.length ? 1 : 0;
      const put = reindenting ? reindent(by, wanted, found) : by;
      edits.push({ start, end: start + length + newline, by: withoutLastNewline(put) });
      start += length + 1;
      i += wanted.length;
    }
    return edits;
  };
}

function withoutLastNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

/**
 * Gives the new text the indentation that the file has where the model's old text has another.
 * @throws if one indentation of the old text stands for several of the file: then nobody knows which the new lines should have
 */
function reindent(by: string, wanted: string[], found: string[]): string {
  const indents = new Map<string, string>();
  wanted.forEach((line, i) => {
    if (line.trim() === "") return;
    const [from, to] = [indentOf(line), indentOf(found[i]!)];
    if ((indents.get(from) ?? to) !== to) {
      throw new Error(
        '"old" occurs only if its indentation is ignored, and that is not shifted evenly: copy the lines with their indentation',
      );
    }
    indents.set(from, to);
  });
  const known = [...indents].sort(([a], [b]) => b.length - a.length);
  return by
    .split("\n")
    .map((line) => {
      if (line.trim() === "") return line;
      const indent = indentOf(line);
      const [from, to] = known.find(([prefix]) => indent.startsWith(prefix)) ?? ["", ""];
      return to + line.slice(from.length);
    })
    .join("\n");
}

function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)![0];
}
