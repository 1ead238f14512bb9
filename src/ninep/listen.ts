/** Serving on unix sockets that are their owner's alone, and on the loopback for those who may have no unix socket. */
import { type Fault, toFault } from "../fault.ts";
import { type Admission, byToken, newToken, ownersOnly, placeToken, removeToken } from "./admission.ts";
import { confinementOf } from "./confinement.ts";
import { checkLength, claim, privateFolder } from "./folder.ts";
import { type Credentials, peerCredentials } from "./libc.ts";
import type { Server } from "./server.ts";
import { SocketStream } from "./socket.ts";

export interface ListenOptions {
  /** Admit only processes of the user that the server runs as. */
  checkUid?: boolean;
  /** Told of everyone who was not admitted. */
  onDenied?(who: Partial<Credentials>, reason: string): void;
  /**
   * A process that may be a sandboxed one must show the token that lies beside the socket (`admission.ts`). Told where none could be
   * put there: then such a process cannot come in at all.
   */
  ownersOnly?: { onNoToken(fault: Fault): void };
  /** For whom everybody acts who comes in here: `Peer.as`. */
  as?: object;
}

export interface Listener {
  readonly path: string;
  /** Admits nobody any more and removes the socket. Connections live on: `Server.close` ends them. */
  stop(): void;
}

/**
 * Listens on `path`: makes its folder (0700) and the socket (0600), and takes the place of a socket whose server is dead. A Fault
 * says why it cannot be: the folder is another user's, the path is too long, or a server is listening there (kind "busy").
 */
export async function listenUnix(
  path: string,
  server: Server,
  options: ListenOptions = {},
): Promise<Listener> {
  checkLength(path);
  privateFolder(path);
  const release = await claim(path);
  try {
    const token = options.ownersOnly && offerToken(path, options.ownersOnly.onNoToken);
    const listener = bindUnix(path, server, options, token);
    const stop = () => {
      listener.stop();
      if (token) removeToken(path);
      release();
    };
    return { path, stop };
  } catch (error) {
    release();
    throw toFault(error, `the socket ${path} cannot be made`);
  }
}

/** There before the socket is, so that whoever can connect finds the right one. */
function offerToken(path: string, onNoToken: (fault: Fault) => void): string {
  const token = newToken();
  try {
    placeToken(path, token);
  } catch (error) {
    onNoToken(toFault(error));
  }
  return token;
}

/** Listens on a path that is free, in a folder that is private. */
export function bindUnix(path: string, server: Server, options: ListenOptions, token?: string): Listener {
  // With the umask the socket never exists with a wider mode; a chmod after the bind would come too late.
  const mask = process.umask(0o177);
  try {
    const listener = Bun.listen<SocketStream | undefined>({
      unix: path,
      socket: SocketStream.handlers((socket) => {
        const { fd } = socket as { fd?: number };
        const who = admitted(fd, options);
        const stream = new SocketStream(socket);
        if (who) server.serve(stream, { ...who, ...tagged(options), ...judged(fd, who, token) });
        else socket.end();
        return stream;
      }),
    });
    return { path, stop: () => listener.stop() };
  } finally {
    process.umask(mask);
  }
}

/** Listens on a free port of 127.0.0.1, which every user of the host can reach: who attaches must show the token. */
export function listenLoopback(server: Server, token: string, as?: object): { port: number; stop(): void } {
  const admit = byToken(token);
  const listener = Bun.listen<SocketStream | undefined>({
    hostname: "127.0.0.1",
    port: 0,
    socket: SocketStream.handlers((socket) => {
      const stream = new SocketStream(socket);
      server.serve(stream, { ...tagged({ as }), admit });
      return stream;
    }),
  });
  return { port: listener.port, stop: () => listener.stop() };
}

function tagged({ as }: { as?: object }): { as?: object } {
  return as ? { as } : {};
}

/** Judged now, while the process that has connected is most likely still there. */
function judged(
  fd: number | undefined,
  { pid }: Partial<Credentials>,
  token: string | undefined,
): { admit?: Admission } {
  if (token === undefined) return {};
  return { admit: ownersOnly(token, confinementOf(fd ?? -1, pid ?? 0)) };
}

/** The peer's credentials, or undefined if it may not come in. */
function admitted(fd: number | undefined, options: ListenOptions): Partial<Credentials> | undefined {
  let who: Partial<Credentials> = {};
  let reason: string;
  try {
    who = peerCredentials(fd ?? -1);
    const mine = process.geteuid!();
    if (who.uid === mine) return who;
    reason = `user ${who.uid} is not user ${mine}, whose server this is`;
  } catch (error) {
    reason = (error as Error).message;
  }
  if (!options.checkUid) return who;
  options.onDenied?.(who, reason);
  return undefined;
}
