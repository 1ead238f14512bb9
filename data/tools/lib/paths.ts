/** Paths as a model writes them, and the files they lead to. */
import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { call } from "ollie:tool";

/** Absolute; relative paths begin at the agent's folder, `~/` at home. */
export function absolute(path: string): string {
  return resolve(call.cwd, path.replace(/^~(?=\/|$)/, homedir()));
}

/** The file itself behind all symbolic links, also where it does not exist yet. */
export function realFile(path: string): string {
  let place = absolute(path);
  // As many links as the kernel follows.
  for (let links = 0; links < 40; links++) {
    const parent = dirname(place) === place ? place : realFolder(dirname(place));
    place = join(parent, basename(place));
    if (!lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink()) return place;
    place = resolve(parent, readlinkSync(place));
  }
  throw new Error(`${path}: too many symbolic links`);
}

function realFolder(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })) return realpathSync(path);
  return dirname(path) === path ? path : join(realFolder(dirname(path)), basename(path));
}

/** Undefined if nothing is there. Anything but a regular file is refused: a pipe or a device may never end. */
export function statFile(path: string): Stats | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw new Error(`${show(path)} is a folder; file_glob lists what is in it`);
  if (stat && !stat.isFile()) throw new Error(`${show(path)} is not a regular file`);
  return stat;
}

/** Relative to the agent's folder where it is inside. */
export function show(path: string): string {
  const short = relative(call.cwd, path);
  return short === "" ? "." : short.startsWith("..") ? path : short;
}
