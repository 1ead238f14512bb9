/**
 * What a 9P server serves: the contract between the protocol (`server.ts`) and a tree.
 *
 * The server does everything that `intro(5)` prescribes for all trees alike: fids, tags, flush, walk rules, mode checks,
 * entry borders of directory reads, counts and msize. A tree says only what its files are.
 *
 * Every method may answer at once or with a promise. Answer at once where possible: the server then replies without
 * leaving the event-loop turn in which the request arrived.
 */

export type Maybe<T> = T | Promise<T>;

/** `qid.type` bits, `stat(5)`. */
export const QTDIR = 0x80;
export const QTAPPEND = 0x40;
export const QTFILE = 0;

/** `mode` bits, `stat(5)`. */
export const DMDIR = 0x80000000;
export const DMAPPEND = 0x40000000;

/** `open(5)` modes: the low two bits are the kind of access, the others are flags. */
export const OREAD = 0;
export const OWRITE = 1;
export const ORDWR = 2;
export const OEXEC = 3;
export const OTRUNC = 0x10;
export const ORCLOSE = 0x40;

export interface Qid {
  /** QTDIR, QTAPPEND … : the top byte of the mode. */
  type: number;
  /** Moves whenever the content does; u32. */
  vers: number;
  /** Unique for the life of the server and never used again; below 2^53. */
  path: number;
}

/** A directory entry as `stat(5)` has it, less `type` and `dev`, which the codec sends as 0. */
export interface Stat {
  qid: Qid;
  /** DMDIR | DMAPPEND | permission bits, as an unsigned 32-bit number. */
  mode: number;
  /** Seconds since 1970, u32. */
  atime: number;
  mtime: number;
  /** Bytes; 0 for directories. */
  length: number;
  name: string;
  uid: string;
  gid: string;
  muid: string;
}

/** The fields of a Twstat that are not "don't touch". All or nothing: check everything, then act. */
export interface StatChange {
  name?: string;
  length?: number;
  mode?: number;
  mtime?: number;
  atime?: number;
}

/** Who is at the other end of a connection, as far as the kernel vouches for it; `uname` and `aname` are only claims. */
export interface Peer {
  /** Counts connections; unique for the life of the server. */
  connection: number;
  /** From SO_PEERCRED on a unix socket. */
  uid?: number;
  pid?: number;
  /** For whom it acts, by the listener that it came to; the tree knows what that means. */
  as?: object;
  /** What the Tattach said; never trusted for identity. */
  uname: string;
  aname: string;
  /** The most bytes that one Twrite of this connection can carry: msize less the header of 24, `open(5)`. */
  iounit?: number;
}

/** One request in the hands of a tree. */
export interface Request {
  readonly peer: Peer;
  /**
   * Aborted by Tflush and by the end of the connection; for opens and reads also by the clunk of the fid (which waits for writes). The
   * answer after that still counts, error or result; half a second later it is not waited for any more, and an open is closed as
   * "dropped". Made on first use: reading it costs.
   */
  readonly signal: AbortSignal;
}

/** A file or directory that a fid can stand on. One object may serve any number of fids and connections. */
export interface File {
  readonly qid: Qid;
  stat(): Maybe<Stat>;
  /** Directories only: the child of that name, or undefined. Never called with ".." (see `parent`) or ".". */
  walk?(name: string, request: Request): Maybe<File | undefined>;
  /** Where ".." leads; the root has none and stays where it is. */
  parent?(): File | undefined;
  /** What else there is to say where the permission bits do not let it be `read` or `written`. */
  refusal?(verb: "read" | "written" | "executed"): string | undefined;
  /** `mode` has been checked against the permission bits. Opening without doing anything more must be harmless. */
  open(mode: number, request: Request): Maybe<OpenFile>;
  /**
   * Without it, Tcreate is "permission denied". The name is one, `perm` is masked by the mode of the directory, which allows writing;
   * that the name is free is for the tree to check. The returned file is opened already.
   */
  create?(name: string, perm: number, mode: number, request: Request): Maybe<{ file: File; open: OpenFile }>;
  /** Without it, Tremove is "permission denied". The parent allows writing. The fid is clunked whatever happens. */
  remove?(request: Request): Maybe<void>;
  /**
   * Without it, every change is "permission denied". An empty change (fsync), and a mode or name that is so already, never get here. A
   * length comes only for files that allow writing and do not only grow, a name (which may be in use) only where the parent allows it.
   */
  wstat?(change: StatChange, request: Request): Maybe<void>;
}

/** How a fid's life ended: by Tclunk/Tremove, or because the connection did. */
export type CloseReason = "clunk" | "dropped";

/** What one Topen made. Belongs to one fid. Its writes come one after the other, and `close` after all of them; reads may overlap. */
export interface OpenFile {
  /** At most `count` bytes from `offset`; empty = end of file. The result is copied as soon as it is there. Offsets from 2^53 on come rounded. */
  read?(offset: number, count: number, request: Request): Maybe<Uint8Array>;
  /** The number of bytes taken, never 0 for a non-empty write. `data` is only valid until the first await: copy what is kept. */
  write?(offset: number, data: Uint8Array, request: Request): Maybe<number>;
  /** Directories: the entries, taken once per rewind (offset 0). The server cuts them into messages. */
  entries?(request: Request): Maybe<Stat[]>;
  /** Its failure fails the Tclunk; the fid is gone all the same. */
  close?(reason: CloseReason, request: Request): Maybe<void>;
}
