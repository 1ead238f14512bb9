/**
 * `BASE/blobs`: contents by their SHA-256. They come in pieces, each written at its offset of a part that all clients share: who sends the same
 * content writes the same bytes, and who comes again after a break goes on where the part ends.
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { toFault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import { pieceBytes } from "../../protocol/limits.ts";
import type { blobPut } from "../../protocol/tools.ts";
import { hashOf } from "../files/read.ts";
import { ownFolder } from "../own-folder.ts";

/** Bytes of a content. */
const sizeLimit = 1024 * 1024 * 1024;
/** Milliseconds for which a content that nobody asks for is kept. */
const shelfLife = 7 * 24 * 60 * 60 * 1000;

export class Blobs {
  readonly #folder: string;

  /** @throws Error where BASE/blobs is not ours */
  constructor(base: string) {
    this.#folder = ownFolder(join(base, "blobs"));
  }

  path(sha256: string): string {
    return join(this.#folder, sha256);
  }

  /** Whether it is here; that it was asked for keeps it. */
  has(sha256: string, size: number): boolean {
    const path = this.path(sha256);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile() || stat.size !== size || stat.uid !== process.geteuid!()) return false;
    utimesSync(path, new Date(), new Date());
    return true;
  }

  /** Bytes of it that have come; a client may go on behind them. */
  begun(sha256: string): number {
    return lstatSync(this.#part(sha256), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** @throws CodedFault `blob.offset`, `blob.hash`, `blob.too_large`, `boot.no_space` */
  async put({ sha256, off, data, last }: z.infer<typeof blobPut>): Promise<{ have: number }> {
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > pieceBytes)
      throw coded("blob.too_large", `a piece of ${bytes.length} bytes is larger than ${pieceBytes}`);
    if (off + bytes.length > sizeLimit)
      throw coded("blob.too_large", `${sha256} is larger than ${sizeLimit} bytes`);
    // Another client has brought it meanwhile.
    if (lstatSync(this.path(sha256), { throwIfNoEntry: false })) return { have: off + bytes.length };
    const fd = this.#open(sha256);
    try {
      const { size } = fstatSync(fd);
      if (off > size)
        throw coded("blob.offset", `of ${sha256} ${size} bytes are here, and not ${off}`, { retry: true });
      for (let done = 0; done < bytes.length; )
        done += writeSync(fd, bytes, done, bytes.length - done, off + done);
      if (last) await this.#finish(sha256, fd, off + bytes.length);
      return { have: off + bytes.length };
    } catch (error) {
      if (toFault(error).kind === "full")
        throw coded("boot.no_space", `there is no space left in ${this.#folder} on the host`);
      throw error;
    } finally {
      closeSync(fd);
    }
  }

  #open(sha256: string): number {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    return openSync(this.#part(sha256), flags, 0o600);
  }

  async #finish(sha256: string, fd: number, size: number): Promise<void> {
    ftruncateSync(fd, size);
    const part = this.#part(sha256);
    if ((await hashOf(fd)) !== sha256) {
      rmSync(part, { force: true });
      throw coded("blob.hash", `what has come is not ${sha256}`, { retry: true });
    }
    fsyncSync(fd);
    try {
      renameSync(part, this.path(sha256));
    } catch (error) {
      // Two have finished it at once.
      if (!lstatSync(this.path(sha256), { throwIfNoEntry: false })) throw error;
    }
  }

  #part(sha256: string): string {
    return join(this.#folder, `.part-${sha256}`);
  }

  forget(sha256: string): void {
    rmSync(this.path(sha256), { force: true });
  }

  /** Removes what nobody has asked for in a week, and what was begun and not gone on with. */
  sweep(now = Date.now()): void {
    for (const name of readdirSync(this.#folder)) {
      const path = join(this.#folder, name);
      const { mtimeMs = now } = statSync(path, { throwIfNoEntry: false }) ?? {};
      if (now - mtimeMs > shelfLife) rmSync(path, { force: true });
    }
  }
}
