/** Processes of this user on the host, known by what was given to them. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Whether a process works with the folder, by its command line, environment or working folder. */
export function mentioned(folder: string): boolean {
  const whole = Buffer.from(folder);
  return pids().some(
    (pid) =>
      ["cmdline", "environ"].some((file) => names(read(pid, file), whole)) || isBelow(cwd(pid), folder),
  );
}

/** Variables that a session's programs have from us, with a folder of the session. */
const given = ["TMPDIR=", "OLLIE_TMP=", "CARGO_HOME="];

/**
 * Pids of what runs for a session. Only what was started so is meant: an editor or a shell of the user's that merely names the folder, or stands
 * in it, is not ours to end. Those of other users cannot be seen.
 * @param folder of the session
 */
export function processesOf(folder: string): number[] {
  return pids().filter((pid) => runsFor(pid, folder));
}

function runsFor(pid: number, folder: string): boolean {
  const variables = read(pid, "environ");
  if (given.some((name) => startsBelow(variables, `${name}${folder}/`))) return true;
  // A job's supervisor has no environment; it works in the folder of its operation.
  return read(pid, "cmdline").includes("\0job-supervisor\0") && isBelow(cwd(pid), `${folder}/ops`);
}

/** Whether one of the strings begins so. */
function startsBelow(strings: Buffer, start: string): boolean {
  const at = strings.indexOf(start);
  return at === 0 || (at > 0 && strings.includes(`\0${start}`));
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

/** Whether the path or one below it is in the text: not one that only begins like it. */
function names(text: Buffer, path: Buffer): boolean {
  for (let at = text.indexOf(path); at >= 0; at = text.indexOf(path, at + 1)) {
    const next = text[at + path.length];
    if (next === undefined || next === 0 || next === 0x2f || next === 0x3a) return true;
  }
  return false;
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

function read(pid: number, file: string): Buffer {
  try {
    return readFileSync(`/proc/${pid}/${file}`);
  } catch {
    return Buffer.alloc(0); // has ended, or is another user's
  }
}

function cwd(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
