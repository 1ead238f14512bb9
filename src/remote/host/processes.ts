/** Processes of this user on the host, known by what their command lines, environments and working folders say. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Whether a process works with the folder, by its command line or environment. */
export function mentioned(folder: string): boolean {
  return processesOf(folder).length > 0;
}

/** Pids, this process left out. Those of other users cannot be seen, and are not ours to end. */
export function processesOf(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && concerns(pid, folder));
}

function concerns(pid: number, folder: string): boolean {
  // As bytes: an environment need not be UTF-8.
  const whole = Buffer.from(folder);
  return ["cmdline", "environ"].some((file) => names(read(pid, file), whole)) || isBelow(cwd(pid), folder);
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
