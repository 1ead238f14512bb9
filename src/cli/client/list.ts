import type { Dir } from "../../ninep/client.ts";
import { DMAPPEND, DMDIR, OREAD } from "../../ninep/file.ts";
import { command } from "../program.ts";
import { writeOut } from "../stdio.ts";
import { type globals, withServer } from "./connection.ts";

const json = { type: "boolean", help: "print JSON" } as const;

const lsOptions = {
  long: { type: "boolean", short: "l", help: "mode, owner, group, bytes and time of each" },
  directory: { type: "boolean", short: "d", help: "the directory itself instead of what is in it" },
  json,
} as const;

export const ls = command<typeof lsOptions, typeof globals>({
  usage: "[-l] [-d] [--json] [PATH]",
  about: "Lists a directory (the root without PATH), one name a line, or the file itself.",
  options: lsOptions,
  words: [0, 1],
  run({ values, words, globals }) {
    const path = words[0] ?? "/";
    return withServer(globals, async (client, signal) => {
      const fid = await client.walk(path, signal);
      const itself = values.directory || !fid.isDirectory;
      const entries = itself ? [{ ...(await fid.stat(signal)), name: path }] : await entriesOf(fid, signal);
      await fid.clunk();
      if (values.json) await writeOut(`${JSON.stringify(entries.map(facts), null, 2)}\n`);
      else await writeOut(values.long ? longLines(entries) : entries.map(({ name }) => `${name}\n`).join(""));
      return 0;
    });
  },
});

export const stat = command<{ json: typeof json }, typeof globals>({
  usage: "[--json] PATH",
  about: "Shows what stat(5) tells of the file, a line each.",
  options: { json },
  words: [1, 1],
  run({ values, words, globals }) {
    return withServer(globals, async (client, signal) => {
      const known = facts(await client.stat(words[0]!, signal));
      const lines = Object.entries(known).map(([key, value]) => `${key} ${value}\n`);
      await writeOut(values.json ? `${JSON.stringify(known, null, 2)}\n` : lines.join(""));
      return 0;
    });
  },
});

async function entriesOf(
  fid: {
    open(mode: number, signal: AbortSignal): Promise<unknown>;
    entries(signal: AbortSignal): Promise<Dir[]>;
  },
  signal: AbortSignal,
) {
  await fid.open(OREAD, signal);
  return fid.entries(signal);
}

/** An entry as people and programs read it. */
function facts(entry: Dir) {
  return {
    name: entry.name,
    mode: modeLetters(entry.mode),
    length: Number(entry.length),
    mtime: new Date(entry.mtime * 1000).toISOString(),
    atime: new Date(entry.atime * 1000).toISOString(),
    uid: entry.uid,
    gid: entry.gid,
    muid: entry.muid,
    qid: `${entry.qid.path} ${entry.qid.vers} ${entry.qid.type}`,
  };
}

function longLines(entries: Dir[]): string {
  const rows = entries.map((entry) => {
    const { mode, uid, gid, length, mtime, name } = facts(entry);
    return [mode, uid, gid, String(length), mtime.slice(0, 19).replace("T", " "), name];
  });
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row.map((cell, i) => (i === 3 ? cell.padStart(widths[i]!) : cell.padEnd(widths[i] ?? 0))).join(" "),
    )
    .map((line) => `${line}\n`)
    .join("");
}

/** `drwxr-xr-x`; `a` in the first place is an append-only file. */
function modeLetters(mode: number): string {
  const kind = mode & DMDIR ? "d" : mode & DMAPPEND ? "a" : "-";
  const bits = [...(mode & 0o777).toString(2).padStart(9, "0")];
  return kind + bits.map((bit, i) => (bit === "1" ? "rwx"[i % 3] : "-")).join("");
}
