/**
 * What an agent has read: the sha256 of each file as it was then, and a copy of small ones. Who edits a file must have read it, and
 * nobody may have changed it since; that is how two agents do not lose each other's work. Lies in `$OLLIE_TMP/.reads/$OLLIE_AGENT/`,
 * where `rm -rf $TMPDIR/*` leaves it.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, unifiedDiff } from "ollie:tool";
import { show } from "./paths.ts";

/** Bytes up to which the content is kept, to be able to say what has changed. */
export const copyLimit = 1024 * 1024;

interface Entry {
  path: string;
  sha256: string;
  /** Lines that were read, first to last, each once, in the order of reading. */
  ranges: [first: number, last: number][];
}

const folder = join(call.tmp, ".reads", call.agent);
const nameOf = (path: string) => join(folder, sha256(Buffer.from(path)).slice(0, 32));

export function sha256(bytes: Uint8Array): string {
  // node:crypto takes longer to load than most files to be read.
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Notes what the agent now knows of the file. `content` is left out where it is longer than `copyLimit`. */
export function remember(path: string, hash: string, content?: Uint8Array, range?: [number, number]): void {
  const name = nameOf(path);
  const before = recall(path);
  const same = before?.sha256 === hash;
  const known = same ? before.ranges : [];
  const ranges = range && !includes(known, range) ? [...known, range] : known;
  // A file that takes the place of another has to be on the disk before some file systems go on.
  if (same && ranges === known) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!same) {
    if (content && content.length <= copyLimit) put(`${name}.copy`, content);
    else rmSync(`${name}.copy`, { force: true });
  }
  put(`${name}.json`, JSON.stringify({ path, sha256: hash, ranges } satisfies Entry));
}

function includes(ranges: Entry["ranges"], [first, last]: [number, number]): boolean {
  return ranges.some((range) => range[0] === first && range[1] === last);
}

/** Whether the agent has read it at some time. */
export function isKnown(path: string): boolean {
  return recall(path) !== undefined;
}

/** @throws if the agent has not read the file as it is now: with what to do, and what has changed */
export function mustKnow(path: string, current: Uint8Array): void {
  const entry = recall(path);
  if (!entry) throw new Error(`${show(path)} exists and was not read yet: read it first with file_read`);
  if (entry.sha256 === sha256(current)) return;
  throw new Error(
    `${show(path)} has changed since you read it; nothing was written. Read it again before you change it. What changed:\n${difference(path, current)}`,
  );
}

function recall(path: string): Entry | undefined {
  try {
    return JSON.parse(readFileSync(`${nameOf(path)}.json`, "utf8")) as Entry;
  } catch {
    return undefined; // never read, or the note was damaged: then it has to be read again
  }
}

function difference(path: string, current: Uint8Array): string {
  try {
    const before = readFileSync(`${nameOf(path)}.copy`, "utf8");
    return unifiedDiff(show(path), before, Buffer.from(current).toString("utf8"));
  } catch {
    return "(the file is too long to compare)";
  }
}

function put(path: string, content: string | Uint8Array): void {
  // Parallel calls may write the same one.
  const scratch = `${path}.${process.pid}.new`;
  writeFileSync(scratch, content, { mode: 0o600 });
  renameSync(scratch, path);
}
