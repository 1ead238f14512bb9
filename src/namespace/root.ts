/** The root: what there is to know about the server, and the folders of sessions. */
import help from "../../data/help.txt" with { type: "text" };
import { Fault } from "../fault.ts";
import type { File, Peer, Request } from "../ninep/file.ts";
import type { Runtime, Stamp } from "../session/live.ts";
import { fixedSite, rootPaths } from "./context.ts";
import { Elevate } from "./elevate.ts";
import type { Row } from "./files.ts";
import { Folder, fileOf, filesOf } from "./folder.ts";
import { text } from "./reading.ts";
import { Sessions, ShortSessions } from "./sessions.ts";

/** The server as one user sees it. */
interface Seen {
  runtime: Runtime;
  peer: Peer;
}

const rows: readonly Row<Seen>[] = [
  { name: "help", mode: 0o444, tools: { own: "r" }, changes: [], content: text(() => help) },
  {
    name: "version",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v) => v.runtime.version()),
  },
  {
    name: "lasterr",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v, { refusals }) => refusals.ofUser(v.peer)),
  },
  {
    name: "backends",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v, _, reading) => v.runtime.backends(reading)),
  },
  {
    name: "models",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v, _, reading) => v.runtime.models(reading)),
  },
  {
    name: "agents",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v) => v.runtime.agents()),
  },
  {
    name: "tools",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v) => v.runtime.tools()),
  },
  {
    name: "skills",
    mode: 0o444,
    tools: { own: "r" },
    changes: "content",
    content: text((v) => v.runtime.skills()),
  },
  { name: "metrics", mode: 0o444, changes: "content", content: text((v) => v.runtime.metrics()) },
];

/** Of the folders tools see those that say so. */
const folders = [
  { Folder: Elevate },
  { Folder: Sessions, tools: true },
  { Folder: ShortSessions, tools: true },
];

export class Root extends Folder {
  readonly name = "/";
  protected readonly path = rootPaths.root;
  protected override readonly mode = 0o555;

  protected when(): Stamp {
    return { vers: 0, mtime: this.context.started };
  }

  protected child(name: string, { peer }: Request): File {
    const found =
      this.#folders().find((folder) => folder.name === name) ??
      fileOf(rows, name, this.#site(peer), rootPaths.rootFiles, this);
    if (found) return found;
    throw new Fault("missing", `the root has no ${name}; help says what there is`);
  }

  protected children({ peer }: Request): File[] {
    return [...this.#folders(), ...filesOf(rows, this.#site(peer), rootPaths.rootFiles, this)];
  }

  #folders(): Folder[] {
    const { context } = this;
    const there = folders.filter((folder) => folder.tools || !context.view.agent);
    return there.map((folder) => new folder.Folder(context, this));
  }

  #site(peer: Peer) {
    return fixedSite<Seen>(this.context, { runtime: this.context.runtime, peer });
  }
}
