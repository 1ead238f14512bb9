/** A session as the way to another host sees it. */
import type { Locator, RemoteOwner } from "./remote.ts";
import type { Session } from "./session.ts";

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
    keep: (locator: Locator) =>
      store.update((json) => {
        json.locator = locator;
      }),
    get attach() {
      return store.json.cfg.remoteSession;
    },
    say(text) {
      for (const agent of session.agents()) agent.inform({}, text);
    },
  };
}
