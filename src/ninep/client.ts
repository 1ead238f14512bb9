/** A 9P2000 client over any byte stream. `dial.ts` makes one from an address. */
import { pieces, writeAll } from "./client/content.ts";
import { Fid, type Session } from "./client/fid.ts";
import { Pool } from "./client/pool.ts";
import { Rpc } from "./client/rpc.ts";
import { NineError, phrase } from "./errors.ts";
import { DMDIR, OREAD, OTRUNC, OWRITE, type StatChange } from "./file.ts";
import { type Dir, NOFID, Tattach, Tversion } from "./messages.ts";
import type { ByteStream } from "./stream.ts";

export { Fid } from "./client/fid.ts";
export type { Dir } from "./messages.ts";

export interface ClientOptions {
  /** Largest message to ask for, in bytes; the server may want less. */
  msize?: number;
  uname?: string;
  aname?: string;
  /** Milliseconds that the server may take to answer at all; 10 s if not given. */
  patience?: number;
}

const smallestMsize = 256;

/**
 * An attached tree. Paths are names separated by "/"; the root is "" or "/". Every method rejects with the server's error as a
 * NineError, "Broken pipe" when the connection is lost, "Interrupted system call" when its signal is aborted.
 */
export class Client implements Session {
  readonly fids = new Pool(NOFID);
  /** Stands on the root. Walk from it, do not open it. */
  readonly root: Fid;

  private constructor(
    readonly rpc: Rpc,
    readonly msize: number,
    qid: Fid["qid"],
    root: number,
  ) {
    while (this.fids.take() !== root);
    this.root = new Fid(this, root, qid);
  }

  /** Agrees on msize and version and attaches. A stream that fails at it is closed. */
  static async open(stream: ByteStream, options: ClientOptions = {}): Promise<Client> {
    const rpc = new Rpc(stream);
    const patience = options.patience ?? 10_000;
    const timer = setTimeout(() => {
      rpc.close(new NineError(phrase.timeout, `no answer in ${patience} ms, is it a 9P server?`));
    }, patience);
    try {
      const asked = options.msize ?? 1024 * 1024;
      const { msize, version } = await rpc.call(Tversion, { msize: asked, version: "9P2000" });
      if (version !== "9P2000") throw new NineError(phrase.proto, `the server speaks ${version}, not 9P2000`);
      if (msize > asked || msize < smallestMsize) {
        throw new NineError(
          phrase.proto,
          `the server wants messages of ${msize} bytes, ${asked} were offered`,
        );
      }
      rpc.msize = msize;
      const { uname = "", aname = "" } = options;
      const { qid } = await rpc.call(Tattach, { fid: 0, afid: NOFID, uname, aname });
      return new Client(rpc, msize, qid, 0);
    } catch (error) {
      rpc.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Settles when the connection has ended, whoever ended it. */
  get ended(): Promise<void> {
    return this.rpc.ended;
  }

  /** Ends the connection; what is still waiting rejects. */
  close(): void {
    this.rpc.close();
  }

  /** A new fid, not open. */
  walk(path: string, signal?: AbortSignal): Promise<Fid> {
    return this.root.walk(names(path), signal);
  }

  /** A new fid, open. */
  async openFile(path: string, mode: number = OREAD, signal?: AbortSignal): Promise<Fid> {
    const fid = await this.walk(path, signal);
    return orClunk(fid, () => fid.open(mode, signal));
  }

  /** Makes a file, or with DMDIR in `perm` a directory, and opens it. */
  async create(path: string, perm: number, mode: number = OREAD, signal?: AbortSignal): Promise<Fid> {
    const all = names(path);
    const name = all.pop();
    if (name === undefined) throw new NineError(phrase.exists, "the root is there already");
    const fid = await this.root.walk(all, signal);
    return orClunk(fid, () => fid.create(name, perm, mode, signal));
  }

  async mkdir(path: string, perm = 0o777, signal?: AbortSignal): Promise<void> {
    const fid = await this.create(path, (DMDIR | perm) >>> 0, OREAD, signal);
    await fid.clunk();
  }

  /** The content up to the end of the file, in pieces as they come. Leaving the loop closes the file. */
  async *readStream(path: string, signal?: AbortSignal): AsyncGenerator<Buffer, void> {
    const fid = await this.openFile(path, OREAD, signal);
    try {
      for await (const piece of pieces(fid, 0, signal)) if (piece.length > 0) yield piece;
    } finally {
      await fid.clunk().catch(() => {});
    }
  }

  async readFile(path: string, signal?: AbortSignal): Promise<Buffer> {
    const all: Buffer[] = [];
    for await (const piece of this.readStream(path, signal)) all.push(piece);
    return Buffer.concat(all);
  }

  async readText(path: string, signal?: AbortSignal): Promise<string> {
    return (await this.readFile(path, signal)).toString("utf8");
  }

  /**
   * Replaces the content of a file that is there. Rejects also when the server fails to close the file: some files act on what was
   * written only then.
   */
  async writeFile(path: string, data: string | Uint8Array, signal?: AbortSignal): Promise<void> {
    const fid = await this.openFile(path, OWRITE | OTRUNC, signal);
    await orClunk(fid, () => writeAll(fid, typeof data === "string" ? Buffer.from(data) : data, 0, signal));
    await fid.clunk();
  }

  /** Adds to the end of a file. */
  async appendFile(path: string, data: string | Uint8Array, signal?: AbortSignal): Promise<void> {
    const fid = await this.openFile(path, OWRITE, signal);
    await orClunk(fid, async () => {
      const { length } = await fid.stat(signal);
      await writeAll(fid, typeof data === "string" ? Buffer.from(data) : data, Number(length), signal);
    });
    await fid.clunk();
  }

  async readDir(path: string, signal?: AbortSignal): Promise<Dir[]> {
    const fid = await this.openFile(path, OREAD, signal);
    const entries = await orClunk(fid, () => fid.entries(signal));
    await fid.clunk();
    return entries;
  }

  stat(path: string, signal?: AbortSignal): Promise<Dir> {
    return this.with(path, (fid) => fid.stat(signal), signal);
  }

  wstat(path: string, change: StatChange, signal?: AbortSignal): Promise<void> {
    return this.with(path, (fid) => fid.wstat(change, signal), signal);
  }

  /** Gives the file another name within its directory. */
  rename(path: string, name: string, signal?: AbortSignal): Promise<void> {
    return this.wstat(path, { name }, signal);
  }

  async remove(path: string, signal?: AbortSignal): Promise<void> {
    const fid = await this.walk(path, signal);
    await fid.remove();
  }

  private async with<T>(path: string, work: (fid: Fid) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const fid = await this.walk(path, signal);
    const result = await orClunk(fid, () => work(fid));
    await fid.clunk();
    return result;
  }
}

/** The names of a path. */
function names(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** The error of the work matters more than one of the clunk after it. */
async function orClunk<T>(fid: Fid, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await fid.clunk().catch(() => {});
    throw error;
  }
}
