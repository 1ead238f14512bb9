/**
 * Messages to bytes and back, `intro(5)`. Decoding is total: for any bytes it returns a message or throws a ProtocolError, and it
 * allocates nothing whose size only the sender vouches for. Data of Rread and Twrite are views into the frame.
 */
import type { Stat } from "./file.ts";
import * as m from "./messages.ts";
import { malformed, Reader, Writer } from "./wire.ts";

/** size[4] type[1] tag[2] */
export const HEADER = 7;

/** The tag of a whole frame. */
export function tagOf(frame: Uint8Array): number {
  return frame[5]! | (frame[6]! << 8);
}

/** Decodes one whole frame, of at least {@link HEADER} bytes and with its size field. */
export function decode(frame: Buffer): m.Message {
  const reader = new Reader(frame, HEADER, frame.length);
  const message = body(reader, frame[4]!, tagOf(frame));
  if (reader.rest > 0) throw malformed(`${reader.rest} bytes too many in the message`);
  return message;
}

function body(r: Reader, type: number, tag: number): m.Message {
  switch (type) {
    case m.Tread:
      return { type, tag, fid: r.u32(), offset: r.u64(), count: r.u32() };
    case m.Rread:
      return { type, tag, data: r.data(r.u32()) };
    case m.Twrite:
      return { type, tag, fid: r.u32(), offset: r.u64(), data: r.data(r.u32()) };
    case m.Rwrite:
      return { type, tag, count: r.u32() };
    case m.Tversion:
    case m.Rversion:
      return { type, tag, msize: r.u32(), version: r.string() };
    case m.Tauth:
      return { type, tag, afid: r.u32(), uname: r.string(), aname: r.string() };
    case m.Rauth:
      return { type, tag, aqid: qid(r) };
    case m.Tattach:
      return { type, tag, fid: r.u32(), afid: r.u32(), uname: r.string(), aname: r.string() };
    case m.Rattach:
      return { type, tag, qid: qid(r) };
    case m.Rerror:
      return { type, tag, ename: r.looseString() };
    case m.Tflush:
      return { type, tag, oldtag: r.u16() };
    case m.Twalk:
      return { type, tag, fid: r.u32(), newfid: r.u32(), wname: elements(r, () => r.string()) };
    case m.Rwalk:
      return { type, tag, wqid: elements(r, () => qid(r)) };
    case m.Topen:
      return { type, tag, fid: r.u32(), mode: r.u8() };
    case m.Ropen:
    case m.Rcreate:
      return { type, tag, qid: qid(r), iounit: r.u32() };
    case m.Tcreate:
      return { type, tag, fid: r.u32(), name: r.string(), perm: r.u32(), mode: r.u8() };
    case m.Tclunk:
    case m.Tremove:
    case m.Tstat:
      return { type, tag, fid: r.u32() };
    case m.Rstat:
      return { type, tag, stat: sizedDir(r) };
    case m.Twstat:
      return { type, tag, fid: r.u32(), stat: sizedDir(r) };
    case m.Rflush:
    case m.Rclunk:
    case m.Rremove:
    case m.Rwstat:
      return { type, tag };
    default:
      throw malformed(`message type ${type} is not one of 9P2000`);
  }
}

function qid(r: Reader): m.WireQid {
  return { type: r.u8(), vers: r.u32(), path: r.u64() };
}

function elements<T>(r: Reader, element: () => T): T[] {
  const count = r.u16();
  if (count > m.MAXWELEM) throw malformed(`a walk of ${count} names, at most ${m.MAXWELEM} are allowed`);
  const list: T[] = [];
  for (let i = 0; i < count; i++) list.push(element());
  return list;
}

/** In Rstat and Twstat the entry, which begins with its own size, is counted once more. */
function sizedDir(r: Reader): m.Dir {
  const size = r.u16();
  if (size > r.rest) throw malformed("a stat runs past the end of the message");
  const before = r.rest;
  const dir = decodeDir(r);
  if (before - r.rest !== size) throw malformed("the two sizes of a stat differ");
  return dir;
}

/** One entry of a directory read. */
export function decodeDir(r: Reader): m.Dir {
  const size = r.u16();
  if (size > r.rest) throw malformed("a stat runs past the end of its data");
  const end = r.rest - size;
  const dir: m.Dir = {
    type: r.u16(),
    dev: r.u32(),
    qid: qid(r),
    mode: r.u32(),
    atime: r.u32(),
    mtime: r.u32(),
    length: r.u64(),
    name: r.string(),
    uid: r.string(),
    gid: r.string(),
    muid: r.string(),
  };
  if (r.rest !== end) throw malformed("the size of a stat is not that of its fields");
  return dir;
}

/** All entries of the data of a directory read. */
export function decodeDirs(data: Buffer): m.Dir[] {
  const reader = new Reader(data, 0, data.length);
  const dirs: m.Dir[] = [];
  while (reader.rest > 0) dirs.push(decodeDir(reader));
  return dirs;
}

/** Appends a directory entry, its own size first. */
export function encodeDir(w: Writer, dir: m.Dir | Stat): void {
  const at = w.end;
  w.u16(0);
  w.u16("type" in dir ? dir.type! : 0);
  w.u32("dev" in dir ? dir.dev! : 0);
  encodeQid(w, dir.qid);
  w.u32(dir.mode);
  w.u32(dir.atime);
  w.u32(dir.mtime);
  w.u64(dir.length);
  w.string(dir.name);
  w.string(dir.uid);
  w.string(dir.gid);
  w.string(dir.muid);
  putSize(w, at);
}

function encodeQid(w: Writer, qid: m.WireQid): void {
  w.u8(qid.type);
  w.u32(qid.vers);
  w.u64(qid.path);
}

function encodeSizedDir(w: Writer, dir: m.Dir): void {
  const at = w.end;
  w.u16(0);
  encodeDir(w, dir);
  putSize(w, at);
}

function putSize(w: Writer, at: number): void {
  const size = w.end - at - 2;
  if (size > 0xffff) throw malformed("a stat is longer than 65535 bytes");
  w.bytes[at] = size;
  w.bytes[at + 1] = size >>> 8;
}

/** The message as a frame of its own. */
export function encode(message: m.Message): Buffer {
  const w = new Writer(Buffer.allocUnsafe(256));
  encodeInto(w, message);
  return w.bytes.subarray(0, w.end);
}

/**
 * Appends a message. A field that does not fit its wire form (a string over 65535 bytes, more than 16 names) is a ProtocolError,
 * and then nothing has been appended.
 */
export function encodeInto(w: Writer, message: m.Message): void {
  const at = w.end;
  try {
    w.u32(0);
    w.u8(message.type);
    w.u16(message.tag);
    encodeBody(w, message);
    w.putU32(at, w.end - at);
  } catch (error) {
    w.end = at;
    throw error;
  }
}

function encodeBody(w: Writer, message: m.Message): void {
  switch (message.type) {
    case m.Tread:
      w.u32(message.fid);
      w.u64(message.offset);
      w.u32(message.count);
      break;
    case m.Rread:
      w.u32(message.data.length);
      w.data(message.data);
      break;
    case m.Twrite:
      w.u32(message.fid);
      w.u64(message.offset);
      w.u32(message.data.length);
      w.data(message.data);
      break;
    case m.Rwrite:
      w.u32(message.count);
      break;
    case m.Tversion:
    case m.Rversion:
      w.u32(message.msize);
      w.string(message.version);
      break;
    case m.Tauth:
      w.u32(message.afid);
      w.string(message.uname);
      w.string(message.aname);
      break;
    case m.Rauth:
      encodeQid(w, message.aqid);
      break;
    case m.Tattach:
      w.u32(message.fid);
      w.u32(message.afid);
      w.string(message.uname);
      w.string(message.aname);
      break;
    case m.Rattach:
      encodeQid(w, message.qid);
      break;
    case m.Rerror:
      w.string(message.ename);
      break;
    case m.Tflush:
      w.u16(message.oldtag);
      break;
    case m.Twalk:
      w.u32(message.fid);
      w.u32(message.newfid);
      encodeElements(w, message.wname, (name) => w.string(name));
      break;
    case m.Rwalk:
      encodeElements(w, message.wqid, (qid) => encodeQid(w, qid));
      break;
    case m.Topen:
      w.u32(message.fid);
      w.u8(message.mode);
      break;
    case m.Ropen:
    case m.Rcreate:
      encodeQid(w, message.qid);
      w.u32(message.iounit);
      break;
    case m.Tcreate:
      w.u32(message.fid);
      w.string(message.name);
      w.u32(message.perm);
      w.u8(message.mode);
      break;
    case m.Tclunk:
    case m.Tremove:
    case m.Tstat:
      w.u32(message.fid);
      break;
    case m.Rstat:
      encodeSizedDir(w, message.stat);
      break;
    case m.Twstat:
      w.u32(message.fid);
      encodeSizedDir(w, message.stat);
      break;
    case m.Rflush:
    case m.Rclunk:
    case m.Rremove:
    case m.Rwstat:
      break;
  }
}

function encodeElements<T>(w: Writer, list: T[], element: (one: T) => void): void {
  if (list.length > m.MAXWELEM)
    throw malformed(`a walk of ${list.length} names, at most ${m.MAXWELEM} are allowed`);
  w.u16(list.length);
  for (const one of list) element(one);
}
