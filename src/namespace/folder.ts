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
  /** Throws a Fault when what the folder shows has been removed. */
  alive(): void {}

  get qid(): Qid {
    return { type: QTDIR, vers: this.when().vers, path: this.path };
  }

  parent(): File | undefined {
    return this.folder;
  }

  stat(): Stat {
    this.alive();
    return entry(this.context, this.qid, this.name, (DMDIR | this.mode) >>> 0, this.when().mtime, 0);
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

  wstat(change: StatChange): Maybe<void> {
    this.alive();
    if (change.name !== undefined) return this.rename(change.name);
  }

  remove(): Maybe<void> {
    this.alive();
    return this.end();
  }
}

/** The files of a table whose paths are the first ones of a block from `first` on. */
export function fileOf<T>(
  rows: readonly Row<T>[],
  name: string,
  site: Site<T>,
  first: number,
  folder: File,
): TreeFile<T> | undefined {
  const index = rows.findIndex((row) => row.name === name);
  return index < 0 ? undefined : new TreeFile(rows[index]!, first + index, site, folder);
}

export function filesOf<T>(
  rows: readonly Row<T>[],
  site: Site<T>,
  first: number,
  folder: File,
): TreeFile<T>[] {
  return rows.map((row, index) => new TreeFile(row, first + index, site, folder));
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
