/** The methods of a host that need no session: what the bridge answers itself. */
import type { Handler } from "../protocol/peer.ts";
import type { Places } from "./place.ts";
import { readSession, sessionIds } from "./session-record.ts";

export function hostMethods(places: Places): Record<string, Handler> {
  return { "session.list": () => listed(places) };
}

function listed({ root }: Places): object[] {
  return sessionIds(root).flatMap((sessionId) => {
    try {
      const { client, created, used, cwd, sealed } = readSession(root, sessionId);
      return [{ sessionId, client, created, used, cwd, state: sealed ? "sealed" : "active" }];
    } catch {
      return [{ sessionId, state: "damaged" }];
    }
  });
}
