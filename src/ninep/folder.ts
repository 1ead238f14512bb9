/** The folder of a socket: whoever can enter it can connect. */
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { tryLock } from "./libc.ts";
import { SocketStream } from "./socket.ts";

/** `sun_path` of `unix(7)`, less the final NUL. */
const maxPath = 107;

/** A folder for further sockets of a server, beside its first one; theirs are the addresses of tools. */
export function annex(socket: string): string {
  return `${socket}.tools`;
}

/** Whether a socket can have that path. */
export function fits(path: string): boolean {
  return Buffer.byteLength(path) <= maxPath;
}

export function checkLength(path: string): void {
  if (!fits(path))
    throw new Fault(
      "invalid",
      `the socket path ${path} is longer than ${maxPath} bytes, choose a shorter one`,
    );
}

/**
 * Makes the folder of `path` (0700), or sees to it that it is ours and closed to others. An open folder is closed only if nothing
 * else is in it: `/tmp` or a home folder is not ours to change.
 */
export function privateFolder(path: string): void {
  const folder = dirname(path);
  make(folder);
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Fault("denied", `${folder} is no folder, choose another for the socket`);
  const mine = process.geteuid!();
  if (stat.uid !== mine) {
    throw new Fault(
      "denied",
      `the folder ${folder} belongs to user ${stat.uid}, user ${mine} must choose another for the socket`,
    );
  }
  if ((stat.mode & 0o077) === 0) return;
  const ours = (name: string) => name === basename(path) || name.startsWith(`${basename(path)}.`);
  if (!readdirSync(folder).every(ours)) {
    throw new Fault(
      "denied",
      `the folder ${folder} is open to others: make it 0700 or choose another for the socket`,
    );
  }
  chmodSync(folder, 0o700);
}

function make(folder: string): void {
  try {
    mkdirSync(dirname(folder), { recursive: true });
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST" && existsSync(folder)) return;
    throw new Fault("denied", `the folder ${folder} cannot be made: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Makes the path of a socket ours: of several servers one wins, and the others get a Fault "busy". The lock, on a file beside the
 * socket, is held until the returned function is called or the process ends. It is what tells a living server from a dead one: a
 * refused connection does not, since Bun reports a queue that is full in the same way.
 */
export async function claim(path: string): Promise<() => void> {
  const fd = openLock(path);
  try {
    if (!tryLock(fd)) throw taken(path);
    await removeStale(path);
    let held = true;
    return () => {
      if (held) closeSync(fd);
      held = false;
    };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function openLock(path: string): number {
  try {
    return openSync(lockPath(path), "a", 0o600);
  } catch (error) {
    throw toFault(error, `the socket ${path} cannot be locked`);
  }
}

function lockPath(path: string): string {
  return `${path}.lock`;
}

function taken(path: string): Fault {
  return new Fault("busy", `a server is listening on ${path} already`);
}

async function removeStale(path: string): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isSocket())
    throw new Fault("exists", `${path} is there and is no socket, remove it or choose another path`);
  if (await answers(path)) throw taken(path);
  unlinkSync(path);
}

/** Whether somebody listens who does not keep to the lock. */
async function answers(path: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ unix: path, socket: SocketStream.handlers(() => undefined) });
    socket.end();
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ECONNREFUSED";
  }
}
