/** What a host's login shell is asked to run. */
import { coded } from "../protocol/errors.ts";
import script from "./bootstrap.sh" with { type: "text" };

/** A program that the script may find or install on a host of that processor. */
export interface Kind {
  /** As `uname -m` says it. */
  machine: string;
  digest: string;
  size: number;
  /** The program's loader (PT_INTERP), without which it needs the pack. */
  loader: string;
  pack?: { digest: string; files: readonly string[] };
}

export interface Tries {
  nonce: string;
  kinds: readonly Kind[];
  /** Candidates for the folder that turned out to be of no use, `fresh`, `pack`; see the script. */
  mind: readonly string[];
  /** Options of `ollie-remote serve`. */
  serve: readonly string[];
}

/** First of these is where a host's user has it; the others, where that cannot be. */
export const places: Record<string, string> = {
  home: "~/.cache/ollie",
  own: "$OLLIE_DIR",
  run: "$XDG_RUNTIME_DIR/ollie-remote",
  vartmp: "/var/tmp/ollie-UID",
  shm: "/dev/shm/ollie-UID",
};

/** One command that every login shell understands in the same way. */
export function bootCommand({ nonce, kinds, mind, serve }: Tries): string {
  const words = [nonce, kinds.map(kindWord).join(" "), mind.join(","), ...serve];
  return `exec /bin/sh -c ${quoted(oneLine(script))} ollie ${words.map(quoted).join(" ")}`;
}

function kindWord({ machine, digest, size, loader, pack }: Kind): string {
  const [name, sum, files] = pack ? [packName(pack.digest), pack.digest, pack.files.join(",")] : "---";
  return [machine, digest, size, loader, name, sum, files].join(":");
}

/** The pack's folder is `libc-NAME`. */
export function packName(digest: string): string {
  return digest.slice(0, 12);
}

/**
 * In single quotes, where bash, zsh, fish, tcsh and nushell have the same ideas of everything but these.
 * @throws CodedFault "boot.unsupported"
 */
export function quoted(word: string): string {
  const bad = /['\\!\n\r\0]/.exec(word)?.[0];
  if (bad !== undefined)
    throw coded(
      "boot.unsupported",
      `${JSON.stringify(bad)} cannot be passed through the login shell of a host`,
      { hint: `choose another name than ${JSON.stringify(word)}` },
    );
  return `'${word}'`;
}

/** After these a command goes on. */
const unfinished = /(?:^|\s)(?:then|else|do|in|\{|\()$|(?:&&|\|\||\||;;)$/;

/** A shell script without comments as one line. Strings in it must not go over the end of a line. */
export function oneLine(text: string): string {
  let line = "";
  let goesOn = true;
  for (const row of text.split("\n").map((each) => each.trim())) {
    if (row === "" || row.startsWith("#")) continue;
    line += goesOn ? ` ${row}` : `; ${row}`;
    goesOn = unfinished.test(row) || isPattern(row);
  }
  return line.trim();
}

/** A line of its own in `case`: it closes a parenthesis that it has not opened. */
function isPattern(row: string): boolean {
  return row.endsWith(")") && row.split("(").length < row.split(")").length;
}
