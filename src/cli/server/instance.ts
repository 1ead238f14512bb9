/**
 * Finds the server of a state folder. The lock that it holds on the folder says whether it lives and as which process; a file beside
 * it says what else there is to know.
 */
import {
  closeSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { toFault } from "../../fault.ts";
import { lockHolder } from "../../store/lock.ts";

const schema = z.object({
  pid: z.number(),
  /** Dial strings. */
  addresses: z.array(z.string()),
  /** The options it was started with, for a restart. */
  arguments: z.array(z.string()),
  /** What its start has found lost, could not open or could not do: a sentence each. */
  damage: z.array(z.string()).default([]),
});
export type Instance = z.infer<typeof schema>;

/** The server that uses `state`, if one does. Without `addresses` it is still about to start. */
export function findInstance(state: string): Instance | undefined {
  const pid = holder(state);
  if (pid === undefined) return undefined;
  const nothing = { pid, addresses: [], arguments: [], damage: [] };
  try {
    const known = schema.parse(JSON.parse(readFileSync(file(state), "utf8")));
    return known.pid === pid ? known : nothing;
  } catch {
    return nothing;
  }
}

function holder(state: string): number | undefined {
  try {
    return lockHolder(state);
  } catch (error) {
    throw toFault(error, `the state folder ${state} cannot be looked at`);
  }
}

/**
 * Called by the server once it can be reached. On a full disk it takes the place that an earlier server has left.
 * @throws Fault if that is not enough
 */
export function announce(state: string, instance: Instance): void {
  const path = file(state);
  const text = `${JSON.stringify(instance)}\n`;
  try {
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch (error) {
    rmSync(`${path}.new`, { force: true });
    if (toFault(error).kind !== "full") throw error;
    overwrite(path, text);
  }
}

/** Called by the server when it ends. The file keeps its room on the disk for the next one. */
export function withdraw(state: string): void {
  const path = file(state);
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size !== undefined) overwrite(path, "\n".padStart(size));
}

/** Whoever reads meanwhile finds no JSON, and looks again or goes without. */
function overwrite(path: string, text: string): void {
  const fd = openSync(path, "r+");
  try {
    writeSync(fd, text, 0);
    ftruncateSync(fd, Buffer.byteLength(text));
  } finally {
    closeSync(fd);
  }
}

function file(state: string): string {
  return join(state, "olliesrv.pid");
}
