/** From an SSH connection to a running `ollie-remote`: what the client's end needs of the bootstrap. */
import type { SshChannel, SshConnection } from "../../ssh/transport.ts";

/** How far an upload is. */
export interface Progress {
  /** What happens, for people: `uploading`, `installing`, `checking`. */
  doing: string;
  /** Bytes that have left for the host, and that there are in all. */
  done?: number;
  total?: number;
  /** Bytes a second, and seconds that are left at that rate. */
  rate?: number;
  left?: number;
}

export interface BootOptions {
  /** `--root` and `--policy` of `ollie-remote serve`. */
  root?: string;
  policy?: string;
  /**
   * A trust anchor that the operator has installed, run in the place of the script. Its three commands and what they say on stdout (lines of the
   * script's grammar, each with an empty line before it):
   *
   * - `CMD check HASH NONCE`: `OLLIE1 NONCE hit HASH` or `OLLIE1 NONCE miss arch=ARCH codecs=zstd,gzip`, where codecs are those it can unpack;
   * - `CMD install HASH NONCE CODEC LENGTH SIGNED`: reads SIGNED bytes (the Ed25519 signature, 64 bytes, and manifest.json; 0 = it is not
   *   signed), then LENGTH bytes of the program, packed with CODEC (`zstd`, `gzip`, `none`), from stdin; `OLLIE1 NONCE installed HASH` or
   *   `OLLIE1 NONCE fail CODE words…`, CODE being one of the family `boot` without it (`hash`, `no_space`, `signature` …);
   * - `CMD launch HASH NONCE [--root D] [--policy F]`: `OLLIE1 NONCE hit HASH`, then it becomes `ollie-remote serve` with these options.
   */
  bootstrapCommand?: string;
  /** A program to upload in the place of the one that came with ollie. */
  localRunner?: string;
  targetTriple?: string;
  /** Folder that the programs for hosts lie in; unset = that of this program. */
  programs?: string;
  onProgress(progress: Progress): void;
  signal: AbortSignal;
  /** Milliseconds without a byte accepted by the host after which an upload is given up. */
  stall: number;
}

export interface Booted {
  channel: SshChannel;
  /** What comes on stdout behind the marker: the protocol. */
  stdout: AsyncIterable<Uint8Array>;
  /** SHA-256 of the program that was launched. */
  digest: string;
  /** It lay there already. */
  hit: boolean;
  /** Bytes that were uploaded. */
  uploaded: number;
  /** Things to be told once: another folder was taken, a weak check of the hash. */
  notes: string[];
}

/** @throws CodedFault of the families `ssh` and `boot` */
export type Boot = (connection: SshConnection, options: BootOptions) => Promise<Booted>;
