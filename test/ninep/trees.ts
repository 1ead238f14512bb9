/** Files with a will of their own. */
import type { CloseReason, File, OpenFile, Qid, Request, Stat, StatChange } from "../../src/ninep/file.ts";
import { DMDIR, QTDIR } from "../../src/ninep/file.ts";

let paths = 0;

/** A file that does nothing; tests give it what they need. */
export class TestFile implements File {
  readonly qid: Qid = { type: 0, vers: 0, path: paths++ };

  constructor(
    readonly name: string,
    readonly opened: OpenFile = {},
    public mode = 0o666,
  ) {}

  directory?: TestDir;

  stat(): Stat | Promise<Stat> {
    const { name, qid, mode } = this;
    return { qid, mode, atime: 1, mtime: 2, length: 0, name, uid: "u", gid: "g", muid: "m" };
  }

  parent(): TestDir | undefined {
    return this.directory;
  }

  open(_mode: number, _request: Request): OpenFile | Promise<OpenFile> {
    return this.opened;
  }
}

export class TestDir extends TestFile {
  override readonly qid: Qid = { type: QTDIR, vers: 0, path: paths++ };
  constructor(
    name: string,
    readonly children: File[] & { name?: string }[],
  ) {
    super(name, {}, (DMDIR | 0o777) >>> 0);
    for (const child of children) (child as TestFile).directory = this;
  }

  walk(name: string): File | undefined | Promise<File | undefined> {
    return this.children.find((child) => (child as TestFile).name === name);
  }
}

/** The same tree, answering everything later: nothing may depend on a tree that is quick. */
export class Slow implements File {
  constructor(private readonly file: File) {}

  get qid(): Qid {
    return this.file.qid;
  }

  async stat(): Promise<Stat> {
    await Bun.sleep(0);
    return await this.file.stat();
  }

  async walk(name: string, request: Request): Promise<File | undefined> {
    await Bun.sleep(0);
    const found = await this.file.walk?.(name, request);
    return found && new Slow(found);
  }

  parent(): File | undefined {
    const parent = this.file.parent?.();
    return parent && new Slow(parent);
  }

  async open(mode: number, request: Request): Promise<OpenFile> {
    await Bun.sleep(0);
    return slowOpen(await this.file.open(mode, request));
  }

  async create(
    name: string,
    perm: number,
    mode: number,
    request: Request,
  ): Promise<{ file: File; open: OpenFile }> {
    await Bun.sleep(0);
    const { file, open } = await this.file.create!(name, perm, mode, request);
    return { file: new Slow(file), open: slowOpen(open) };
  }

  async remove(request: Request): Promise<void> {
    await Bun.sleep(0);
    await this.file.remove!(request);
  }

  async wstat(change: StatChange, request: Request): Promise<void> {
    await Bun.sleep(0);
    await this.file.wstat!(change, request);
  }
}

function slowOpen(open: OpenFile): OpenFile {
  const { read, write, entries, close } = open;
  const later =
    <A extends unknown[], R>(method: (...args: A) => R) =>
    async (...args: A) => {
      await Bun.sleep(0);
      return await method.apply(open, args);
    };
  return {
    ...(read && { read: later(read) }),
    ...(write && { write: later(write) }),
    ...(entries && { entries: later(entries) }),
    ...(close && { close: later(close) }),
  } as OpenFile;
}

/** Answers nothing before it is told to, and can be interrupted. */
export class Blocking implements OpenFile {
  /** One entry for every read that waits. */
  readonly waiting: { resolve(data: Uint8Array): void; reject(error: Error): void }[] = [];
  readonly closed: CloseReason[] = [];
  interrupted = 0;

  read(_offset: number, _count: number, { signal }: Request): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      signal.addEventListener("abort", () => {
        this.interrupted++;
        reject(signal.reason);
      });
    });
  }

  answer(text: string): void {
    this.waiting.shift()!.resolve(Buffer.from(text));
  }

  close(reason: CloseReason): void {
    this.closed.push(reason);
  }
}
