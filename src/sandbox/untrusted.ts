/**
 * Files in folders that confined programs can write, read by a process that nothing confines. A link there may lead to what tools are not to
 * know, and what looks like a file may be a pipe that nobody writes to, or have no end.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";

export interface UntrustedFile {
  /** At most as many as were asked for. */
  bytes: Uint8Array;
  /** Bytes of the whole file. */
  size: number;
  /** Where it really lies: who shows its content to others has to ask. */
  real: string;
}

/** Undefined where there is no regular file that can be read. Never waits. */
export function readUntrusted(path: string, most: number): UntrustedFile | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(fd);
    if (!stat.isFile()) return undefined;
    const bytes = Buffer.alloc(Math.min(most, stat.size));
    // Of what was opened, whatever the path leads to by now.
    const real = readlinkSync(`/proc/self/fd/${fd}`);
    return { bytes: bytes.subarray(0, readSync(fd, bytes)), size: stat.size, real };
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
