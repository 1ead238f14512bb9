/** SSH connections, one a target, shared by all sessions that have theirs there. */
import type { Fault } from "../../fault.ts";
import { connect } from "../../ssh/connect.ts";
import type { Askpass, Connect, SshConnection, SshTarget } from "../../ssh/transport.ts";

export interface Lease {
  readonly connection: SshConnection;
  /** The last one closes the connection. A second time it does nothing. */
  release(): void;
}

interface Shared {
  readonly opening: Promise<SshConnection>;
  /** Ends the attempt when nobody waits for it any more. */
  readonly attempt: AbortController;
  connection?: SshConnection;
  users: number;
}

/** Milliseconds for a connection that stood idle to show that it still stands. */
const probeLimit = 10_000;

export class Connections {
  readonly #shared = new Map<string, Shared>();

  constructor(private readonly dial: Connect = connect) {}

  /**
   * The connection to a target, made if there is none. One that is there already is asked for a sign of life first: after a sleep it may look
   * well and be dead.
   * @throws CodedFault of the family `ssh`
   */
  async lease(target: SshTarget, askpass: Askpass | undefined, signal: AbortSignal): Promise<Lease> {
    signal.throwIfAborted();
    const key = JSON.stringify(target);
    const old = this.#shared.get(key);
    if (old?.connection && !(await answers(old.connection))) this.#forget(key, old);
    const shared = this.#shared.get(key) ?? this.#open(key, target, askpass);
    shared.users++;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      if (--shared.users > 0) return;
      this.#forget(key, shared);
      shared.attempt.abort();
      shared.connection?.close();
    };
    try {
      return { connection: await untilAborted(shared.opening, signal), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #open(key: string, target: SshTarget, askpass: Askpass | undefined): Shared {
    const attempt = new AbortController();
    const opening = this.dial(target, askpass, attempt.signal);
    const shared: Shared = { opening, attempt, users: 0 };
    this.#shared.set(key, shared);
    opening.then(
      (connection) => {
        shared.connection = connection;
        if (attempt.signal.aborted) connection.close();
        connection.closed.then(() => this.#forget(key, shared));
      },
      () => this.#forget(key, shared),
    );
    return shared;
  }

  #forget(key: string, shared: Shared): void {
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }
}

async function answers(connection: SshConnection): Promise<boolean> {
  try {
    await connection.probe(probeLimit);
    return true;
  } catch {
    return false;
  }
}

/** Waits no longer than the signal lets it. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason as Fault);
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
