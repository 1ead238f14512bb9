/** Files and directories in memory: the example of a tree for `server.ts`, and what its conformance is tested on. */
import { NineError, phrase } from "./errors.ts";
import {
  DMAPPEND,
  DMDIR,
  type File,
  type OpenFile,
  OTRUNC,
  type Qid,
  QTDIR,
  type Stat,
  type StatChange,
} from "./file.ts";

export interface RamfsOptions {
  /** Owner, group and last writer of everything. */
  user?: string;
  /** Most bytes of one file: a write at a huge offset must not become an allocation. */
  maxLength?: number;
}

/** An empty tree; its root is what a Server serves. */
export function ramfs(options: RamfsOptions = {}): RamFile {
  const tree: Tree = {
    user: options.user ?? "ram",
    maxLength: options.maxLength ?? 256 * 1024 * 1024,
    paths: 0,
  };
  return new RamFile(tree, "/", (DMDIR | 0o777) >>> 0);
}

interface Tree {
  user: string;
  maxLength: number;
  /** Counts qid.paths: none is given twice. */
  paths: number;
}

const now = () => Math.floor(Date.now() / 1000);

export class RamFile implements File {
  private readonly path: number;
  private vers = 0;
  private atime = now();
  private mtime = this.atime;
  private bytes = Buffer.alloc(0);
  private length = 0;
  private readonly children = new Map<string, RamFile>();

  constructor(
    private readonly tree: Tree,
    private name: string,
    private mode: number,
    private directory?: RamFile,
  ) {
    this.path = tree.paths++;
  }

  get qid(): Qid {
    return { type: this.mode >>> 24, vers: this.vers, path: this.path };
  }

  stat(): Stat {
    const { name, mode, atime, mtime, length, qid } = this;
    const { user } = this.tree;
    return { qid, mode, atime, mtime, length, name, uid: user, gid: user, muid: user };
  }

  walk(name: string): RamFile | undefined {
    return this.children.get(name);
  }

  parent(): RamFile | undefined {
    return this.directory;
  }

  open(mode: number): OpenFile {
    if (mode & OTRUNC) this.truncate(0);
    if (this.isDirectory) return { entries: () => [...this.children.values()].map((child) => child.stat()) };
    return {
      read: (offset, count) => this.read(offset, count),
      write: (offset, data) => this.write(offset, data),
    };
  }

  create(name: string, perm: number, mode: number): { file: RamFile; open: OpenFile } {
    const file = this.add(name, perm);
    return { file, open: file.open(mode) };
  }

  /** Makes a file, or with DMDIR a directory, without opening it. */
  add(name: string, perm: number, content: string | Uint8Array = ""): RamFile {
    if (this.children.has(name)) throw new NineError(phrase.exists);
    const file = new RamFile(this.tree, name, perm, this);
    if (content.length > 0) file.write(0, Buffer.from(content as Uint8Array));
    this.children.set(name, file);
    this.touch();
    return file;
  }

  remove(): void {
    if (this.children.size > 0) throw new NineError("directory is not empty");
    this.directory!.children.delete(this.name);
    this.directory!.touch();
  }

  wstat(change: StatChange): void {
    const { name, length } = change;
    if (name !== undefined && this.directory!.children.has(name)) throw new NineError(phrase.exists);
    if (length !== undefined) this.checkLength(length);
    // Everything has been checked: from here on nothing fails.
    if (name !== undefined) this.rename(name);
    if (length !== undefined) this.truncate(length);
    if (change.mode !== undefined) this.mode = change.mode;
    if (change.mtime !== undefined) this.mtime = change.mtime;
    if (change.atime !== undefined) this.atime = change.atime;
  }

  private get isDirectory(): boolean {
    return ((this.mode >>> 24) & QTDIR) !== 0;
  }

  private read(offset: number, count: number): Uint8Array {
    this.atime = now();
    return this.bytes.subarray(Math.min(offset, this.length), Math.min(offset + count, this.length));
  }

  private write(offset: number, data: Uint8Array): number {
    const at = this.mode & DMAPPEND ? this.length : offset;
    const end = at + data.length;
    this.checkLength(end);
    if (end > this.length) this.resize(end);
    this.bytes.set(data, at);
    this.touch();
    return data.length;
  }

  private checkLength(length: number): void {
    const { maxLength } = this.tree;
    if (length > maxLength) throw new NineError(phrase.noSpace, `a file has at most ${maxLength} bytes`);
  }

  private truncate(length: number): void {
    this.resize(length);
    this.touch();
  }

  /** Bytes between the old and the new end read as zero. */
  private resize(length: number): void {
    if (length > this.bytes.length) {
      const larger = Buffer.alloc(Math.max(length, Math.min(2 * this.bytes.length, this.tree.maxLength)));
      larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
    } else if (length < this.length) {
      this.bytes.fill(0, length, this.length);
    }
    this.length = length;
  }

  private rename(name: string): void {
    const { children } = this.directory!;
    children.delete(this.name);
    this.name = name;
    children.set(name, this);
    this.directory!.touch();
  }

  private touch(): void {
    this.vers = (this.vers + 1) >>> 0;
    this.mtime = now();
  }
}
