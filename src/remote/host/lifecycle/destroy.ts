/** The end of a session on its host: processes, socket, files. */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { tagOf } from "../../../exec/tag.ts";
import { coded } from "../../protocol/errors.ts";
import type { sessionDestroy, sessionDestroyed } from "../../protocol/exports.ts";
import { readDaemonFile } from "../daemon-file.ts";
import { sessionFolder, sessionsFolder } from "../places.ts";
import { processesOf } from "../processes.ts";
import { bytesBelow } from "./sizes.ts";

/** Milliseconds in which processes may end by themselves, and after which those that cannot be killed are left. */
const grace = 2000;
const patience = 10_000;

/** What a session's folder is called while it is removed; no id is like that. */
const goneName = /^\.gone-/;

/**
 * A working folder that is not the session's own stays as it is.
 * @throws CodedFault `session.confirm`, `session.absent`, `session.busy`
 */
export async function destroySession(
  root: string,
  { sessionId, confirm }: z.infer<typeof sessionDestroy>,
): Promise<z.infer<typeof sessionDestroyed>> {
  if (confirm !== sessionId)
    throw coded("session.confirm", "the id of the session was not repeated", {
      hint: `type ${sessionId} in full`,
    });
  const folder = sessionFolder(root, sessionId);
  if (!existsSync(folder))
    throw coded("session.absent", `there is no session ${sessionId} on this host (below ${root})`);
  const bytes = await bytesBelow(folder);
  const daemon = daemonOf(folder, sessionId);
  const ended = await endAll(folder, daemon?.pid);
  if (daemon) rmSync(daemon.socket, { force: true });
  // From here on nobody finds it, however long the removal takes and whatever becomes of it.
  const gone = join(sessionsFolder(root), `.gone-${sessionId}-${randomBytes(4).toString("hex")}`);
  renameSync(folder, gone);
  removeTree(gone);
  return { sessionId, bytes, ended };
}

/** The daemon of a session, if it runs. */
export function daemonOf(folder: string, sessionId: string): { pid: number; socket: string } | undefined {
  const daemon = readDaemonFile(folder);
  if (!daemon) return undefined;
  try {
    // Pids are used again.
    const words = readFileSync(`/proc/${daemon.pid}/cmdline`, "utf8").split("\0");
    return words.includes("daemon") && words.includes(sessionId) ? daemon : undefined;
  } catch {
    return undefined;
  }
}

/** The daemon first: it ends what it runs, in order. Then what has outlived it. */
async function endAll(folder: string, daemon: number | undefined): Promise<number> {
  const ended = new Set<number>();
  const started = performance.now();
  const tell = (pid: number, signal: "SIGTERM" | "SIGKILL") => {
    try {
      process.kill(pid, signal);
      ended.add(pid);
    } catch {
      // Has ended.
    }
  };
  let told = new Set<number>();
  for (let living = all(folder, daemon); living.length > 0; living = all(folder, daemon)) {
    const waited = performance.now() - started;
    if (waited > patience)
      throw coded("session.busy", `processes ${living.join(", ")} of the session do not end`, {
        retry: true,
      });
    const first = daemon !== undefined && living.includes(daemon) && waited < grace;
    for (const pid of first ? [daemon] : living) {
      if (waited > grace) tell(pid, "SIGKILL");
      else if (!told.has(pid)) tell(pid, "SIGTERM");
    }
    told = new Set([...told, ...(first ? [daemon] : living)]);
    await Bun.sleep(20);
  }
  return ended.size;
}

/** All that says it belongs to the folder, and what one of those has started, whatever that says. */
function all(folder: string, daemon: number | undefined): number[] {
  const known = new Set([...processesOf(folder), ...(daemon === undefined ? [] : [daemon])]);
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => known.has(tagOf(pid)?.server ?? 0));
  return [...new Set([...known, ...children])].filter((pid) => pid !== process.pid && lives(pid));
}

/** Not a zombie, which waits for its parent only. */
function lives(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

/** @throws Error of the system */
function removeTree(folder: string): void {
  try {
    rmSync(folder, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    // Module caches are read-only, and a folder from which nothing may be removed is one of them.
    openFolders(Buffer.from(folder));
    rmSync(folder, { recursive: true, force: true });
  }
}

function openFolders(folder: Buffer): void {
  chmodSync(folder, 0o700);
  for (const name of readdirSync(folder, { encoding: "buffer" })) {
    const path = Buffer.concat([folder, Buffer.from("/"), name]);
    if (lstatSync(path).isDirectory()) openFolders(path);
  }
}

/** What an earlier removal has left. */
export function removeGone(root: string): void {
  for (const name of list(sessionsFolder(root)))
    if (goneName.test(name)) removeTree(join(sessionsFolder(root), name));
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
