/** Topen and Tcreate, `open(5)`. */
import { NineError, phrase } from "../errors.ts";
import {
  DMAPPEND,
  DMDIR,
  type File,
  type Maybe,
  OEXEC,
  type OpenFile,
  ORCLOSE,
  ORDWR,
  OREAD,
  OTRUNC,
  OWRITE,
  QTDIR,
  type Stat,
} from "../file.ts";
import { andThen, orElse } from "../maybe.ts";
import {
  IOHDRSZ,
  type Message,
  Rcreate,
  type RMessage,
  Ropen,
  type Tcreate,
  type Topen,
} from "../messages.ts";
import { ProtocolError } from "../wire.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { DirReader } from "./dirread.ts";
import type { Fid } from "./fid.ts";
import { checkName } from "./walk.ts";

/** `stat(5)`: one fid at a time may have the file open. */
const DMEXCL = 0x20000000;
/** `stat(5)`: left out of backups. */
const DMTMP = 0x04000000;
/** The mode bits of 9P2000; its dialects have more, for symbolic links and devices. */
const knownPerm = DMDIR | DMAPPEND | DMEXCL | DMTMP | 0o777;
/** Everything else in the mode byte (OCEXEC, bits of dialects) says nothing to a server. */
const knownMode = 3 | OTRUNC | ORCLOSE;

const ownerBits: Record<number, number> = { [OREAD]: 0o400, [OWRITE]: 0o200, [ORDWR]: 0o600, [OEXEC]: 0o100 };

export function open(connection: Connection, call: Call, message: Message<typeof Topen>): Maybe<RMessage> {
  const fid = begin(connection, call, message.fid);
  const { file } = fid;
  call.blocking = true;
  return orElse(
    () =>
      andThen(file.stat(), (stat) => {
        const mode = allowed(file, stat, message.mode & knownMode);
        return andThen(mode & ORCLOSE ? checkParent(file, "removed when closed") : undefined, () => {
          call.check();
          if (stat.mode & DMEXCL) takeExclusive(connection, fid, file);
          return andThen(file.open(mode, call), (opened) => {
            install(call, fid, opened, mode);
            return { type: Ropen, tag: call.tag, qid: file.qid, iounit: connection.msize - IOHDRSZ };
          });
        });
      }),
    () => abandon(connection, fid),
  );
}

export function create(
  connection: Connection,
  call: Call,
  message: Message<typeof Tcreate>,
): Maybe<RMessage> {
  const fid = begin(connection, call, message.fid);
  const directory = fid.file;
  const { name, perm } = message;
  const mode = message.mode & knownMode;
  return orElse(
    () => {
      if ((directory.qid.type & QTDIR) === 0) throw new NineError(phrase.notDir, fid.path);
      checkName(name);
      checkPerm(perm);
      call.path = fid.path === "/" ? `/${name}` : `${fid.path}/${name}`;
      if (perm & DMDIR && mode !== OREAD)
        throw new NineError(phrase.isDir, "a directory can be opened for reading only");
      if (!directory.create) throw new NineError(phrase.permission, `nothing can be created in ${fid.path}`);
      return andThen(directory.stat(), (stat) => {
        call.check();
        if ((stat.mode & 0o200) === 0) throw new NineError(phrase.permission, `${stat.name} is read-only`);
        return andThen(directory.create!(name, inherited(perm, stat.mode), mode, call), (made) => {
          install(call, fid, made.open, mode);
          fid.file = made.file;
          fid.path = call.path;
          if (perm & DMEXCL) takeExclusive(connection, fid, made.file);
          return { type: Rcreate, tag: call.tag, qid: made.file.qid, iounit: connection.msize - IOHDRSZ };
        });
      });
    },
    () => abandon(connection, fid),
  );
}

function begin(connection: Connection, call: Call, number: number): Fid & { file: File } {
  const fid = connection.fids.get(number, call);
  if (fid.open || fid.opening) throw new ProtocolError(phrase.busy, "the fid is open already");
  fid.opening = true;
  return fid;
}

function abandon(connection: Connection, fid: Fid): void {
  fid.opening = false;
  connection.server.releaseExclusive(fid);
}

/** The mode to open with, if the permission bits of the owner allow it. */
function allowed(file: File, stat: Stat, mode: number): number {
  if (stat.mode & DMDIR && mode !== OREAD)
    throw new NineError(phrase.isDir, `${stat.name} can be opened for reading only`);
  const need = ownerBits[mode & 3]! | (mode & OTRUNC ? 0o200 : 0);
  const lack = need & ~stat.mode;
  if (lack) {
    const verb = lack & 0o400 ? "read" : lack & 0o200 ? "written" : "executed";
    throw new NineError(phrase.permission, file.refusal?.(verb) ?? `${stat.name} cannot be ${verb}`);
  }
  return stat.mode & DMAPPEND ? mode & ~OTRUNC : mode;
}

/** What may be the mode of a file. */
export function checkPerm(perm: number): void {
  const unknown = (perm & ~knownPerm) >>> 0;
  if (unknown) throw new NineError(phrase.invalid, `9P2000 has no mode bit 0x${unknown.toString(16)}`);
}

/** Removing and renaming are changes of the directory. */
export function checkParent(file: File, change: string): Maybe<void> {
  const parent = file.parent?.();
  if (!parent) throw new NineError(phrase.permission, `the root cannot be ${change}`);
  return andThen(parent.stat(), (stat) => {
    if ((stat.mode & 0o200) === 0) {
      throw new NineError(
        phrase.permission,
        parent.refusal?.("written") ?? `in ${stat.name}, which is read-only, nothing can be ${change}`,
      );
    }
  });
}

/** open(5): a new file gets no permission that its directory has not. */
function inherited(perm: number, directory: number): number {
  const bits = perm & DMDIR ? 0o777 : 0o666;
  return (perm & (~bits | (directory & bits))) >>> 0;
}

function takeExclusive(connection: Connection, fid: Fid, file: File): void {
  const { path } = file.qid;
  if (connection.server.exclusive.has(path)) throw new NineError("exclusive use file already open");
  connection.server.exclusive.add(path);
  fid.exclusive = path;
}

function install(call: Call, fid: Fid, opened: OpenFile, mode: number): void {
  if (call.settled) {
    // The client was told that the request is interrupted, and may have let go of the fid.
    Promise.resolve(opened.close?.("dropped", call)).catch(() => {});
    call.check();
  }
  fid.open = opened;
  fid.opening = false;
  fid.mode = mode;
  fid.removeOnClose = (mode & ORCLOSE) !== 0;
  if (opened.entries) fid.dir = new DirReader(opened);
}
