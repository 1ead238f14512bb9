/** `session.json`: what a session is, as long as it is. */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { toFault } from "../../fault.ts";
import type { EffectivePolicy } from "../policy/effective.ts";
import { coded } from "../protocol/errors.ts";
import { sessionSettings } from "../protocol/session.ts";
import { sessionFolder, sessionsFolder } from "./places.ts";

const schema = z.object({
  v: z.literal(1),
  sessionId: z.string(),
  /** Who holds it. */
  client: z.string(),
  created: z.number(),
  /** When somebody was attached last; milliseconds since 1970. */
  used: z.number(),
  /** The working folder, links resolved. */
  cwd: z.string(),
  /** The working folder is the session's own. */
  managed: z.boolean(),
  policy: z.custom<EffectivePolicy>((value) => typeof value === "object" && value !== null),
  policyHash: z.string(),
  envRefs: z.record(z.string(), z.object({ kind: z.enum(["host", "session_sqlite"]) })),
  envRefHash: z.string(),
  /** Base64. */
  key: z.string(),
  settings: sessionSettings,
  epoch: z.int(),
  sealed: z.boolean(),
});
export type SessionRecord = z.infer<typeof schema>;

const fileName = "session.json";

/** @throws CodedFault `session.absent`, `session.damaged` */
export function readSession(root: string, id: string): SessionRecord {
  const file = join(sessionFolder(root, id), fileName);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (toFault(error).kind === "missing")
      throw coded("session.absent", `there is no session ${id} on this host (below ${root})`, {
        hint: "it was destroyed or has expired; remove the session here and make another",
      });
    throw coded("session.damaged", `${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw coded("session.damaged", `${file} makes no sense`, {}, { cause: error });
  }
}

/** Durable when it returns. */
export function writeSession(root: string, record: SessionRecord): void {
  const folder = sessionFolder(root, record.sessionId);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const fresh = join(folder, `${fileName}.new.${process.pid}`);
    writeFileSync(fresh, `${JSON.stringify(record)}\n`, { mode: 0o600, flush: true });
    renameSync(fresh, join(folder, fileName));
    const fd = openSync(folder, "r");
    fsyncSync(fd);
    closeSync(fd);
  } catch (error) {
    const { kind, message } = toFault(error);
    throw coded(
      kind === "full" ? "session.no_space" : "session.write",
      `the session cannot be kept in ${folder}: ${message}`,
    );
  }
}

export function sessionIds(root: string): string[] {
  try {
    return readdirSync(sessionsFolder(root))
      .filter((name) => /^[0-9a-f-]{36}$/.test(name))
      .sort();
  } catch {
    return [];
  }
}

/** Hashes of the tool sets that sessions work with. */
export function usedToolSets(root: string): ReadonlySet<string> {
  const used = new Set<string>();
  for (const id of sessionIds(root)) {
    try {
      used.add(readSession(root, id).settings.toolsHash);
    } catch {
      // A damaged session runs nothing.
    }
  }
  return used;
}
