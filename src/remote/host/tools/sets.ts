/**
 * `BASE/tools/HASH/`: sets of tools, each complete from the moment on at which it has its name. There is no link in one, and nobody else can write
 * it. What runs keeps the set that it was started from; another set is another folder.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { toFault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import type { ToolFile } from "../../protocol/tools.ts";
import { ownFolder } from "../own-folder.ts";
import { mentioned } from "../processes.ts";
import type { Blobs } from "./blobs.ts";

/** Milliseconds in which a set may be made by one client, and not be named by a session yet. */
const grace = 60 * 60 * 1000;

export class ToolSets {
  readonly #folder: string;

  constructor(
    base: string,
    private readonly blobs: Blobs,
  ) {
    this.#folder = ownFolder(join(base, "tools"));
  }

  path(hash: string): string {
    return join(this.#folder, hash);
  }

  has(hash: string): boolean {
    return statSync(this.path(hash), { throwIfNoEntry: false })?.isDirectory() ?? false;
  }

  /** @throws CodedFault `tools.missing` where a file has not been brought, `boot.no_space` */
  make(hash: string, files: readonly ToolFile[]): void {
    if (this.has(hash)) return;
    const fresh = join(this.#folder, `.new-${randomBytes(8).toString("hex")}`);
    try {
      mkdirSync(fresh, { mode: 0o700 });
      for (const file of files) this.#put(fresh, file);
      renameSync(fresh, this.path(hash));
    } catch (error) {
      // Another client has made it meanwhile.
      if (this.has(hash)) return;
      if (toFault(error).kind === "full")
        throw coded("boot.no_space", `there is no space left for tools in ${this.#folder} on the host`);
      throw error;
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
  }

  #put(folder: string, { path, mode, sha256 }: ToolFile): void {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    const bytes = this.#content(path, sha256);
    const fd = openSync(target, "wx", 0o600);
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    // Nobody else writes it, whatever it was like at home; no bit lends anybody's rights.
    chmodSync(target, (mode & 0o755) | 0o400);
  }

  /** Whoever can write blobs could have changed one: what is a tool is looked at once more. */
  #content(path: string, sha256: string): Buffer {
    const missing = (why: string): never => {
      throw coded("tools.missing", `${path} ${why}`, { retry: true, hint: "send it with blob.put" });
    };
    let bytes: Buffer;
    try {
      bytes = readFileSync(this.blobs.path(sha256));
    } catch {
      return missing("has not been brought");
    }
    if (createHash("sha256").update(bytes).digest("hex") === sha256) return bytes;
    this.blobs.forget(sha256);
    return missing("was damaged on the host");
  }

  /** @param used hashes that sessions name */
  sweep(used: ReadonlySet<string>, now = Date.now()): void {
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name);
      const { ctimeMs = now } = statSync(path, { throwIfNoEntry: false }) ?? {};
      if (used.has(name) || now - ctimeMs < grace || mentioned(path)) continue;
      rmSync(path, { recursive: true, force: true });
    }
  }
}
