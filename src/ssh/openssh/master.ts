/** The ssh process that holds a connection: one of our own, or one that the user has already. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { Tail } from "../flow.ts";
import type { Askpass } from "../transport.ts";

export interface Master {
  /** Resolves when the connection is gone. */
  readonly ended: Promise<void>;
  /** What it had to say. */
  readonly said: string;
  stop(): void;
}

/**
 * Runs a master until stdin ends, which it does with this process, however that ends. ssh gets a moment to tell the processes it goes
 * through.
 */
const guarded = `exec 3<&0
"$@" 3<&- </dev/null & ssh=$!
{ read -r _ <&3; kill $ssh; sleep 2; kill -9 $ssh; } >/dev/null 2>&1 & guard=$!
exec 3<&-
wait $ssh; status=$?
kill $guard 2>/dev/null
exit $status`;
/** Between two looks whether the master stands. Milliseconds. */
const pause = 10;

export class OwnMaster implements Master {
  readonly ended: Promise<void>;
  private readonly tail = new Tail();
  private readonly child;

  constructor(command: string[], env: Record<string, string | undefined>, people: Askpass | undefined) {
    // A group of its own: what is typed at a terminal to stop this process is not meant for it.
    const child = spawn("/bin/sh", ["-c", guarded, "sh", ...command], {
      env,
      stdio: ["pipe", "ignore", "pipe"],
      detached: true,
    });
    this.child = child;
    child.stdin.on("error", () => {});
    child.stderr.on("data", (bytes: Buffer) => {
      this.tail.push(bytes);
      const [presence] = /^Confirm user presence.*/m.exec(bytes.toString()) ?? [];
      if (presence) people?.notice(presence);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    child.on("error", () => resolve());
    child.on("close", () => resolve());
  }

  get said(): string {
    return this.tail.text;
  }

  stop(): void {
    this.child.stdin.end();
  }

  /** Until its socket is there, which it is after the login. @throws this master where it ends before that */
  async standing(socket: string, signal: AbortSignal): Promise<void> {
    let ended = false;
    this.ended.then(() => {
      ended = true;
    });
    while (!existsSync(socket)) {
      if (ended) throw this;
      signal.throwIfAborted();
      await Bun.sleep(pause);
    }
  }
}

/** A master that somebody else has started and that goes on without us. */
export class BorrowedMaster implements Master {
  readonly ended: Promise<void>;
  readonly said = "the ssh that held it has ended";
  private readonly socket: Socket;

  /** @param path of its control socket: a client that asks for nothing sees when it ends */
  constructor(path: string) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.socket = connect(path);
    this.socket.on("error", () => {});
    this.socket.on("close", () => resolve());
    this.socket.resume();
  }

  stop(): void {
    this.socket.destroy();
  }
}
