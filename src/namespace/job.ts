/** `job/{id}/`: one background job. */
import { Fault } from "../fault.ts";
import type { File } from "../ninep/file.ts";
import type { LiveJob, LiveSession, Stamp } from "../session/live.ts";
import { checkEnd, type Standing, type ToolAccess } from "./access.ts";
import type { Site } from "./context.ts";
import type { Row } from "./files.ts";
import { Folder, fileOf, filesOf } from "./folder.ts";
import { live, text } from "./reading.ts";
import { SiteFolder } from "./site-folder.ts";
import { jobwait } from "./wait.ts";
import { verbs } from "./writing.ts";

const ctl = verbs<LiveJob>(
  (job, line) => job.checkCtl(line),
  (job, line) => job.ctl(line),
  ["kill", "signal"],
);

const known: ToolAccess = { own: "r", child: "r" };
const told: ToolAccess = { own: "w" };

export const jobRows: readonly Row<LiveJob>[] = [
  { name: "cmd", mode: 0o444, tools: known, changes: [], content: text((job) => job.cmd()) },
  { name: "state", mode: 0o444, tools: known, changes: ["state"], content: text((job) => job.state) },
  { name: "statewait", mode: 0o444, tools: known, changes: ["state"], content: jobwait },
  { name: "out", mode: 0o444, tools: known, changes: "content", content: live((job) => job.out) },
  { name: "exit", mode: 0o444, tools: known, changes: ["state"], content: text((job) => job.exit()) },
  { name: "ctl", mode: 0o200, tools: told, changes: [], content: ctl },
];

/** Numbers in the job's block of qid paths: the folder, then its files. */
const folderPath = 0;
const firstFile = 1;

class JobFolder extends SiteFolder<LiveJob> {
  get name(): string {
    return this.target.id;
  }

  protected get path(): number {
    return this.target.qid + folderPath;
  }

  get standing(): Standing | undefined {
    const standing = this.context.view.session(this.target.session);
    return standing === "sharing" ? undefined : standing;
  }

  override alive(): void {
    super.alive();
    if (this.target.session.removed) throw new Fault("missing", "session removed");
    if (this.target.removed || !this.standing) throw new Fault("missing", "job removed");
  }

  protected when(): Stamp {
    return this.stamp(["state"]);
  }

  protected child(name: string): File {
    const file = fileOf(jobRows, name, this, this.target.qid + firstFile, this);
    if (file) return file;
    throw new Fault("missing", `a job has no file ${name}`);
  }

  protected children(): File[] {
    return filesOf(jobRows, this, this.target.qid + firstFile, this);
  }
}

/** `job/`: the background jobs of its session, which tools start. */
export class JobsFolder extends Folder {
  readonly name = "job";

  constructor(
    private readonly site: Site<LiveSession> & File,
    protected readonly path: number,
  ) {
    super(site.context, site);
  }

  override alive(): void {
    this.site.alive();
  }

  protected when(): Stamp {
    return this.site.stamp(["jobs"]);
  }

  protected child(name: string): File {
    const job = this.site.target.jobs.get(name);
    if (job) return new JobFolder(this.context, job, this);
    throw new Fault("missing", `session ${this.site.target.name} has no job ${name}`);
  }

  protected children(): File[] {
    return this.site.target.jobs.all().map((job) => new JobFolder(this.context, job, this));
  }

  /** Nothing, as for the folder of agents. */
  protected override end(): void {
    checkEnd(this.site.standing);
  }

  protected override permissions(): number {
    return this.site.removable ? 0o755 : 0o555;
  }
}
