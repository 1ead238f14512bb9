/** The end of what a session has on another host. */
import type { Logger } from "pino";
import type { SessionRemote } from "./remote.ts";

/** Milliseconds for which a host is tried whose session is to be removed. */
const limit = 60_000;

/** Ends the session there, if ollie has made it. For the background, since that host may be away. Never rejects. */
export async function endThere(remote: SessionRemote, name: string, log: Logger): Promise<void> {
  const { host } = remote.hands;
  try {
    await remote.destroy(AbortSignal.timeout(limit));
  } catch (error) {
    log.warn(
      { err: error, host },
      `what session ${name} has on ${host} could not be removed; the host does that when its time is over`,
    );
  }
  await remote.close().catch(() => {});
}
