/** `file.walk`, `file.search`: all that is below a folder, in the order of the bytes of names, each folder before what is in it. */
import { closeSync, fstatSync, readSync, type Stats } from "node:fs";
import type { z } from "zod";
import { CodedFault } from "../../../fault.ts";
import { Globs } from "../../policy/globs.ts";
import type * as wire from "../../protocol/files.ts";
import { withFd } from "./beneath.ts";
import { child, parsePath, pathOf, type RelativePath, relative } from "./names.ts";
import { entryLimit, entryOf, look, namesIn } from "./read.ts";
import { Pauses, type Workspace } from "./workspace.ts";

export interface Walked {
  path: RelativePath;
  stat: Stats;
}

export interface WalkOptions {
  /** Only what comes behind it. */
  after?: RelativePath;
  /** Told of what is left out: hidden by the policy, or gone meanwhile. */
  onLeft?(): void;
}

/**
 * Links are named and never followed. A folder that cannot be opened is named, and what is in it is left out.
 * @throws CodedFault where the folder itself cannot be walked through
 */
export async function* walk(
  workspace: Workspace,
  path: RelativePath,
  { after, onLeft = () => {} }: WalkOptions = {},
): AsyncGenerator<Walked> {
  const pauses = new Pauses();
  const top = workspace.openFolder(path);
  yield* inside(relative(partsOf(workspace, top, path)), after, top);

  async function* inside(
    folder: RelativePath,
    behind: RelativePath | undefined,
    open?: number,
  ): AsyncGenerator<Walked> {
    let fd: number | undefined;
    try {
      fd = open ?? workspace.tree.openFolder(folder);
      const depth = folder.parts.length;
      const first = behind?.parts[depth];
      for (const name of namesIn(fd, folder)) {
        const order = first ? Buffer.compare(name, first) : 1;
        if (order < 0) continue;
        const here = child(folder, name);
        const stat = workspace.policy.allowsPath(here.text, "read") ? look(fd, name) : undefined;
        if (!stat) {
          // What is not allowed by name may hold what is: readable is `a/b/**`, and this is `a`.
          if (!(look(fd, name)?.isDirectory() && workspace.policy.mayHold(here.text))) {
            if (order > 0) onLeft();
            continue;
          }
        } else if (order > 0) yield { path: here, stat };
        await pauses.take();
        if (stat && !stat.isDirectory()) continue;
        try {
          yield* inside(here, order === 0 ? behind : undefined);
        } catch (error) {
          if (!(error instanceof CodedFault)) throw error;
          onLeft();
        }
      }
    } finally {
      if (fd !== undefined) closeSync(fd);
    }
  }
}

/** Where links have led to the folder, what is below it is named by where it lies. */
function partsOf(workspace: Workspace, fd: number, path: RelativePath): readonly Buffer[] {
  return workspace.policy.policy.follow_inside ? workspace.tree.whereIs(fd, path).parts : path.parts;
}

export async function walkList(
  workspace: Workspace,
  params: z.infer<typeof wire.fileWalk>,
): Promise<wire.FileEntries> {
  const path = parsePath(params.path);
  const after = params.after === undefined ? undefined : parsePath(params.after);
  const limit = entryLimit(workspace, params.limit);
  const entries: wire.FileEntry[] = [];
  let left = 0;
  for await (const found of walk(workspace, path, { after, onLeft: () => left++ })) {
    if (entries.length === limit) return { entries, left, next: entries.at(-1)!.path };
    entries.push(entryOf(pathOf(found.path), found.stat));
  }
  return { entries, left };
}

/** Bytes of a file that is searched. */
const sizeLimit = 16 * 1024 * 1024;
/** Bytes at the beginning of a file in which a NUL means that it is no text. */
const looked = 8192;
/** Characters of a line that are shown around a match. */
const shownLine = 400;
/** Matches within one file that are told. */
const mostInFile = 200;
/** Milliseconds after which an answer goes out with what there is. */
const patience = 10_000;

export async function search(
  workspace: Workspace,
  params: z.infer<typeof wire.fileSearch>,
): Promise<wire.FileMatches> {
  const path = parsePath(params.path);
  const limit = entryLimit(workspace, params.limit);
  const glob = params.glob === undefined ? undefined : new Globs([params.glob]);
  const wanted = params.ignoreCase ? params.text.toLowerCase() : params.text;
  const after = params.after === undefined ? undefined : parsePath(params.after);
  const matches: wire.FileMatches["matches"] = [];
  let left = 0;
  const started = performance.now();
  for await (const found of walk(workspace, path, { after, onLeft: () => left++ })) {
    if (!found.stat.isFile() || (glob && !glob.matches(found.path.text))) continue;
    const text = textOf(workspace, found);
    if (text === undefined) left++;
    else
      matches.push(
        ...matchesIn(text, wanted, params.ignoreCase).map((match) => ({
          path: pathOf(found.path),
          ...match,
        })),
      );
    // Between two files, so that the next answer goes on behind a whole one.
    if (matches.length >= limit || performance.now() - started > patience)
      return { matches, left, next: pathOf(found.path) };
  }
  return { matches, left };
}

function textOf(workspace: Workspace, { path }: Walked): string | undefined {
  let fd: number;
  try {
    fd = workspace.openFile(path).fd;
  } catch {
    return undefined;
  }
  return withFd(fd, () => {
    const { size } = fstatSync(fd);
    if (size > sizeLimit) return undefined;
    const bytes = readWhole(fd, size);
    return bytes.subarray(0, looked).includes(0) ? undefined : bytes.toString();
  });
}

function readWhole(fd: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let have = 0;
  while (have < size) {
    const read = readSync(fd, bytes, have, size - have, have);
    if (read === 0) break;
    have += read;
  }
  return bytes.subarray(0, have);
}

function matchesIn(
  text: string,
  wanted: string,
  ignoreCase: boolean,
): { line: number; column: number; text: string }[] {
  const found: { line: number; column: number; text: string }[] = [];
  let number = 1;
  for (let start = 0; start < text.length && found.length < mostInFile; number++) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(start, end);
    const column = (ignoreCase ? line.toLowerCase() : line).indexOf(wanted);
    if (column >= 0) {
      const from = Math.max(0, column - shownLine / 2);
      found.push({ line: number, column: column + 1, text: line.slice(from, from + shownLine) });
    }
    start = end + 1;
  }
  return found;
}
