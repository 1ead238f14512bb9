/** `session/` and `s/`: all sessions, what makes a new one, and the index. */
import { Fault } from "../fault.ts";
import type { File } from "../ninep/file.ts";
import type { LiveSession, Runtime, Stamp } from "../session/live.ts";
import type { View } from "./access.ts";
import { type Context, fixedSite, rootPaths } from "./context.ts";
import type { Row } from "./files.ts";
import { Folder, fileOf, filesOf } from "./folder.ts";
import { clone } from "./new.ts";
import { text } from "./reading.ts";
import { SessionFolder } from "./session.ts";
import { ShortFolder } from "./short.ts";

const rows: readonly Row<Runtime>[] = [
  {
    name: "new",
    mode: 0o666,
    tools: { own: "rw" },
    changes: [],
    content: clone<Runtime, LiveSession>({
      template: (runtime, by) => runtime.sessionTemplate(by),
      create: (runtime, keys, by) => runtime.createSession(keys, by),
      amend: (runtime, session, keys, by) => runtime.amendSession(session, keys, by),
    }),
  },
  { name: "idx", mode: 0o444, tools: { own: "r" }, changes: "content", content: text(index) },
];

/**
 * One line an agent: session, agent, state, backend, model, cwd. Nothing in a field may look like a separator. What a session is that
 * only lets itself be prompted is not told.
 */
function index(runtime: Runtime, { view }: Context): string {
  const sessions = visible(runtime, view).sort((a, b) => (a.name < b.name ? -1 : 1));
  const agents = sessions.flatMap((session) => session.agents());
  const line = agents.map((agent) => {
    const untold = { backend: "?", model: "?", cwd: "?" };
    const { backend, model, cwd } = view.of(agent) === "sharing" ? untold : agent.describe();
    const fields = [agent.session.name, agent.name, agent.state, backend, model, cwd];
    return fields.map((field) => field.replace(/[\t\n]/g, "?")).join("\t");
  });
  return line.join("\n");
}

function visible(runtime: Runtime, view: View): LiveSession[] {
  return runtime.sessions().filter((session) => view.session(session));
}

abstract class SessionList extends Folder {
  protected abstract show(session: LiveSession): File;

  protected when(): Stamp {
    return this.context.runtime.stamp("children");
  }

  protected child(name: string): File {
    const session = this.context.runtime.session(name);
    if (session && this.context.view.session(session)) return this.show(session);
    const file = fileOf(rows, name, this.#site(), rootPaths.sessionFiles, this);
    if (file) return file;
    throw new Fault("missing", `no session ${name}; session/idx lists them all`);
  }

  protected children(): File[] {
    const files = filesOf(rows, this.#site(), rootPaths.sessionFiles, this);
    const { runtime, view } = this.context;
    return [...files, ...visible(runtime, view).map((session) => this.show(session))];
  }

  #site() {
    return fixedSite(this.context, this.context.runtime);
  }
}

export class Sessions extends SessionList {
  readonly name = "session";
  protected readonly path = rootPaths.sessions;

  protected show(session: LiveSession): File {
    return new SessionFolder(this.context, session, this);
  }
}

export class ShortSessions extends SessionList {
  readonly name = "s";
  protected readonly path = rootPaths.short;
  protected override readonly mode = 0o555;

  /** A session lives in `session/`: there `..` leads, and there it is removed and renamed, whichever way it was found. */
  protected show(session: LiveSession): File {
    return new ShortFolder(this.context, session, new Sessions(this.context, this.parent()));
  }
}
