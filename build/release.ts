/**
 * A release: beside the programs of each target lies all that olliesrv sends to hosts of any kind, packed, and a manifest that says what it is.
 *
 * - `ollie-remote-TARGET.zst`, `.gz`: the program in frames of 4 MiB, packed one by one, so that an upload can go on where it broke off;
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
import { chunkBytes, frameBytes, type Manifest, type Packed } from "../src/remote/protocol/manifest.ts";
import { libcPack } from "./libc.ts";
import { type Target, targets } from "./targets.ts";

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
export async function packRemotes(
  folder: string,
  built: readonly Target[],
  version: string,
  publisher: Publisher,
  level: number,
): Promise<void> {
  const shared = join(folder, `.remotes.${process.pid}`);
  mkdirSync(shared, { recursive: true });
  try {
    const manifest: Manifest = { version, programs: {} };
    for (const target of built) manifest.programs[target] = await packed(folder, target, shared, level);
    const text = `${JSON.stringify(manifest, undefined, 1)}\n`;
    writeFileSync(join(shared, "manifest.json"), text);
    const signature = publisher.sign(text);
    if (signature) writeFileSync(join(shared, "manifest.json.sig"), signature);
    const names = ["manifest.json", ...(signature ? ["manifest.json.sig"] : [])];
    for (const target of built) names.push(...filesOf(target, manifest));
    for (const target of built)
      for (const name of names) place(join(shared, name), join(folder, target, name));
    if (!signature)
      for (const target of built) rmSync(join(folder, target, "manifest.json.sig"), { force: true });
  } finally {
    rmSync(shared, { recursive: true, force: true });
  }
}

function filesOf(target: Target, { programs }: Manifest): string[] {
  const { libc } = programs[target]!;
  const name = `ollie-remote-${target}`;
  return [`${name}.zst`, `${name}.gz`, ...(libc ? [`${name}.libc`] : [])];
}

async function packed(folder: string, target: Target, into: string, level: number) {
  const program = readFileSync(join(folder, target, "ollie-remote"));
  const name = join(into, `ollie-remote-${target}`);
  const zstd = (frame: Uint8Array) => Bun.zstdCompress(frame, { level });
  const gzip = async (frame: Uint8Array) =>
    Bun.gzipSync(new Uint8Array(frame), { level: Math.min(level, 9) as 9 });
  const libc = libcPack(target);
  if (libc) writeFileSync(`${name}.libc`, libc.content);
  else if (targets[target] && !target.endsWith("-musl"))
    throw new Error(`no glibc for ${target} is installed here (Debian has it in libc6-arm64-cross)`);
  return {
    sha256: sha256(program),
    size: program.length,
    chunks: pieces(program, chunkBytes).map(sha256),
    zstd: await pack(program, `${name}.zst`, zstd),
    gzip: await pack(program, `${name}.gz`, gzip),
    ...(libc && { libc: { sha256: sha256(libc.content), from: libc.from } }),
  };
}

function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  const count = Math.ceil(bytes.length / size);
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
}

async function pack(
  program: Uint8Array,
  file: string,
  shrink: (frame: Uint8Array) => Promise<Uint8Array>,
): Promise<Packed> {
  const frames: Uint8Array[] = [];
  for (const frame of pieces(program, frameBytes)) frames.push(await shrink(frame));
  const whole = Buffer.concat(frames);
  writeFileSync(file, whole);
  return { sha256: sha256(whole), frames: frames.map(({ length }) => length) };
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
