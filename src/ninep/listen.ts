/** Serving on a unix socket that is its owner's alone. */
import { Fault, toFault } from "../fault.ts";
import { claim, privateFolder } from "./folder.ts";
import { type Credentials, peerCredentials } from "./libc.ts";
import type { Server } from "./server.ts";
import { SocketStream } from "./socket.ts";

/** `sun_path` of `unix(7)`, less the final NUL. */
const maxPath = 107;

export interface ListenOptions {
  /** Admit only processes of the user that the server runs as. */
  checkUid?: boolean;
  /** Told of everyone who was not admitted. */
  onDenied?(who: Partial<Credentials>, reason: string): void;
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
  if (Buffer.byteLength(path) > maxPath) {
    throw new Fault(
      "invalid",
      `the socket path ${path} is longer than ${maxPath} bytes, choose a shorter one`,
    );
  }
  privateFolder(path);
  const release = await claim(path);
  try {
    const listener = bind(path, server, options);
    const stop = () => {
      listener.stop();
      release();
    };
    return { path, stop };
  } catch (error) {
    release();
    throw toFault(error, `the socket ${path} cannot be made`);
  }
}

function bind(path: string, server: Server, options: ListenOptions) {
  // With the umask the socket never exists with a wider mode; a chmod after the bind would come too late.
  const mask = process.umask(0o177);
  try {
    return Bun.listen<SocketStream | undefined>({
      unix: path,
      socket: SocketStream.handlers((socket) => {
        const who = admit((socket as { fd?: number }).fd, options);
        const stream = new SocketStream(socket);
        if (who) server.serve(stream, who);
        else socket.end();
        return stream;
      }),
    });
  } finally {
    process.umask(mask);
  }
}

/** The peer's credentials, or undefined if it may not come in. */
function admit(fd: number | undefined, options: ListenOptions): Partial<Credentials> | undefined {
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
