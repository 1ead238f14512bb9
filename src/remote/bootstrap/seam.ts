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
  /** A trust anchor that the operator has installed: run with `check`, `install`, `launch` in the place of the script. */
  bootstrapCommand?: string;
  /** A program to upload in the place of the one that came with ollie. */
  localRunner?: string;
  targetTriple?: string;
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
