/** Bun's sockets as byte streams. */
import type { Socket, SocketHandler } from "bun";
import type { ByteStream, StreamUser } from "./stream.ts";

export class SocketStream implements ByteStream {
  private user?: StreamUser;

  constructor(private readonly socket: Socket<SocketStream | undefined>) {}

  attach(user: StreamUser): void {
    this.user = user;
  }

  write(bytes: Uint8Array): number {
    // A closed socket takes -1 bytes; its end is told by `closed`.
    return Math.max(0, this.socket.write(bytes));
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  close(): void {
    this.socket.end();
  }

  /** The callbacks for `Bun.listen` and `Bun.connect`; `open` makes the stream and puts it into `socket.data`. */
  static handlers(
    open: (socket: Socket<SocketStream | undefined>) => SocketStream | undefined,
  ): SocketHandler<SocketStream | undefined, "buffer"> {
    return {
      binaryType: "buffer",
      open(socket) {
        socket.data = open(socket);
      },
      data(socket, chunk) {
        socket.data?.user?.receive(chunk);
      },
      drain(socket) {
        socket.data?.user?.drained();
      },
      close(socket) {
        socket.data?.user?.closed();
      },
      // `close` follows and says all there is to say.
      error() {},
    };
  }
}
