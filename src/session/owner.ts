/** A session as the way to another host sees it. */
import type { Locator, RemoteOwner } from "./remote.ts";
import type { Session } from "./session.ts";
import { tap } from "./tap.ts";

/** Undefined while its tools run on this machine. */
export function ownerOf(session: Session): RemoteOwner | undefined {
  const { store } = session;
  const target = session.target;
  if (!target) return undefined;
  return {
    get name() {
      return session.name;
    },
    target,
    get cwd() {
      return store.json.cfg.cwd ?? "";
    },
    env: () => store.json.env,
    sandbox: () => store.json.cfg.sandbox ?? "",
    mask: (text) => store.secrets.mask(text),
    get locator() {
      return store.json.locator;
    },
    async keep(locator: Locator) {
      const kept = store.update((json) => {
        json.locator = locator;
      });
      // A session that has been removed is reached once more, to end it there; nothing of it is on disk to be written to.
      await kept.catch((error) => {
        if (!session.removed) throw error;
      });
    },
    get attach() {
      return store.json.cfg.remoteSession;
    },
    say(text) {
      if (session.removed) return;
      for (const agent of session.agents()) agent.inform({}, text);
    },
    inspect: tap(session),
  };
}
