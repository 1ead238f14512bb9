/** `session/{sname}/`: one session, with its agents in `agent/`. */
import { Fault } from "../fault.ts";
import type { File, Maybe } from "../ninep/file.ts";
import type { LiveAgent, LiveSession, Stamp, Topic } from "../session/live.ts";
import { AgentFolder } from "./agent.ts";
import { type Context, newest, type Site } from "./context.ts";
import { type Row, TreeFile } from "./files.ts";
import { Folder, fileOf, filesOf, type Named } from "./folder.ts";
import { clone } from "./new.ts";
import { plan } from "./plan.ts";
import { both, text } from "./reading.ts";
import { parseEnv, parseKeys } from "./words.ts";
import { requests, verbs } from "./writing.ts";

const configure = requests<LiveSession>(async (session, words) => {
  const keys = parseKeys(words);
  if (keys.size === 0) throw new Fault("invalid", "no key=value given");
  await session.configure(keys);
});

const changeEnv = requests<LiveSession>(async (session, assignments) => {
  const keys = parseEnv(assignments);
  if (keys.size === 0) throw new Fault("invalid", "no KEY=VALUE given");
  await session.changeEnv(keys);
});

const ctl = verbs<LiveSession>(
  (session, line) => session.checkCtl(line),
  (session, line) => session.ctl(line),
);

export const sessionRows: readonly Row<LiveSession>[] = [
  {
    name: "name",
    mode: 0o644,
    changes: ["name"],
    content: both(
      text((s) => s.name),
      requests((s, name) => s.rename(name)),
    ),
  },
  {
    name: "cfg",
    mode: 0o644,
    changes: ["cfg", "name"],
    content: both(
      text((s) => s.cfg()),
      configure,
    ),
  },
  {
    name: "env",
    mode: 0o644,
    changes: ["env"],
    content: both(
      text((s) => s.env()),
      changeEnv,
    ),
  },
  { name: "ctl", mode: 0o200, changes: [], content: ctl },
  { name: "plan", mode: 0o644, changes: ["plan"], content: plan },
  {
    name: "lasterr",
    mode: 0o444,
    changes: "content",
    content: text((s, { refusals }) => refusals.ofSession(s)),
  },
];

const newAgent: Row<LiveSession> = {
  name: "new",
  mode: 0o666,
  changes: ["children"],
  content: clone<LiveSession, LiveAgent>({
    template: (session) => session.agentTemplate(),
    create: (session, keys) => session.createAgent(keys),
    amend: (session, agent, keys) => session.amendAgent(agent, keys),
  }),
};

/** Numbers in the session's block of qid paths. */
const paths = { folder: 0, agents: 1, short: 2, newAgent: 3, firstFile: 8 } as const;

/** A session as a folder; `session/{sname}/` and `s/{sname}/` differ in the files that they show. */
export abstract class SessionSite extends Folder implements Site<LiveSession> {
  readonly removable = true;
  protected readonly path: number;

  constructor(
    context: Context,
    readonly target: LiveSession,
    folder: File,
    as: "folder" | "short",
  ) {
    super(context, folder);
    this.path = target.qid + paths[as];
  }

  get name(): string {
    return this.target.name;
  }

  override alive(): void {
    if (this.target.removed) throw new Fault("missing", "session removed");
  }

  stamp(topics: readonly Topic[]): Stamp {
    return newest(this.target, topics);
  }

  protected when(): Stamp {
    return this.stamp(["name", "children"]);
  }

  protected file(name: string): Named | undefined {
    if (name === "agent") return this.agentsFolder();
    return fileOf(sessionRows, name, this, this.target.qid + paths.firstFile, this);
  }

  protected files(): Named[] {
    return filesOf(sessionRows, this, this.target.qid + paths.firstFile, this);
  }

  protected agentsFolder(): Named {
    return new AgentsFolder(this);
  }

  protected override rename(name: string): Maybe<void> {
    return this.target.rename(name);
  }

  protected override end(): Maybe<void> {
    return this.target.remove();
  }
}

export class SessionFolder extends SessionSite {
  constructor(context: Context, session: LiveSession, folder: File) {
    super(context, session, folder, "folder");
  }

  protected child(name: string): File {
    const file = this.file(name);
    if (file) return file;
    throw new Fault("missing", `a session has no file ${name}`);
  }

  protected children(): File[] {
    return [this.agentsFolder(), ...this.files()];
  }
}

/** `agent/`: what its session's agents are made in. */
class AgentsFolder extends Folder {
  readonly name = "agent";
  protected readonly path: number;

  constructor(private readonly site: SessionSite) {
    super(site.context, site);
    this.path = site.target.qid + paths.agents;
  }

  override alive(): void {
    this.site.alive();
  }

  protected when(): Stamp {
    return this.site.stamp(["children"]);
  }

  protected child(name: string): File {
    if (name === newAgent.name) return this.#new();
    const agent = this.site.target.agent(name);
    if (agent) return new AgentFolder(this.context, agent, this);
    throw new Fault("missing", `session ${this.site.name} has no agent ${name}`);
  }

  protected children(): File[] {
    const agents = this.site.target.agents();
    return [this.#new(), ...agents.map((agent) => new AgentFolder(this.context, agent, this))];
  }

  /** Nothing: the folder goes with its session, and `rm -r` gets to it before that. */
  protected override end(): void {}

  #new(): File {
    return new TreeFile(newAgent, this.site.target.qid + paths.newAgent, this.site, this);
  }
}
