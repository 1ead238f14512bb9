/** `session/{sname}/`: one session, with its agents in `agent/`. */
import { isOwnKey } from "../config/secrets.ts";
import { Fault } from "../fault.ts";
import type { File, Maybe } from "../ninep/file.ts";
import type { LiveAgent, LiveSession, Stamp } from "../session/live.ts";
import { checkEnd, type Standing } from "./access.ts";
import { AgentFolder } from "./agent.ts";
import type { Context } from "./context.ts";
import type { Row } from "./files.ts";
import { Folder, fileOf, filesOf, type Named } from "./folder.ts";
import { JobsFolder } from "./job.ts";
import { clone } from "./new.ts";
import { plan } from "./plan.ts";
import { both, text } from "./reading.ts";
import { SiteFolder } from "./site-folder.ts";
import { remotewait } from "./wait.ts";
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

/** Without the lines that tools do not get as variables either. */
function withoutKeys(env: string): string {
  return env
    .split("\n")
    .filter((line) => !isOwnKey(line.slice(0, line.indexOf("="))))
    .join("\n");
}

const ctl = verbs<LiveSession>(
  (session, line) => session.checkCtl(line),
  (session, line) => session.ctl(line),
  ["stop", "kill"],
);

const known = { own: "r", child: "r" } as const;

export const sessionRows: readonly Row<LiveSession>[] = [
  {
    name: "name",
    mode: 0o644,
    tools: known,
    changes: ["name"],
    content: both(
      text((s) => s.name),
      requests((s, name) => s.rename(name)),
    ),
  },
  {
    name: "cfg",
    mode: 0o644,
    tools: known,
    changes: ["cfg", "name"],
    content: both(
      text((s) => s.cfg()),
      configure,
    ),
  },
  {
    name: "env",
    mode: 0o644,
    tools: { own: "r" },
    changes: ["env"],
    content: both(
      text((s, { view }) => (view.agent ? withoutKeys(s.env()) : s.env())),
      changeEnv,
    ),
  },
  { name: "ctl", mode: 0o200, tools: { child: "w" }, changes: [], content: ctl },
  {
    name: "remote",
    mode: 0o444,
    tools: known,
    changes: ["remote"],
    content: text((s) => s.remote.line),
  },
  { name: "remotewait", mode: 0o444, tools: known, changes: ["remote"], content: remotewait },
  { name: "plan", mode: 0o644, tools: { own: "rw", child: "r" }, changes: ["plan"], content: plan },
  {
    name: "lasterr",
    mode: 0o444,
    tools: known,
    changes: "content",
    content: text((s, { refusals }) => refusals.ofSession(s)),
  },
];

export const newAgent: Row<LiveSession> = {
  name: "new",
  mode: 0o666,
  tools: { own: "rw" },
  changes: ["children"],
  content: clone<LiveSession, LiveAgent>({
    template: (session, by) => session.agentTemplate(by),
    create: (session, keys, by) => session.createAgent(keys, by),
    amend: (session, agent, keys, by) => session.amendAgent(agent, keys, by),
  }),
};

/** Numbers in the session's block of qid paths. */
const paths = { folder: 0, agents: 1, short: 2, newAgent: 3, jobs: 4, firstFile: 8 } as const;

/** A session as a folder; `session/{sname}/` and `s/{sname}/` differ in the files that they show. */
export abstract class SessionSite extends SiteFolder<LiveSession> {
  protected readonly path: number;

  constructor(context: Context, target: LiveSession, folder: File, as: "folder" | "short") {
    super(context, target, folder);
    this.path = target.qid + paths[as];
  }

  get name(): string {
    return this.target.name;
  }

  get standing(): Standing | undefined {
    return this.context.view.session(this.target);
  }

  override alive(): void {
    super.alive();
    if (this.target.removed || !this.standing) throw new Fault("missing", "session removed");
  }

  protected when(): Stamp {
    return this.stamp(["name", "children"]);
  }

  protected file(name: string): Named | undefined {
    const folder = this.folders().find((one) => one.name === name);
    if (folder) return folder;
    return fileOf(sessionRows, name, this, this.target.qid + paths.firstFile, this);
  }

  protected files(): Named[] {
    return filesOf(sessionRows, this, this.target.qid + paths.firstFile, this);
  }

  /** Of a session that only lets itself be prompted, jobs are nobody's business. */
  protected folders(): Named[] {
    const jobs = new JobsFolder(this, this.target.qid + paths.jobs);
    return [new AgentsFolder(this), ...(this.standing === "sharing" ? [] : [jobs])];
  }

  protected override rename(name: string): Maybe<void> {
    return this.target.rename(name);
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
    return [...this.folders(), ...this.files()];
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
    const file = fileOf([newAgent], name, this.site, this.#firstFile, this);
    if (file) return file;
    const agent = this.site.target.agent(name);
    if (agent) return new AgentFolder(this.context, agent, this);
    throw new Fault("missing", `session ${this.site.name} has no agent ${name}`);
  }

  protected children(): File[] {
    const agents = this.site.target.agents();
    const files = filesOf([newAgent], this.site, this.#firstFile, this);
    return [...files, ...agents.map((agent) => new AgentFolder(this.context, agent, this))];
  }

  /** Nothing: the folder goes with its session, and `rm -r` gets to it before that. */
  protected override end(): void {
    checkEnd(this.site.standing);
  }

  protected override permissions(): number {
    return this.site.removable ? 0o755 : 0o555;
  }

  get #firstFile(): number {
    return this.site.target.qid + paths.newAgent;
  }
}
