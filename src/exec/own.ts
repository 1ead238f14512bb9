/** The program that this process runs. */

/** Whether it is a compiled binary: the sources then live in a file system of its own. */
export const compiled = import.meta.path.startsWith("/$bunfs/");

/**
 * Path of the program that this process runs. Where an upgrade has put another file in its place meanwhile, the kernel calls the old one
 * "PATH (deleted)" (`proc_pid_exe(5)`), and what is started from now on is the new one.
 */
export function ownProgram(): string {
  return process.execPath.replace(/ \(deleted\)$/, "");
}
