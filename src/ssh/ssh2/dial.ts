/** The stream of bytes that SSH is spoken on. */
import { spawn } from "node:child_process";
import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Settings } from "../config/settings.ts";
import { connectFault } from "../fault.ts";
import { Tail } from "../flow.ts";

/** Something that carries SSH, and how it can be got rid of. */
export interface Carrier {
  stream: Duplex;
  /** Says why there is nothing at the other end, where it knows. */
  reason?(): string;
  close(): void;
}

/** TCP, one address of the name after the other. @throws Fault `ssh.unreachable`, `ssh.refused` */
export async function dial(settings: Settings, signal: AbortSignal): Promise<Carrier> {
  const { host, port, family, bindAddress } = settings;
  const place = port === 22 ? host : `${host} port ${port}`;
  let failed: unknown;
  try {
    const addresses = isIP(host)
      ? [{ address: host }]
      : await abortable(lookup(host, { all: true, family: family ?? 0 }), signal);
    for (const { address } of addresses) {
      try {
        const socket = await open(address, port, bindAddress, signal);
        return { stream: socket, close: () => socket.destroy() };
      } catch (error) {
        if (signal.aborted) throw error;
        failed = error;
      }
    }
  } catch (error) {
    signal.throwIfAborted();
    failed = error;
  }
  throw connectFault(failed, place);
}

function open(
  host: string,
  port: number,
  localAddress: string | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, localAddress });
    const done = (error?: unknown) => {
      signal.removeEventListener("abort", abort);
      socket.removeListener("error", done);
      if (error === undefined) resolve(socket);
      else {
        // Bun may tell of a socket that is already given up.
        socket.on("error", () => {});
        socket.destroy();
        reject(error);
      }
    };
    const abort = () => done(signal.reason);
    signal.addEventListener("abort", abort);
    socket.once("error", done);
    socket.once("connect", () => {
      // Small packets follow each other in the handshake: waiting for their acknowledgements costs 40 ms each time.
      socket.setNoDelay(true);
      done();
    });
    if (signal.aborted) abort();
  });
}

/** `ProxyCommand`: run by the user's shell as ssh does, so that it means the same. */
export function runProxy(command: string): Carrier {
  const child = spawn(process.env.SHELL || "/bin/sh", ["-c", `exec ${command}`], {
    env: { ...process.env },
    stdio: ["pipe", "pipe", "pipe"],
    // A group of its own: a shell that does not `exec` leaves children.
    detached: true,
  });
  const said = new Tail();
  const { pid } = child;
  const close = () => {
    stream.destroy();
    try {
      if (pid !== undefined) process.kill(-pid, "SIGTERM");
    } catch {
      // has ended
    }
  };
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (bytes, _encoding, done) => void child.stdin.write(bytes, (error) => done(error)),
    final: (done) => void child.stdin.end(() => done()),
  });
  child.stdout.on("data", (bytes) => {
    if (!stream.push(bytes)) child.stdout.pause();
  });
  child.stderr.on("data", (bytes) => said.push(bytes));
  // What it said last comes before the end of the stream.
  child.on("close", () => stream.push(null));
  child.on("error", (error) => stream.destroy(error));
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
  return { stream, reason: () => said.text.trim().slice(-500), close };
}

async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stop = Promise.withResolvers<never>();
  const abort = () => stop.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    return await Promise.race([work, stop.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
