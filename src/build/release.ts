/**
 * What olliesrv sends to hosts, packed, and a manifest that says what it is. In a release all of it lies beside the programs of each target.
 *
 * - `ollie-remote-TARGET.zst`, in a release also `.gz`: the program in frames of 4 MiB, packed one by one, so that an upload can go on where it broke off;
 * - `ollie-remote-TARGET.libc`: see libc.ts;
 * - `manifest.json`: version, and of each program size, SHA-256, the hashes of its chunks and of the packed files;
 * - `manifest.json.sig`: its Ed25519 signature, 64 bytes. With the public key in PEM, anybody can check it:
 *   `openssl pkeyutl -verify -pubin -inkey publisher.pem -rawin -in manifest.json -sigfile manifest.json.sig`
 *
 * An olliesrv of a release that is signed sends to hosts only what this manifest lists. The programs must not be stripped: that takes away what
 * Bun runs in them, and leaves Bun.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import zlib from "node:zlib";
import {
  chunkBytes,
  type Described,
  frameBytes,
  type Manifest,
  type Packed,
} from "../remote/protocol/manifest.ts";
import { libcPack } from "./libc.ts";
import type { Target } from "./targets.ts";

const gzip = promisify(zlib.gzip) as (bytes: Uint8Array, options: zlib.ZlibOptions) => Promise<Uint8Array>;

/** Whose key signs; nobody's without a key file, and then the build trusts what lies beside it. */
export class Publisher {
  readonly #key: KeyObject | undefined;
  /** Base64 of the public key's 32 bytes; what olliesrv has built in. */
  readonly name: string | undefined;

  /** @param file private key in PEM (PKCS #8): `openssl genpkey -algorithm ed25519` */
  constructor(file: string | undefined) {
    if (file === undefined) return;
    try {
      this.#key = createPrivateKey(readFileSync(file));
    } catch (error) {
      throw new Error(`${file} holds no private key in PEM: ${(error as Error).message}`);
    }
    if (this.#key.asymmetricKeyType !== "ed25519")
      throw new Error(`${file} must hold an Ed25519 key: openssl genpkey -algorithm ed25519 -out ${file}`);
    const { x } = createPublicKey(this.#key).export({ format: "jwk" });
    this.name = Buffer.from(x!, "base64url").toString("base64");
  }

  sign(text: string): Buffer | undefined {
    return this.#key && sign(null, Buffer.from(text), this.#key);
  }
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/**
 * Packs the `ollie-remote` of every target and puts the results into the folders of all.
 * @param folder has the targets' folders
 * @param level of zstd; gzip's is 9 at most
 */
export async function packRelease(
  folder: string,
  built: readonly Target[],
  version: string,
  publisher: Publisher,
  level: number,
): Promise<void> {
  const shared = join(folder, `.remotes.${process.pid}`);
  mkdirSync(shared, { recursive: true });
  try {
    const files = built.map((target) => ({ target, file: join(folder, target, "ollie-remote") }));
    const names = await packRemotes(
      shared,
      files,
      version,
      { zstd: level, gzip: Math.min(level, 9) },
      publisher,
    );
    for (const target of built) {
      if (!target.endsWith("-musl") && !names.includes(`ollie-remote-${target}.libc`))
        throw new Error(`no glibc for ${target} is installed here (Debian has it in libc6-arm64-cross)`);
    }
    for (const target of built) {
      rmSync(join(folder, target, "manifest.json.sig"), { force: true });
      for (const name of names) place(join(shared, name), join(folder, target, name));
    }
  } finally {
    rmSync(shared, { recursive: true, force: true });
  }
}

/**
 * Writes packs, C libraries and manifest.
 * @param levels of those codecs that are wanted
 * @returns the names of the files
 */
export async function packRemotes(
  into: string,
  remotes: readonly { target: string; file: string }[],
  version: string,
  levels: { zstd: number; gzip?: number },
  publisher?: Publisher,
): Promise<string[]> {
  const manifest: Manifest = { version, programs: {} };
  const names: string[] = [];
  const write = (name: string, content: string | Uint8Array) => {
    writeFileSync(join(into, name), content);
    names.push(name);
  };
  for (const { target, file } of remotes) {
    const program = readFileSync(file);
    const name = `ollie-remote-${target}`;
    const entry: Described = {
      sha256: sha256(program),
      size: program.length,
      chunks: pieces(program, chunkBytes).map(sha256),
    };
    const zstd = await pack(program, (frame) => Bun.zstdCompress(frame, { level: levels.zstd }));
    write(`${name}.zst`, zstd.whole);
    entry.zstd = zstd.packed;
    if (levels.gzip !== undefined) {
      const { gzip: level } = levels;
      const { whole, packed } = await pack(program, (frame) => gzip(frame, { level }));
      write(`${name}.gz`, whole);
      entry.gzip = packed;
    }
    const libc = libcPack(target);
    if (libc) {
      write(`${name}.libc`, libc.content);
      entry.libc = { sha256: sha256(libc.content), from: libc.from };
    }
    manifest.programs[target] = entry;
  }
  const text = `${JSON.stringify(manifest, undefined, 1)}\n`;
  write("manifest.json", text);
  const signature = publisher?.sign(text);
  if (signature) write("manifest.json.sig", signature);
  return names;
}

function pieces(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer>[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from(
    { length: count },
    (_, index) => new Uint8Array(bytes.subarray(index * size, (index + 1) * size)),
  );
}

/** Frames are packed side by side; their order, and with it the result, is always the same. */
async function pack(
  program: Uint8Array,
  shrink: (frame: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>,
): Promise<{ whole: Uint8Array; packed: Packed }> {
  const frames = await Promise.all(pieces(program, frameBytes).map(shrink));
  const whole = Buffer.concat(frames);
  return { whole, packed: { sha256: sha256(whole), frames: frames.map(({ length }) => length) } };
}

/** A link where it can be one: the folders of the targets share what goes to hosts. */
function place(from: string, to: string): void {
  rmSync(to, { force: true });
  try {
    linkSync(from, to);
  } catch {
    if (existsSync(from)) copyFileSync(from, to);
  }
}
