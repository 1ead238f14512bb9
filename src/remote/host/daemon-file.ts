/** `daemon.json`: which process is the daemon of a session, and how a bridge gets to it. Only the user, and no sandbox, can read it. */
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const schema = z.object({
  pid: z.int(),
  socket: z.string(),
  /** Whoever connects has to show it first. */
  token: z.string(),
  digest: z.string(),
  proto: z.object({ min: z.int(), max: z.int() }),
});
export type DaemonFile = z.infer<typeof schema>;

const fileName = "daemon.json";

/** Undefined where there is none, or a torn one. */
export function readDaemonFile(folder: string): DaemonFile | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(join(folder, fileName), "utf8")));
  } catch {
    return undefined;
  }
}

export function writeDaemonFile(folder: string, daemon: DaemonFile): void {
  const fresh = join(folder, `${fileName}.new`);
  writeFileSync(fresh, `${JSON.stringify(daemon)}\n`, { mode: 0o600 });
  renameSync(fresh, join(folder, fileName));
}

export function removeDaemonFile(folder: string): void {
  rmSync(join(folder, fileName), { force: true });
}
