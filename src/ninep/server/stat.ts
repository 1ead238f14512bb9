/** Tstat and Twstat, `stat(5)`. */
import { NineError, phrase } from "../errors.ts";
import { DMAPPEND, DMDIR, type File, type Maybe, type Stat, type StatChange } from "../file.ts";
import { andThen } from "../maybe.ts";
import {
  type Dir,
  dontTouch,
  type Message,
  type RMessage,
  Rstat,
  Rwstat,
  type Tstat,
  type Twstat,
} from "../messages.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { checkParent, checkPerm } from "./open.ts";
import { checkName } from "./walk.ts";

export function stat(connection: Connection, call: Call, message: Message<typeof Tstat>): Maybe<RMessage> {
  const { file } = connection.fids.get(message.fid, call);
  return andThen(file.stat(), (found) => ({ type: Rstat, tag: call.tag, stat: found }));
}

export function wstat(connection: Connection, call: Call, message: Message<typeof Twstat>): Maybe<RMessage> {
  const { file, path, peer } = connection.fids.get(message.fid, call);
  const wanted = message.stat;
  const done: RMessage = { type: Rwstat, tag: call.tag };
  return andThen(file.stat(), (current) => {
    const change = changed(file, wanted, current, peer.uname);
    if (Object.keys(change).length === 0) return done;
    if (!file.wstat) throw new NineError(phrase.permission, `${path} cannot be changed`);
    return andThen(change.name === undefined ? undefined : checkParent(file, "renamed"), () => {
      call.check();
      return andThen(file.wstat!(change, call), () => done);
    });
  });
}

/**
 * What the entry asks for beyond what is. Equal values are no change: clients send them along. `muid` and `uid` may also be the
 * attached user, whom the Linux client puts into every rename; `type` and `dev` belong to kernels and are not looked at. A file that
 * only grows keeps its length, without an error: shells ask for length 0 with every `>`.
 */
function changed(file: File, wanted: Dir, current: Stat, uname: string): StatChange {
  const { qid } = wanted;
  if (qid.type !== dontTouch.qid.type && qid.type !== current.qid.type) throw fixed("the type of the qid");
  if (qid.path !== dontTouch.qid.path && qid.path !== current.qid.path) throw fixed("the path of the qid");
  if (wanted.uid !== "" && wanted.uid !== current.uid && wanted.uid !== uname) throw fixed("the owner");
  if (wanted.gid !== "" && wanted.gid !== current.gid) throw fixed("the group");
  if (wanted.muid !== "" && wanted.muid !== current.muid && wanted.muid !== uname)
    throw fixed("the last writer");
  const change: StatChange = {};
  if (wanted.mode !== dontTouch.mode && wanted.mode !== current.mode) {
    if ((wanted.mode ^ current.mode) & DMDIR) throw fixed("being a directory or not");
    checkPerm(wanted.mode);
    change.mode = wanted.mode;
  }
  if (wanted.length !== dontTouch.length) {
    const directory = (current.mode & DMDIR) !== 0;
    if (directory && wanted.length !== 0) throw new NineError(phrase.isDir, `${current.name} has no length`);
    if (!directory) change.length = writableLength(file, wanted.length, current);
    if (current.mode & DMAPPEND) delete change.length;
  }
  if (wanted.mtime !== dontTouch.mtime) change.mtime = wanted.mtime;
  if (wanted.atime !== dontTouch.atime) change.atime = wanted.atime;
  if (wanted.name !== "" && wanted.name !== current.name) {
    checkName(wanted.name);
    change.name = wanted.name;
  }
  return change;
}

function writableLength(file: File, length: Dir["length"], current: Stat): number {
  if ((current.mode & 0o200) === 0)
    throw new NineError(phrase.permission, file.refusal?.("written") ?? `${current.name} cannot be written`);
  if (typeof length === "bigint")
    throw new NineError(phrase.invalid, `a length of ${length} bytes is too large`);
  return length;
}

function fixed(what: string): NineError {
  return new NineError("Operation not permitted", `${what} cannot be changed`);
}
