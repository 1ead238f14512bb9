/**
 * Bytes to a program on another host: what `src/remote` needs of SSH, whichever of the two ways carries it (RFC 4254). One connection a
 * target, one channel a session.
 */
import type { Fault } from "../fault.ts";

/** How a target is reached: what a user writes in `remote=`, and what `remotes.yaml` says of it. */
export interface SshTarget {
  /** `[user@]host[:port]`, an alias of the ssh configuration, or an IPv6 address, with or without brackets. */
  name: string;
  /** Absolute paths; unset = what ssh itself would use. */
  configFile?: string;
  knownHosts?: string;
  sshProgram?: string;
  /** Milliseconds until a connection must stand, people's answers not counted. */
  connectTimeout: number;
  /** Which way: found out by itself, or as OLLIE_SSH says. */
  via: "auto" | "ssh2" | "openssh";
  /** Nobody is asked anything: what needs an answer fails. */
  batch: boolean;
  /** Of a host that is in no known_hosts. A changed key is refused whatever this says. */
  newHostKey: "refuse" | "ask" | "accept";
}

/** Questions that only a person can answer, word for word as the server or ssh put them. Undefined = nobody will. */
export interface Askpass {
  /** A passphrase, a password, a code. Never kept: not in a log, not for a second time. */
  secret(prompt: string, about: { target: string; echo: boolean }): Promise<Uint8Array | undefined>;
  confirm(question: string, about: { target: string }): Promise<boolean>;
  /** Something to be told while it is waited for: "touch your key". */
  notice(text: string): void;
}

/** Error codes of design 1.10, family `ssh`. */
export type SshCode =
  | "ssh.auth"
  | "ssh.hostkey_unknown"
  | "ssh.hostkey_changed"
  | "ssh.unreachable"
  | "ssh.timeout"
  | "ssh.refused"
  | "ssh.no_shell"
  | "ssh.forced"
  | "ssh.dropped"
  | "ssh.config";

/** A program on the other host. Its stdin and stdout are 8-bit clean: no terminal is ever asked for. */
export interface SshChannel {
  readonly stdout: AsyncIterable<Uint8Array>;
  /** What comes on stderr, for people; at most the last 32 KiB are kept. */
  stderr(): string;
  /** Resolves when the bytes are on their way and more may come: this is what holds a fast sender back. @throws Fault "ssh.dropped" */
  write(bytes: Uint8Array): Promise<void>;
  /** Bytes that were taken and have not left this process yet. */
  readonly buffered: number;
  /** End of stdin. */
  end(): void;
  /**
   * Resolves when the channel is closed: with the program's status if the other host has told one, with a Fault where the connection broke.
   */
  readonly closed: Promise<{ code?: number; signal?: string; fault?: Fault }>;
  /** At once, without waiting for anything. */
  close(): void;
}

/** One authenticated connection. */
export interface SshConnection {
  readonly via: "ssh2" | "openssh";
  /** SHA256:… of the host's key, as `ssh-keygen -l` prints it; unknown where the ssh program keeps that to itself. */
  readonly hostKey?: string;
  /**
   * Runs a command by the user's login shell, whatever that is. The command is sent as it is: to be understood by all of them it is
   * `exec /bin/sh -c '…'` with no `'`, `\`, `!` or newline inside.
   */
  exec(command: string): Promise<SshChannel>;
  /** Resolves when the connection is gone; with a Fault where nobody here has closed it. */
  readonly closed: Promise<Fault | undefined>;
  /** Asks the other host for an answer. @throws Fault "ssh.dropped" if none comes within the milliseconds; the connection is then closed */
  probe(limit: number): Promise<void>;
  close(): void;
}

/** `src/ssh/connect.ts` has the one that the rest uses. @throws SshFault */
export type Connect = (
  target: SshTarget,
  askpass: Askpass | undefined,
  signal: AbortSignal,
) => Promise<SshConnection>;
