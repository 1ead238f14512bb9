/** `lasterr`: the last refused request, since a mount can show only an errno. */
import type { NineError } from "../ninep/errors.ts";
import type { Peer } from "../ninep/file.ts";
import type { LiveAgent, LiveSession } from "../session/live.ts";
import { View } from "./access.ts";

export class Refusals {
  /** By uid, as the kernel tells it; those without one share an entry. */
  readonly #ofUser = new Map<number | undefined, string>();
  readonly #ofTools = new WeakMap<LiveAgent, string>();
  readonly #ofSession = new WeakMap<LiveSession, string>();

  /** @param mask takes secrets out of a text: the server's, and those of the session with that name */
  constructor(
    private readonly session: (name: string) => LiveSession | undefined,
    private readonly mask: (text: string, session: string | undefined) => string = (text) => text,
  ) {}

  /** `path` is the path that was asked for, from the root. */
  note(peer: Peer, path: string, error: NineError): void {
    const names = path.split("/").filter((name) => name !== "");
    const [top, name] = names;
    const session = (top === "session" || top === "s") && name ? this.session(name) : undefined;
    const words = this.mask(`/${names.join("/")}: ${fullWords(error)}`, session?.name);
    const line = `${new Date().toISOString()} ${words}`.replaceAll("\n", " ");
    const agent = peer.as as LiveAgent | undefined;
    if (agent) this.#ofTools.set(agent, line);
    else this.#ofUser.set(peer.uid, line);
    // What a tool tries on a session that does not exist for it is nothing for those who look into that session.
    if (session && new View(agent).session(session)) this.#ofSession.set(session, line);
  }

  /** One line, or nothing while nothing was refused. The tools of an agent have one of their own. */
  ofUser({ as, uid }: Peer): string {
    return (as ? this.#ofTools.get(as as LiveAgent) : this.#ofUser.get(uid)) ?? "";
  }

  ofSession(session: LiveSession): string {
    return this.#ofSession.get(session) ?? "";
  }
}

/** The standard phrase and the whole sentence after it, which the error itself holds cut to what clients can take. */
function fullWords({ message, cause }: NineError): string {
  if (!(cause instanceof Error) || cause.message === "") return message;
  const [standard] = message.split(": ", 1);
  return `${standard}: ${cause.message}`;
}
