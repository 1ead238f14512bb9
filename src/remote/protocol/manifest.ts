/**
 * What a publisher says of the programs for other hosts: `manifest.json`, signed with Ed25519. The client looks at it before it sends a program,
 * a trust anchor before it installs one.
 */
import { createPublicKey, verify } from "node:crypto";
import { z } from "zod";
import { coded } from "./errors.ts";
import { sha256 } from "./values.ts";

/** Of these a program for an upgrade is put together: those that the host has from an older one are not sent. */
export const chunkBytes = 1024 * 1024;
/** Of these, packed one by one, an upload consists: after a break it goes on with the first that has not arrived. */
export const frameBytes = 4 * 1024 * 1024;
/** Bytes of an Ed25519 signature. */
export const signatureBytes = 64;

/** A packed program: hash of the file, and the bytes of each frame in it. */
const packed = z.object({ sha256, frames: z.array(z.int().positive()) });
const described = z.object({
  sha256,
  size: z.int().positive(),
  chunks: z.array(sha256),
  zstd: packed.optional(),
  gzip: packed.optional(),
  /** The pack with the C library: hash of the file, and which library it is, in its own words. */
  libc: z.object({ sha256, from: z.string() }).optional(),
});
const manifest = z.object({ version: z.string(), programs: z.record(z.string(), described) });

export type Packed = z.infer<typeof packed>;
export type Described = z.infer<typeof described>;
export type Manifest = z.infer<typeof manifest>;

/** @throws CodedFault "boot.manifest" */
export function parseManifest(text: string): Manifest {
  let problem: string;
  try {
    const parsed = manifest.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    problem = z.prettifyError(parsed.error).split("\n")[0]!;
  } catch (error) {
    problem = (error as Error).message;
  }
  throw coded("boot.manifest", `manifest.json is damaged: ${problem}`);
}

/**
 * Whether one of the publishers has signed the text.
 * @param keys base64 of the public keys' 32 bytes
 */
export function isSigned(text: string, signature: Uint8Array, keys: readonly string[]): boolean {
  return keys.some((key) => {
    try {
      const x = Buffer.from(key, "base64").toString("base64url");
      const publisher = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
      return verify(null, Buffer.from(text), publisher, signature);
    } catch {
      return false; // no key at all
    }
  });
}
