/**
 * Finds the server of a state folder. The lock that it holds on the folder says whether it lives and as which process; a file beside
 * it says what else there is to know.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { lockHolder } from "../../store/lock.ts";

const schema = z.object({
  pid: z.number(),
  /** Dial strings. */
  addresses: z.array(z.string()),
  /** The options it was started with, for a restart. */
  arguments: z.array(z.string()),
});
export type Instance = z.infer<typeof schema>;

/** The server that uses `state`, if one does. Without `addresses` it is still about to start. */
export function findInstance(state: string): Instance | undefined {
  const pid = lockHolder(state);
  if (pid === undefined) return undefined;
  const nothing = { pid, addresses: [], arguments: [] };
  try {
    const known = schema.parse(JSON.parse(readFileSync(file(state), "utf8")));
    return known.pid === pid ? known : nothing;
  } catch {
    return nothing;
  }
}

/** Called by the server once it can be reached. */
export function announce(state: string, instance: Instance): void {
  writeFileSync(`${file(state)}.new`, `${JSON.stringify(instance)}\n`, { mode: 0o600 });
  renameSync(`${file(state)}.new`, file(state));
}

/** Called by the server when it ends. */
export function withdraw(state: string): void {
  rmSync(file(state), { force: true });
}

function file(state: string): string {
  return join(state, "olliesrv.pid");
}
