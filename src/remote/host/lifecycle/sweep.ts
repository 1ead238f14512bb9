/** `session.sweep`, `ollie-remote gc`, and what each daemon does when it starts: what is past its time goes. */
import { statSync } from "node:fs";
import type { SessionSwept } from "../../protocol/exports.ts";
import { type Places, sessionFolder } from "../places.ts";
import { readSession, sessionIds, usedToolSets } from "../session-record.ts";
import { ToolStore } from "../tools/methods.ts";
import { daemonOf, destroySession, removeGone } from "./destroy.ts";
import { bytesBelow } from "./sizes.ts";

export interface SweepOptions {
  /** Only tell. */
  dry?: boolean;
  /** Never this one. */
  except?: string;
  /** False: nobody reads the sizes, which cost a look at every file. */
  measure?: boolean;
  now?: number;
}

/** Sessions with their sizes, and what was freed. Nothing that fails stops the rest. */
export async function sweep(
  { base, root }: Places,
  { dry = false, except, measure = true, now = Date.now() }: SweepOptions = {},
): Promise<SessionSwept> {
  const problems: string[] = [];
  const attempt = async (what: string, work: () => unknown) => {
    try {
      await work();
    } catch (error) {
      problems.push(`${what}: ${(error as Error).message}`);
    }
  };
  const sessions: SessionSwept["sessions"] = [];
  let freed = 0;
  for (const sessionId of sessionIds(root)) {
    const folder = sessionFolder(root, sessionId);
    const bytes = measure ? await bytesBelow(folder) : 0;
    const fate = sessionId === except ? {} : fateOf(root, sessionId, now);
    sessions.push({ sessionId, bytes, ...fate });
    if (dry || !fate.expired) continue;
    await attempt(`session ${sessionId}`, async () => {
      freed += (await destroySession(root, { sessionId, confirm: sessionId })).bytes;
    });
  }
  const before = measure ? await bytesBelow(base) : 0;
  if (!dry) {
    await attempt("sessions", () => removeGone(root));
    await attempt("tools", () => new ToolStore(base, () => usedToolSets(root)).sweep(now));
  }
  const after = measure ? await bytesBelow(base) : 0;
  return { sessions, base: after, freed: freed + Math.max(0, before - after), problems };
}

/** Milliseconds for which a session that cannot be read is kept: somebody may want to look at what is in it. */
const damagedLife = 30 * 24 * 60 * 60 * 1000;

function fateOf(
  root: string,
  sessionId: string,
  now: number,
): Pick<SessionSwept["sessions"][number], "expired" | "until"> {
  const folder = sessionFolder(root, sessionId);
  let record: ReturnType<typeof readSession>;
  try {
    record = readSession(root, sessionId);
  } catch {
    const until = (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? now) + damagedLife;
    return now > until ? { expired: "damaged" } : { until };
  }
  const { created, used, policy } = record;
  const [oldest, idlest] = [created + policy.max_ttl_secs * 1000, used + policy.idle_ttl_secs * 1000];
  if (now > oldest) return { expired: "old", until: oldest };
  // Somebody may be attached, which only its daemon knows: it ends itself when its session is idle for too long.
  if (now > idlest && !daemonOf(folder, sessionId)) return { expired: "idle", until: idlest };
  return { until: Math.min(oldest, Math.max(idlest, now)) };
}
