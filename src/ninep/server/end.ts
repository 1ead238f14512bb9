/** How fids end: Tclunk, Tremove, and the loss of the connection. */
import { NineError, phrase } from "../errors.ts";
import type { CloseReason, Maybe } from "../file.ts";
import { andThen, failure } from "../maybe.ts";
import { type Message, Rclunk, type RMessage, Rremove, type Tclunk, type Tremove } from "../messages.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import type { Fid } from "./fid.ts";
import { checkParent } from "./open.ts";

export function clunk(connection: Connection, call: Call, message: Message<typeof Tclunk>): Maybe<RMessage> {
  const fid = leave(connection, call, message.fid);
  return andThen(endFid(connection, fid, "clunk", call), () => ({ type: Rclunk, tag: call.tag }));
}

/** remove(5): a clunk, whether the file could be removed or not. */
export function remove(
  connection: Connection,
  call: Call,
  message: Message<typeof Tremove>,
): Maybe<RMessage> {
  const fid = leave(connection, call, message.fid);
  fid.removeOnClose = false;
  const removed = andThen(quiet(connection, fid), () =>
    andThen(
      failure(() => removeFile(fid, call)),
      (error) =>
        andThen(close(connection, fid, "clunk", call), () => {
          if (error) throw error;
        }),
    ),
  );
  return andThen(connection.track(removed), () => ({ type: Rremove, tag: call.tag }));
}

/** The number is free from here on; the request that ends a fid is not part of the work that the end waits for. */
function leave(connection: Connection, call: Call, number: number): Fid {
  const fid = connection.fids.get(number, call);
  call.fid = undefined;
  connection.fids.delete(fid);
  return fid;
}

/**
 * Ends what may block, lets the writes that came before have their turn, and closes. The client's own order of pipelined requests is
 * kept that way: a write sent right before a clunk is not lost.
 */
export function endFid(connection: Connection, fid: Fid, reason: CloseReason, call: Call): Maybe<void> {
  return connection.track(andThen(quiet(connection, fid), () => close(connection, fid, reason, call)));
}

function quiet(connection: Connection, fid: Fid): Maybe<void> {
  if (!fid.pending?.size) return;
  for (const work of fid.pending) if (work.blocking) connection.interrupt(work);
  return new Promise((resolve) => {
    fid.idle = resolve;
  });
}

function close(connection: Connection, fid: Fid, reason: CloseReason, call: Call): Maybe<void> {
  connection.server.releaseExclusive(fid);
  const { open } = fid;
  fid.open = undefined;
  if (!fid.removeOnClose) return open?.close?.(reason, call);
  return andThen(
    failure(() => open?.close?.(reason, call)),
    (error) =>
      andThen(removeFile(fid, call), () => {
        if (error) throw error;
      }),
  );
}

function removeFile(fid: Fid, call: Call): Maybe<void> {
  const file = fid.file!;
  if (!file.remove) throw new NineError(phrase.permission, `${fid.path} cannot be removed`);
  return andThen(checkParent(file, "removed"), () => file.remove!(call));
}
