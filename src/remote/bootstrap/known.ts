/**
 * Programs that were looked at, so that their hundred megabytes are hashed once for each file as it is (path, inode, size, time of change): in
 * this process, and in a file for the next. Before a program is sent it is held against this all the same.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { home } from "../../config/paths.ts";
import { type Described, described } from "../protocol/manifest.ts";
import { type LibcPack, readLibcPack } from "./libc.ts";
import { describe } from "./program.ts";

const kept = z.record(z.string(), z.object({ file: z.string(), described }));
/** Bytes; what is smaller is hashed as soon as it would be found. */
const worthKeeping = 16 * 1024 * 1024;

const programs = new Map<string, Promise<Described>>();
const packs = new Map<string, LibcPack>();

function stateOf(file: string): { key: string; size: number } {
  const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
  return { key: [file, ino, size, mtimeNs, ctimeNs].join(" "), size: Number(size) };
}

/** @param cache folder; unset = `~/.cache/ollie` */
export function describedOnce(file: string, cache: string | undefined): Promise<Described> {
  const { key, size } = stateOf(file);
  const entry = programs.get(key) ?? look(file, key, size, cache);
  programs.set(key, entry);
  // Not remembered: the file may be there at the next time.
  entry.catch(() => programs.delete(key));
  return entry;
}

/** @param pinned see `readLibcPack` */
export function libcPackOnce(file: string, pinned: string | undefined): LibcPack {
  const key = `${stateOf(file).key} ${pinned}`;
  const pack = packs.get(key) ?? readLibcPack(file, pinned);
  packs.set(key, pack);
  return pack;
}

async function look(file: string, key: string, size: number, cache?: string): Promise<Described> {
  if (size < worthKeeping) return describe(file);
  const before = readKept(cache)[key];
  if (before) return before.described;
  const found = await describe(file);
  keep(key, file, found, cache);
  return found;
}

function keptFile(cache: string | undefined): string {
  return join(cache ?? join(home(process.env), ".cache/ollie"), "programs.json");
}

function readKept(cache: string | undefined): z.infer<typeof kept> {
  try {
    return kept.parse(JSON.parse(readFileSync(keptFile(cache), "utf8")));
  } catch {
    return {}; // none yet, or damaged: it is made anew
  }
}

function keep(key: string, file: string, found: Described, cache: string | undefined): void {
  let scratch: string | undefined;
  try {
    const others = Object.entries(readKept(cache)).filter(
      ([, other]) => other.file !== file && existsSync(other.file),
    );
    const target = keptFile(cache);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    scratch = `${target}.${process.pid}`;
    writeFileSync(
      scratch,
      JSON.stringify(Object.fromEntries([...others, [key, { file, described: found }]])),
      {
        mode: 0o600,
      },
    );
    renameSync(scratch, target);
  } catch {
    // Where nothing can be kept, the next process hashes again.
    if (scratch) rmSync(scratch, { force: true });
  }
}
