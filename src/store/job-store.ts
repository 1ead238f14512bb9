/**
 * What survives of a session's jobs, a folder each in `jobs/`:
 *
 *     last              the number that was given last
 *     N/job.json        what runs there and for whom; written before it runs
 *     N/told            its end has been told to whom it concerns
 *     N/…               what the supervisor keeps there, see src/exec/job/folder.ts
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readExit, readFamily } from "../exec/job/folder.ts";
import { lookAt } from "../exec/job/watch.ts";
import { toFault } from "../fault.ts";
import { fileMode, folderMode, isErrno } from "./disk.ts";
import type { Leftovers } from "./leftovers.ts";
import { Serial } from "./serial.ts";

/** Fields of a newer version are kept. */
const schema = z.looseObject({
  v: z.literal(1),
  tool: z.string(),
  command: z.string(),
  /** Id of the agent that started it, and how long its chat was then, in bytes. */
  agent: z.string(),
  chat: z.number(),
  notify: z.boolean(),
  /** Milliseconds since 1970. */
  started: z.number(),
  /** As `Supervisor`; absent where it runs on another host. */
  supervisor: z.object({ pid: z.int().positive(), start: z.string(), boot: z.string() }).optional(),
  /** Its operation there. */
  op: z.string().optional(),
});
export type JobRecord = z.infer<typeof schema>;

const folderName = "jobs";
const lastFile = "last";
const recordFile = "job.json";
const toldFile = "told";

/** The jobs of all sessions of a state folder that run, whether a server does or not. What cannot be read is left out. */
export function runningJobs(stateFolder: string): { session: string; id: string; record: JobRecord }[] {
  const sessions = join(stateFolder, "sessions");
  return namesIn(sessions).flatMap((session) =>
    idsIn(join(sessions, session, folderName)).flatMap((id) => {
      const folder = join(sessions, session, folderName, id);
      try {
        const record = readRecord(folder);
        const here = record.supervisor;
        const ended = here ? lookAt(folder, here) : readExit(folder);
        return ended ? [] : [{ session, id, record }];
      } catch {
        return [];
      }
    }),
  );
}

export class JobStore {
  /** One at a time gets a number. */
  readonly #numbers = new Serial();

  constructor(
    private readonly session: { readonly folder: string; readonly owner: { readonly leftovers: Leftovers } },
  ) {}

  /** Absolute path of a job's folder, as long as the session has its present name. */
  folder(id: string): string {
    return join(this.#parent, id);
  }

  get #parent(): string {
    return join(this.session.folder, folderName);
  }

  /** The jobs on disk, oldest first, and a sentence for each that cannot be read. What never began to run is removed. */
  load(): { jobs: { id: string; record: JobRecord }[]; report: string[] } {
    const report: string[] = [];
    const jobs = idsIn(this.#parent).flatMap((id) => {
      const record = this.#read(id, report);
      return record ? [{ id, record }] : [];
    });
    return { jobs, report };
  }

  /** A folder for a new job, with a number that no other job of the session has had. */
  create(): Promise<string> {
    return this.#numbers.run(async () => {
      const parent = this.#parent;
      try {
        mkdirSync(parent, { recursive: true, mode: folderMode });
        const id = String(Math.max(this.#last(), ...idsIn(parent).map(Number)) + 1);
        await this.session.owner.leftovers.replace(join(parent, lastFile), `${id}\n`);
        mkdirSync(this.folder(id), { mode: folderMode });
        return id;
      } catch (error) {
        throw toFault(error, "a job could not be made");
      }
    });
  }

  /** Durable when it resolves. */
  write(id: string, record: JobRecord): Promise<void> {
    return this.session.owner.leftovers.replace(
      join(this.folder(id), recordFile),
      `${JSON.stringify(record)}\n`,
    );
  }

  wasTold(id: string): boolean {
    return namesIn(this.folder(id)).includes(toldFile);
  }

  markTold(id: string): void {
    writeFileSync(join(this.folder(id), toldFile), "", { mode: fileMode });
  }

  /** It is gone at once, also after a crash; its files are deleted later. */
  remove(id: string): Promise<void> {
    return this.session.owner.leftovers.discard(this.folder(id));
  }

  /** A job that has not come to run. */
  abandon(id: string): void {
    rmSync(this.folder(id), { recursive: true, force: true });
  }

  #last(): number {
    try {
      return Number.parseInt(readFileSync(join(this.#parent, lastFile), "utf8"), 10) || 0;
    } catch (error) {
      if (isErrno(error, "ENOENT")) return 0;
      throw error;
    }
  }

  #read(id: string, report: string[]): JobRecord | undefined {
    const folder = this.folder(id);
    try {
      return readRecord(folder);
    } catch (error) {
      if (isErrno(error, "ENOENT") && !readFamily(folder)) this.abandon(id);
      else
        report.push(
          `${join(folder, recordFile)}: ${toFault(error, "it makes no sense").message.replace(/\s+/g, " ")}`,
        );
      return undefined;
    }
  }
}

function readRecord(folder: string): JobRecord {
  return schema.parse(JSON.parse(readFileSync(join(folder, recordFile), "utf8")));
}

function idsIn(folder: string): string[] {
  return namesIn(folder)
    .filter((name) => /^[1-9]\d*$/.test(name))
    .sort((a, b) => Number(a) - Number(b));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw toFault(error, `${folder} cannot be read`);
  }
}
