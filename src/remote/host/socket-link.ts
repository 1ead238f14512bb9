/** A socket as the two ends that a Peer wants: bytes in, and a sink that holds back. */
import type { Socket } from "bun";
import { coded } from "../protocol/errors.ts";
import type { Sink } from "../protocol/peer.ts";
import { passes } from "./garbage.ts";

export class SocketLink implements Sink {
  /** Gets what comes. */
  onBytes: (bytes: Uint8Array) => void = () => {};
  onClose: () => void = () => {};
  #waiting?: { resolve(): void; reject(error: Error): void };
  #closed = false;

  constructor(private readonly socket: Socket<SocketLink | undefined>) {}

  static handlers(open?: (link: SocketLink) => void) {
    return {
      binaryType: "buffer" as const,
      open(socket: Socket<SocketLink | undefined>) {
        socket.data = new SocketLink(socket);
        open?.(socket.data);
      },
      data(socket: Socket<SocketLink | undefined>, bytes: Buffer) {
        passes(bytes.length);
        socket.data?.onBytes(bytes);
      },
      drain(socket: Socket<SocketLink | undefined>) {
        socket.data?.drained();
      },
      close(socket: Socket<SocketLink | undefined>) {
        socket.data?.ended();
      },
      error() {},
    };
  }

  /** @throws as `connect(2)` */
  static async connect(path: string): Promise<SocketLink> {
    const socket = await Bun.connect<SocketLink | undefined>({ unix: path, socket: SocketLink.handlers() });
    return socket.data!;
  }

  async write(bytes: Uint8Array): Promise<void> {
    passes(bytes.length);
    let left = bytes;
    while (left.length > 0) {
      if (this.#closed) throw coded("proto.closed", "the daemon has closed the connection", { retry: true });
      const taken = Math.max(0, this.socket.write(left));
      left = left.subarray(taken);
      if (left.length > 0) await this.#room();
    }
  }

  end(): void {
    this.socket.end();
  }

  #room(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed) resolve();
      else this.#waiting = { resolve, reject };
    });
  }

  drained(): void {
    this.#waiting?.resolve();
    this.#waiting = undefined;
  }

  ended(): void {
    this.#closed = true;
    this.drained();
    this.onClose();
  }
}
