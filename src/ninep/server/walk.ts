/** Tattach and Twalk: how fids come to stand on files. */
import { splitAname } from "../admission.ts";
import { NineError, phrase } from "../errors.ts";
import type { File, Maybe } from "../file.ts";
import { QTDIR } from "../file.ts";
import { andThen } from "../maybe.ts";
import {
  IOHDRSZ,
  type Message,
  NOFID,
  Rattach,
  type RMessage,
  Rwalk,
  type Tattach,
  type Twalk,
  type WireQid,
} from "../messages.ts";
import { ProtocolError } from "../wire.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import type { Fid } from "./fid.ts";

export function attach(
  connection: Connection,
  call: Call,
  message: Message<typeof Tattach>,
): Maybe<RMessage> {
  if (message.afid !== NOFID)
    throw new ProtocolError("fid unknown or out of range", "no authentication is needed, afid must be NOFID");
  const { uname } = message;
  // Nobody beyond this point gets to see the token.
  const { token, aname } = splitAname(message.aname);
  call.peer = { ...connection.peer, uname, aname, iounit: connection.msize - IOHDRSZ };
  call.path = "/";
  const fid = connection.fids.reserve(message.fid, call);
  connection.admission?.(token);
  return andThen(connection.server.rootFor(call.peer), (root) => {
    call.check();
    settle(fid, root, "/");
    return { type: Rattach, tag: call.tag, qid: root.qid };
  });
}

export function walk(connection: Connection, call: Call, message: Message<typeof Twalk>): Maybe<RMessage> {
  const from = connection.fids.get(message.fid, call);
  const names = message.wname;
  if (from.open || from.opening)
    throw new ProtocolError(phrase.busy, "the fid is open, walk from one that is not");
  const to = message.newfid === message.fid ? from : connection.fids.reserve(message.newfid, call);
  to.peer = from.peer;
  const { file, path } = from;
  if (names.length === 0) {
    settle(to, file, path);
    return { type: Rwalk, tag: call.tag, wqid: [] };
  }
  return new Walk(connection, call, to, names, path).from(file, 0);
}

/** A fid that has arrived. */
function settle(fid: Fid, file: File, path: string): void {
  fid.file = file;
  fid.path = path;
}

/** The steps of one Twalk. */
class Walk {
  private readonly qids: WireQid[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly call: Call,
    private readonly to: Fid,
    private readonly names: string[],
    private path: string,
  ) {}

  from(start: File, first: number): Maybe<RMessage> {
    let file = start;
    for (let i = first; i < this.names.length; i++) {
      let next: Maybe<File | undefined>;
      try {
        next = this.step(file, this.names[i]!);
      } catch (error) {
        return this.failed(error);
      }
      if (next instanceof Promise) {
        return next.then(
          (found) => this.arrived(found, i) ?? this.from(found!, i + 1),
          (error) => this.failed(error),
        );
      }
      const end = this.arrived(next, i);
      if (end) return end;
      file = next!;
    }
    this.call.check();
    settle(this.to, file, this.path);
    return this.reply();
  }

  private step(file: File, name: string): Maybe<File | undefined> {
    this.call.check();
    if ((file.qid.type & QTDIR) === 0) throw new NineError(phrase.notDir, this.path);
    if (name === "..") return file.parent?.() ?? file;
    if (name === ".") return file;
    checkName(name);
    return file.walk?.(name, this.call);
  }

  /** Notes the element; returns the reply if the walk ends here. */
  private arrived(file: File | undefined, index: number): Maybe<RMessage> | undefined {
    const name = this.names[index]!;
    this.path = joined(this.path, name);
    if (!file) return this.failed(new NineError(phrase.notExist, this.path), true);
    this.qids.push(file.qid);
    return undefined;
  }

  /** walk(5): an error only if the first element fails; a later one shows in the number of qids, and newfid is not made. */
  private failed(error: unknown, noted = false): RMessage {
    if (!noted) this.path = joined(this.path, this.names[this.qids.length]!);
    this.call.path = this.path;
    if (this.qids.length === 0 || this.call.interrupted) throw error;
    if (this.to.file === undefined) this.connection.fids.delete(this.to);
    this.connection.refused(this.call, error);
    return this.reply();
  }

  private reply(): RMessage {
    return { type: Rwalk, tag: this.call.tag, wqid: this.qids };
  }
}

function joined(path: string, name: string): string {
  if (name === ".") return path;
  if (name === "..") return path.slice(0, path.lastIndexOf("/")) || "/";
  return path === "/" ? `/${name}` : `${path}/${name}`;
}

/** What may be the name of a file. */
export function checkName(name: string): void {
  if (name === "" || name === "." || name === ".." || name.includes("/")) {
    throw new NineError(phrase.invalid, `${JSON.stringify(name)} is no file name`);
  }
}
