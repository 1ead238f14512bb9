/** Takes a program in: unpacked, held against its hash, tried, and only then under its name. */
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type Duplex, Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { CodedFault } from "../../../fault.ts";
import { coded } from "../../protocol/errors.ts";
import type { Programs } from "./programs.ts";
import { programLimit } from "./programs.ts";
import type { AnchorCall } from "./words.ts";

/** @throws CodedFault `boot.signature`, `boot.short`, `boot.hash`, `boot.no_space`, and what `test` throws */
export async function receive(
  programs: Programs,
  digest: string,
  { codec, length, signed }: NonNullable<AnchorCall["upload"]>,
  input: AsyncIterable<Uint8Array>,
  test: (path: string) => void,
): Promise<void> {
  const source = new Taken(input);
  const proof = Buffer.concat(await Array.fromAsync(source.take(signed)));
  // Before anything of it is unpacked.
  if (!programs.signed(digest, proof))
    throw coded("boot.signature", "the policy of this host launches only what its publishers have signed");
  const temporary = join(programs.folder, `.up-${randomBytes(8).toString("hex")}`);
  const hash = createHash("sha256");
  try {
    const fd = openSync(temporary, "wx", 0o600);
    try {
      let size = 0;
      for await (const bytes of unpacked(codec, source.take(length))) {
        size += bytes.length;
        if (size > programLimit)
          throw coded("boot.hash", "the program is larger than any that could be meant");
        hash.update(bytes);
        for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
      }
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    if (hash.digest("hex") !== digest)
      throw coded("boot.hash", "what has arrived is not the program that was announced");
    chmodSync(temporary, 0o700);
    test(temporary);
    programs.keepProof(digest, proof);
    renameSync(temporary, programs.path(digest));
    programs.note(digest);
  } catch (error) {
    throw problem(error);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function problem(error: unknown): Error {
  if (error instanceof CodedFault) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOSPC" || code === "EDQUOT")
    return coded("boot.no_space", "there is no space left for the program");
  if (code === "EROFS")
    return coded("boot.read_only", "the folder for programs is on a file system that is read-only");
  return coded("boot.hash", `the program cannot be unpacked: ${message}`);
}

async function* unpacked(
  codec: "zstd" | "gzip" | "none",
  packed: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (codec === "none") {
    yield* packed;
    return;
  }
  const unpacking: Duplex = codec === "gzip" ? createGunzip() : createZstdDecompress();
  const source = Readable.from(packed);
  source.on("error", (error) => unpacking.destroy(error));
  yield* source.pipe(unpacking) as AsyncIterable<Uint8Array>;
}

/** The bytes of a stream, taken from its beginning piece by piece. */
class Taken {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();

  constructor(input: AsyncIterable<Uint8Array>) {
    this.#source = input[Symbol.asyncIterator]();
  }

  /**
   * @param count undefined: all that comes
   * @throws CodedFault `boot.short` where fewer come
   */
  async *take(count?: number): AsyncGenerator<Uint8Array> {
    for (let left = count ?? Number.POSITIVE_INFINITY; left > 0; ) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#source.next();
        if (done && count === undefined) return;
        if (done) throw coded("boot.short", `the upload ended ${left} bytes early`);
        this.#rest = value;
      }
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      if (piece.length > 0) yield piece;
    }
  }
}
