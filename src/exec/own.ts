/** The program that this process runs. */
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";

/** Whether it is a compiled binary: the sources then live in a file system of its own. */
export const compiled = import.meta.path.startsWith("/$bunfs/");

/**
 * What started this process where the kernel knows only a loader: on a host without glibc the program runs as `ld-linux-x86-64.so.2
 * --library-path FOLDER PROGRAM …`, and `/proc/self/exe` is the loader.
 */
const loader = loaded();

function loaded(): { command: string[]; program: string } | undefined {
  if (!compiled || !/^ld-linux/.test(basename(process.execPath))) return undefined;
  const words = readFileSync("/proc/self/cmdline", "utf8").split("\0");
  const at = words[1] === "--library-path" ? 3 : 1;
  return { command: words.slice(0, at + 1), program: words[at]! };
}

/**
 * Path of the program that this process runs. Where an upgrade has put another file in its place meanwhile, the kernel calls the old one
 * "PATH (deleted)" (`proc_pid_exe(5)`), and what is started from now on is the new one.
 */
export function ownProgram(): string {
  return loader?.program ?? process.execPath.replace(/ \(deleted\)$/, "");
}

/** argv that starts the same program again, its arguments not included. */
export function ownCommand(): string[] {
  return loader?.command ?? [ownProgram()];
}

/** The same for this very file, also when another has been installed under its name meanwhile. */
export function ownExactCommand(): string[] {
  return loader?.command ?? ["/proc/self/exe"];
}

/** Files that have to be readable and executable for that. */
export function ownFiles(): string[] {
  return loader ? [loader.program, dirname(loader.command[0]!)] : [ownProgram()];
}
