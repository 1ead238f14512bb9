/** Tread and Twrite, `read(5)`. */
import { NineError, phrase } from "../errors.ts";
import { type Maybe, OEXEC, type OpenFile, OREAD, OWRITE } from "../file.ts";
import { andThen } from "../maybe.ts";
import {
  type Message,
  type RMessage,
  RREADHDR,
  Rread,
  Rwrite,
  type Tread,
  type Twrite,
} from "../messages.ts";
import { ProtocolError } from "../wire.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import type { Fid } from "./fid.ts";

const empty = Buffer.alloc(0);

export function read(connection: Connection, call: Call, message: Message<typeof Tread>): Maybe<RMessage> {
  const fid = connection.fids.get(message.fid, call);
  const open = opened(fid);
  if ((fid.mode & 3) === OWRITE) throw new ProtocolError(phrase.badFd, "the fid is open for writing only");
  const count = Math.min(message.count, connection.msize - RREADHDR);
  const offset = Number(message.offset);
  const { tag } = call;
  call.blocking = true;
  if (fid.dir) {
    return andThen(fid.dir.read(offset, count, connection.msize, call), (data) => ({
      type: Rread,
      tag,
      data,
    }));
  }
  if (!open.read) throw new NineError(phrase.permission, `${fid.path} cannot be read`);
  if (count === 0) return { type: Rread, tag, data: empty };
  const room = connection.budget.grant(count);
  const data = open.read(offset, room, call);
  return andThen(data instanceof Promise ? connection.budget.running(room, data) : data, (bytes) => ({
    type: Rread,
    tag,
    data: bytes.length > room ? bytes.subarray(0, room) : bytes,
  }));
}

export function write(connection: Connection, call: Call, message: Message<typeof Twrite>): Maybe<RMessage> {
  const fid = connection.fids.get(message.fid, call);
  const open = opened(fid);
  const kind = fid.mode & 3;
  if (kind === OREAD || kind === OEXEC)
    throw new ProtocolError(phrase.badFd, "the fid is open for reading only");
  if (!open.write) throw new NineError(phrase.permission, `${fid.path} cannot be written`);
  if (message.data.length === 0) return { type: Rwrite, tag: call.tag, count: 0 };
  const offset = Number(message.offset);
  if (!fid.lastWrite) return inOrder(fid, give(open, call, offset, message.data));
  const queued = connection.budget.queue(message.data);
  const earlier = fid.lastWrite;
  return inOrder(
    fid,
    earlier.then(() => {
      connection.budget.unqueue(queued);
      call.check();
      return give(open, call, offset, queued);
    }),
  );
}

function opened(fid: Fid): OpenFile {
  if (!fid.open) throw new ProtocolError(phrase.badFd, "the fid is not open");
  return fid.open;
}

function give(open: OpenFile, call: Call, offset: number, data: Uint8Array): Maybe<RMessage> {
  const { length } = data;
  return andThen(open.write!(offset, data, call), (taken) => {
    // Clients that get 0 for something try again for ever.
    if (taken <= 0) throw new NineError(phrase.io, "nothing was written");
    return { type: Rwrite, tag: call.tag, count: Math.min(taken, length) };
  });
}

/** Lets the next write of the fid wait for this one, if it takes time. */
function inOrder(fid: Fid, reply: Maybe<RMessage>): Maybe<RMessage> {
  if (!(reply instanceof Promise)) return reply;
  const done = () => {
    if (fid.lastWrite === settled) fid.lastWrite = undefined;
  };
  const settled: Promise<void> = reply.then(done, done);
  fid.lastWrite = settled;
  return reply;
}
