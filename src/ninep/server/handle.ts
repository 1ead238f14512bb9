/** Which function answers which request. */

import { phrase } from "../errors.ts";
import type { Maybe } from "../file.ts";
import * as m from "../messages.ts";
import { ProtocolError } from "../wire.ts";
import type { Call } from "./call.ts";
import type { Connection } from "./connection.ts";
import { clunk, remove } from "./end.ts";
import { read, write } from "./io.ts";
import { create, open } from "./open.ts";
import { stat, wstat } from "./stat.ts";
import { attach, walk } from "./walk.ts";

/** The reply, now or later; undefined when it goes out with that of another request. */
export function handle(
  connection: Connection,
  call: Call,
  message: m.TMessage,
): Maybe<m.RMessage | undefined> {
  switch (message.type) {
    case m.Tread:
      return read(connection, call, message);
    case m.Twrite:
      return write(connection, call, message);
    case m.Twalk:
      return walk(connection, call, message);
    case m.Topen:
      return open(connection, call, message);
    case m.Tclunk:
      return clunk(connection, call, message);
    case m.Tstat:
      return stat(connection, call, message);
    case m.Twstat:
      return wstat(connection, call, message);
    case m.Tcreate:
      return create(connection, call, message);
    case m.Tremove:
      return remove(connection, call, message);
    case m.Tattach:
      return attach(connection, call, message);
    case m.Tflush:
      return connection.flushRequest(call, message.oldtag);
    case m.Tversion:
      return connection.version(message);
    case m.Tauth:
      throw new ProtocolError(phrase.noSys, "no authentication is needed");
  }
}
