/** The messages of 9P2000, `intro(5)`, as the codec gives and takes them. */
import type { Stat } from "./file.ts";
import { MAX_U64, type U64 } from "./wire.ts";

export const Tversion = 100;
export const Rversion = 101;
export const Tauth = 102;
export const Rauth = 103;
export const Tattach = 104;
export const Rattach = 105;
export const Rerror = 107;
export const Tflush = 108;
export const Rflush = 109;
export const Twalk = 110;
export const Rwalk = 111;
export const Topen = 112;
export const Ropen = 113;
export const Tcreate = 114;
export const Rcreate = 115;
export const Tread = 116;
export const Rread = 117;
export const Twrite = 118;
export const Rwrite = 119;
export const Tclunk = 120;
export const Rclunk = 121;
export const Tremove = 122;
export const Rremove = 123;
export const Tstat = 124;
export const Rstat = 125;
export const Twstat = 126;
export const Rwstat = 127;

/** The tag of a Tversion. */
export const NOTAG = 0xffff;
/** The afid of a Tattach without authentication. */
export const NOFID = 0xffff_ffff;
/** Most names in one Twalk. */
export const MAXWELEM = 16;
/** Room that `iounit` leaves for the header of a Twrite or Rread. */
export const IOHDRSZ = 24;
/** What of an Rread is not data: size[4] type[1] tag[2] count[4]. */
export const RREADHDR = 11;

/** A qid as it is on the wire; `type` is QTDIR and its kind. Other servers use all 64 bits of `path`; ours stays below 2^53. */
export interface WireQid {
  type: number;
  vers: number;
  path: U64;
}

/** A directory entry as it is on the wire, `stat(5)`; `type` and `dev` are for the use of kernels. */
export interface Dir extends Omit<Stat, "qid" | "length"> {
  type?: number;
  dev?: number;
  qid: WireQid;
  length: U64;
}

/** The entry that changes nothing: base of every Twstat. */
export const dontTouch: Readonly<Required<Dir>> = {
  type: 0xffff,
  dev: 0xffff_ffff,
  qid: { type: 0xff, vers: 0xffff_ffff, path: MAX_U64 },
  mode: 0xffff_ffff,
  atime: 0xffff_ffff,
  mtime: 0xffff_ffff,
  length: MAX_U64,
  name: "",
  uid: "",
  gid: "",
  muid: "",
};

interface Fields {
  [Tversion]: { msize: number; version: string };
  [Rversion]: { msize: number; version: string };
  [Tauth]: { afid: number; uname: string; aname: string };
  [Rauth]: { aqid: WireQid };
  [Tattach]: { fid: number; afid: number; uname: string; aname: string };
  [Rattach]: { qid: WireQid };
  [Rerror]: { ename: string };
  [Tflush]: { oldtag: number };
  [Rflush]: unknown;
  [Twalk]: { fid: number; newfid: number; wname: string[] };
  [Rwalk]: { wqid: WireQid[] };
  [Topen]: { fid: number; mode: number };
  [Ropen]: { qid: WireQid; iounit: number };
  [Tcreate]: { fid: number; name: string; perm: number; mode: number };
  [Rcreate]: { qid: WireQid; iounit: number };
  [Tread]: { fid: number; offset: U64; count: number };
  [Rread]: { data: Uint8Array };
  [Twrite]: { fid: number; offset: U64; data: Uint8Array };
  [Rwrite]: { count: number };
  [Tclunk]: { fid: number };
  [Rclunk]: unknown;
  [Tremove]: { fid: number };
  [Rremove]: unknown;
  [Tstat]: { fid: number };
  [Rstat]: { stat: Dir };
  [Twstat]: { fid: number; stat: Dir };
  [Rwstat]: unknown;
}

export type MessageType = keyof Fields;

/** One message by its type number: `Message<typeof Tread>`. */
export type Message<K extends MessageType = MessageType> = {
  [T in K]: { type: T; tag: number } & Fields[T];
}[K];

/** What a client sends. */
export type TMessage = Message<
  | typeof Tversion
  | typeof Tauth
  | typeof Tattach
  | typeof Tflush
  | typeof Twalk
  | typeof Topen
  | typeof Tcreate
  | typeof Tread
  | typeof Twrite
  | typeof Tclunk
  | typeof Tremove
  | typeof Tstat
  | typeof Twstat
>;

/** What a server sends. */
export type RMessage = Exclude<Message, TMessage>;

const requestNames: Record<number, string> = {
  [Tversion]: "Tversion",
  [Tauth]: "Tauth",
  [Tattach]: "Tattach",
  [Tflush]: "Tflush",
  [Twalk]: "Twalk",
  [Topen]: "Topen",
  [Tcreate]: "Tcreate",
  [Tread]: "Tread",
  [Twrite]: "Twrite",
  [Tclunk]: "Tclunk",
  [Tremove]: "Tremove",
  [Tstat]: "Tstat",
  [Twstat]: "Twstat",
};

/** What a request of that type is called, for metrics and logs. */
export function requestName(type: number): string {
  return requestNames[type] ?? `T${type}`;
}
