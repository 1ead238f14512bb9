/** The tools' side: from a place that a model names to a request, and from an answer to text. */
import { readFileSync } from "node:fs";
import { print, service } from "ollie:tool";
import { realFile, show, statFile } from "../paths.ts";
import type { Reply, Request } from "./bridge.ts";
import { pathOf } from "./documents.ts";
import { Lines } from "./position.ts";
import type { Position, Range } from "./protocol.ts";

/** Lines and bytes of a list that are shown. */
const mostLines = 200;
const mostBytes = 12_000;
/** Characters of a source line. */
const lineLimit = 200;
/** Bytes of a file whose lines are shown. */
const largest = 8 * 1024 * 1024;

/** Asks the bridge. What else it has to say comes at the end of the result. */
export async function ask<T>(request: Request): Promise<T> {
  const { result, notes } = await service.ask<Reply<T>>(request);
  process.on("exit", () => {
    for (const note of new Set(notes)) print(`[${note}]`);
  });
  return result;
}

export interface Target {
  path: string;
  line: number;
  column?: number;
  symbol?: string;
}

/** Something in a file that a tool is asked about. */
export class Subject {
  readonly path: string;
  readonly lines: Lines;
  readonly position: Position;

  /** @throws Error that says what is wrong with the place */
  constructor(target: Target, how: "name" | "cursor" = "name") {
    this.path = realFile(target.path);
    if (!statFile(this.path)) throw new Error(`${show(this.path)} does not exist`);
    this.lines = new Lines(textOf(this.path));
    this.position = this.locate(target, how);
  }

  /** `path:line:column` */
  get place(): string {
    const { line, column } = this.lines.fromProtocol(this.position);
    return `${show(this.path)}:${line}:${column}`;
  }

  request<T>(method: string, needs: string, params: object = {}, indexed = false): Promise<T> {
    const { path, position } = this;
    return ask<T>({ do: "request", path, method, needs, params: { position, ...params }, indexed });
  }

  private locate({ line, column, symbol }: Target, how: "name" | "cursor"): Position {
    if (column !== undefined) return this.lines.toProtocol({ line, column });
    if (symbol === undefined) throw new Error('say which: "column", or "symbol" with the text in that line');
    const { character, ...rest } = this.lines.find(line, symbol);
    return { ...rest, character: how === "cursor" ? character + symbol.length : character };
  }
}

export interface Located {
  uri: string;
  range: Range;
}

/** Tells of places in files, each of which is read once. */
export class Sources {
  private readonly files = new Map<string, Lines | undefined>();

  /** `path:line:column` */
  place({ uri, range }: Located): string {
    const path = pathOf(uri);
    const lines = path && this.lines(path);
    if (!lines) return `${path ? show(path) : uri}:${range.start.line + 1}:${range.start.character + 1}`;
    const { line, column } = lines.fromProtocol(range.start);
    return `${show(path)}:${line}:${column}`;
  }

  /** The line of source, without its indentation. */
  source({ uri, range }: Located): string {
    const path = pathOf(uri);
    const text =
      (path &&
        this.lines(path)
          ?.line(range.start.line + 1)
          .trim()) ||
      "";
    return text.length > lineLimit ? `${text.slice(0, lineLimit).toWellFormed()}…` : text;
  }

  private lines(path: string): Lines | undefined {
    if (!this.files.has(path)) this.files.set(path, linesOf(path));
    return this.files.get(path);
  }
}

/** Prints what there is room for, and how much more there is. */
export function printList(rows: readonly string[], more: string): void {
  let bytes = 0;
  let shown = 0;
  for (const row of rows) {
    bytes += Buffer.byteLength(row) + 1;
    if (shown === mostLines || bytes > mostBytes) break;
    print(row);
    shown++;
  }
  if (shown < rows.length) print(`[${shown} of ${rows.length} are shown; ${more}]`);
}

export function textOf(path: string): string {
  return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
}

/** Undefined where it cannot be read, or is too long for it to be worth it. */
function linesOf(path: string): Lines | undefined {
  try {
    const stat = statFile(path);
    return stat && stat.size <= largest ? new Lines(textOf(path)) : undefined;
  } catch {
    return undefined;
  }
}
