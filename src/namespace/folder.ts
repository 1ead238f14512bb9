/** What all folders of the tree have in common. */
import { Fault } from "../fault.ts";
import {
  DMDIR,
  type File,
  type Maybe,
  type OpenFile,
  type Qid,
  QTDIR,
  type Request,
  type Stat,
  type StatChange,
} from "../ninep/file.ts";
import type { Stamp } from "../session/live.ts";
import { mayNotEnd, permitted, refusal } from "./access.ts";
import type { Context, Site } from "./context.ts";
import { entry, type Row, TreeFile } from "./files.ts";

/** A file that can be told by its name. */
export interface Named extends File {
  readonly name: string;
}

export abstract class Folder implements Named {
  abstract readonly name: string;
  protected abstract readonly path: number;
  protected readonly mode: number = 0o755;

  constructor(
    readonly context: Context,
    private readonly folder?: File,
  ) {}

  /** When the list of children last changed. */
  protected abstract when(): Stamp;
  /** The child of that name; throws a Fault that says what there is instead. */
  protected abstract child(name: string, request: Request): File;
  protected abstract children(request: Request): File[];
  /** `mv`; a fixed folder cannot be renamed. */
  protected rename(_name: string): Maybe<void> {
    throw new Fault("denied", `${this.name} is a fixed name; only sessions and agents can be renamed`);
  }
  /** `rm -r`, when it gets to the folder itself. */
  protected end(): Maybe<void> {
    throw new Fault("denied", `${this.name} belongs to the tree`);
  }
  /** Throws a Fault when what the folder shows has been removed, or does not exist for who looks. */
  alive(): void {
    this.context.view.alive();
  }
  /** Permission bits as they are for who looks. */
  protected permissions(): number {
    return this.mode;
  }

  get qid(): Qid {
    return { type: QTDIR, vers: this.when().vers, path: this.path };
  }

  parent(): File | undefined {
    return this.folder;
  }

  stat(): Stat {
    this.alive();
    return entry(this.context, this.qid, this.name, (DMDIR | this.permissions()) >>> 0, this.when().mtime, 0);
  }

  walk(name: string, request: Request): File {
    this.alive();
    return this.child(name, request);
  }

  open(): OpenFile {
    this.alive();
    return {
      entries: (request) => {
        this.alive();
        return listing(this.children(request));
      },
    };
  }

  /** Why nothing in it can be removed or renamed. */
  refusal(): string | undefined {
    return this.context.view.agent && mayNotEnd;
  }

  wstat(change: StatChange): Maybe<void> {
    this.alive();
    if (change.name === undefined) return;
    if (this.context.view.agent) throw new Fault("denied", "a tool renames neither sessions nor agents");
    return this.rename(change.name);
  }

  remove(): Maybe<void> {
    this.alive();
    return this.end();
  }
}

/**
 * The file of that name in a table whose paths are the first ones of a block from `first` on. Throws a Fault that says what there is
 * instead where there is one, and not for who looks.
 */
export function fileOf<T>(
  rows: readonly Row<T>[],
  name: string,
  site: Site<T>,
  first: number,
  folder: File,
): TreeFile<T> | undefined {
  const index = rows.findIndex((row) => row.name === name);
  const row = rows[index];
  if (!row) return undefined;
  if (!permitted(row, site.standing)) {
    const verb = row.mode & 0o444 ? "read" : "write";
    throw new Fault("denied", refusal(name, verb, rows, site.standing));
  }
  return new TreeFile(row, first + index, site, folder, rows);
}

/** All files of the table that are there for who looks. */
export function filesOf<T>(
  rows: readonly Row<T>[],
  site: Site<T>,
  first: number,
  folder: File,
): TreeFile<T>[] {
  return rows.flatMap((row, index) =>
    permitted(row, site.standing) ? [new TreeFile(row, first + index, site, folder, rows)] : [],
  );
}

/** Sorted by name, in the order of code units; what has been removed meanwhile is left out. */
async function listing(children: File[]): Promise<Stat[]> {
  const stats = await Promise.all(children.map(unlessGone));
  return stats.filter((stat) => stat !== undefined).sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function unlessGone(file: File): Promise<Stat | undefined> {
  try {
    return await file.stat();
  } catch (error) {
    if (error instanceof Fault && error.kind === "missing") return undefined;
    throw error;
  }
}
