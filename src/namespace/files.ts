/**
 * What a file of the tree is: one row of its folder's table. The row says everything there is to know about the file; a `TreeFile` is
 * that row in one place, made when a client walks there and holding nothing but where it is.
 */
import { Fault } from "../fault.ts";
import {
  type CloseReason,
  type File,
  type Maybe,
  type OpenFile,
  ORDWR,
  OWRITE,
  type Qid,
  QTFILE,
  type Request,
  type Stat,
  type StatChange,
} from "../ninep/file.ts";
import { andThen, failure } from "../ninep/maybe.ts";
import type { Stamp, Topic } from "../session/live.ts";
import { permitted, refusal, type ToolAccess } from "./access.ts";
import type { Context, Site } from "./context.ts";
import { RequestWriter } from "./writing.ts";

export interface Row<T> {
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  /** What of them tools have. */
  readonly tools?: ToolAccess;
  /** What moves mtime and version: these topics, or "content" where no topic tells and the content itself is compared. */
  readonly changes: readonly Topic[] | "content";
  readonly content: Content<T>;
  /** The length is worth remembering until something about the target changes. */
  readonly costly?: true;
}

/** What a kind of file does; see `reading.ts`, `writing.ts`, `wait.ts`, `prompt.ts`, `plan.ts`, `new.ts`. */
export interface Content<T> {
  look(site: Site<T>): Maybe<Look>;
  open(site: Site<T>, mode: number, request: Request): OpenFile;
  /** Twstat of the length. Without it, 0 is accepted and does nothing. */
  resize?(site: Site<T>, length: number, request: Request): Maybe<void>;
}

export interface Look {
  /** Bytes, as Tstat tells. */
  length: number;
  /** A number that differs when the content does. */
  print(): number;
}

const allTopics: readonly Topic[] = [
  "state",
  "chat",
  "queue",
  "turn",
  "usage",
  "cfg",
  "tools",
  "plan",
  "env",
  "name",
  "children",
  "remote",
  "jobs",
];

export class TreeFile<T> implements File {
  constructor(
    private readonly row: Row<T>,
    private readonly path: number,
    private readonly site: Site<T>,
    private readonly folder: File,
    /** The rows among which it stands. */
    private readonly table: readonly Row<T>[] = [row],
  ) {}

  get name(): string {
    return this.row.name;
  }

  get qid(): Qid {
    return { type: QTFILE, vers: this.#stamp().vers, path: this.path };
  }

  parent(): File {
    return this.folder;
  }

  stat(): Maybe<Stat> {
    this.site.alive();
    return andThen(this.#lookOrNothing(), (look) => {
      const { vers, mtime } = this.#stamp(look);
      const qid = { type: QTFILE, vers, path: this.path };
      return entry(this.site.context, qid, this.row.name, this.#mode(), mtime, look.length);
    });
  }

  open(mode: number, request: Request): Maybe<OpenFile> {
    this.site.alive();
    return this.#guarded(this.row.content.open(this.site, mode, request), mode);
  }

  refusal(verb: "read" | "written" | "executed"): string | undefined {
    if (this.site.standing === "owner" || verb === "executed") return undefined;
    return this.#refusal(verb === "read" ? "read" : "write");
  }

  remove(): void {
    this.site.alive();
    if (!this.site.removable) throw new Fault("denied", `${this.row.name} belongs to the tree`);
  }

  wstat(change: StatChange, request: Request): Maybe<void> {
    const { name, content } = this.row;
    this.site.alive();
    if (change.name !== undefined)
      throw new Fault("denied", `${name} is a fixed name; only sessions and agents can be renamed`);
    if (change.length === undefined) return;
    if (!(this.#mode() & 0o222))
      throw new Fault("denied", this.refusal("written") ?? `${name} can only be read`);
    if (content.resize) return content.resize(this.site, change.length, request);
    if (change.length !== 0) throw new Fault("invalid", `the length of ${name} can only be set to 0`);
  }

  #mode(): number {
    return permitted(this.row, this.site.standing);
  }

  #refusal(verb: "read" | "write"): string {
    return refusal(this.row.name, verb, this.table, this.site.standing);
  }

  /** What cannot be read (the config that it comes from is gone) still can be listed and removed; a read says what is wrong. */
  #lookOrNothing(): Maybe<Look> {
    const nothing = () => ({ length: 0, print: () => 0 });
    try {
      const look = this.#look();
      return look instanceof Promise ? look.catch(nothing) : look;
    } catch {
      return nothing();
    }
  }

  #look(): Maybe<Look> {
    const { content, costly } = this.row;
    if (!costly) return content.look(this.site);
    const { lengths } = this.site.context;
    const { vers } = this.site.stamp(allTopics);
    const known = lengths.get(this.path, vers);
    if (known !== undefined) return { length: known, print: () => vers };
    return andThen(content.look(this.site), (look) => {
      lengths.set(this.path, vers, look.length);
      return look;
    });
  }

  #stamp(look?: Look): Stamp {
    if (this.row.changes !== "content") return this.site.stamp(this.row.changes);
    const { noticed } = this.site.context;
    return look ? noticed.see(this.path, look.print()) : (noticed.last(this.path) ?? this.site.stamp([]));
  }

  /** An open file goes with its session: renamed with it, and gone with it. It is good for what a new one would be good for. */
  #guarded(open: OpenFile, mode: number): OpenFile {
    const { read, write, close } = open;
    return {
      read:
        read &&
        ((offset, count, request) => {
          this.#may("read");
          return read.call(open, offset, count, request);
        }),
      write:
        write &&
        ((offset, data, request) => {
          this.#may("write");
          return write.call(open, offset, data, request);
        }),
      close: close && ((reason, request) => this.#close(open, mode, reason, request)),
    };
  }

  #may(verb: "read" | "write"): void {
    this.site.alive();
    if (!(this.#mode() & (verb === "read" ? 0o444 : 0o222))) throw new Fault("denied", this.#refusal(verb));
  }

  /** What waits for the close to be carried out needs the same right as its write. */
  #close(open: OpenFile, mode: number, reason: CloseReason, request: Request): Maybe<void> {
    const { view } = this.site.context;
    const access = mode & 3;
    if (!view.agent || reason === "dropped" || (access !== OWRITE && access !== ORDWR))
      return open.close?.(reason, request);
    // All has been carried out, be it the end of the very session that the file lies in.
    if (open instanceof RequestWriter && !open.waits) return open.close(reason);
    const refused = failure(() => this.#may("write"));
    if (!refused) return open.close?.(reason, request);
    return andThen(open.close?.("dropped", request), () => {
      throw refused;
    });
  }
}

/** A Stat as every file and folder of the tree has it. `mtime` in milliseconds. */
export function entry(
  context: Context,
  qid: Qid,
  name: string,
  mode: number,
  mtime: number,
  length: number,
): Stat {
  const seconds = Math.floor(mtime / 1000);
  const { user } = context;
  return { qid, mode, atime: seconds, mtime: seconds, length, name, uid: user, gid: user, muid: user };
}
