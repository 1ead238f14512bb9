/** What a language server wants changed, and files with that done. */
import { show } from "../paths.ts";
import { pathOf } from "./documents.ts";
import type { FileOperation, Position, TextDocumentEdit, TextEdit, WorkspaceEdit } from "./protocol.ts";

const bom = "\uFEFF";

/** The changes by file. @throws Error if the server wants more than to change texts of files */
export function editsOf(edit: WorkspaceEdit): Map<string, TextEdit[]> {
  const all: [uri: string, edits: TextEdit[]][] = edit.documentChanges
    ? edit.documentChanges.map((change) => {
        if ("kind" in change)
          throw new Error(`it would also ${describe(change)}, which has to be done by hand`);
        return [(change as TextDocumentEdit).textDocument.uri, change.edits];
      })
    : Object.entries(edit.changes ?? {});
  const byPath = new Map<string, TextEdit[]>();
  for (const [uri, edits] of all) {
    const path = pathOf(uri);
    if (!path) throw new Error(`it would change ${uri}, which is no file`);
    if (edits.length > 0) byPath.set(path, [...(byPath.get(path) ?? []), ...edits]);
  }
  return byPath;
}

function describe({ kind, uri, oldUri }: FileOperation): string {
  const name = uri ?? oldUri ?? "";
  return `${kind} ${show(pathOf(name) ?? name)}`;
}

/** The content with all edits done; byte order mark and line ends stay. @throws Error if that is not possible without loss */
export function applyEdits(path: string, content: Buffer, edits: readonly TextEdit[]): Buffer {
  const whole = content.toString("utf8");
  if (!Buffer.from(whole).equals(content)) throw new Error(`${show(path)} is not UTF-8`);
  const mark = whole.startsWith(bom) ? bom : "";
  const text = whole.slice(mark.length);
  const starts = [0, ...[...text.matchAll(/\r\n|\n|\r/g)].map(({ index, 0: end }) => index + end.length)];
  const offset = ({ line, character }: Position) =>
    Math.min((starts[line] ?? text.length) + character, starts[line + 1] ?? text.length);
  const spans = edits
    .map(({ range, newText }) => ({ start: offset(range.start), end: offset(range.end), newText }))
    .sort((a, b) => a.start - b.start || a.end - b.end);
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, newText } of spans) {
    if (start < at) throw new Error(`the changes to ${show(path)} overlap`);
    parts.push(text.slice(at, start), newText);
    at = end;
  }
  return Buffer.from(mark + parts.join("") + text.slice(at));
}
