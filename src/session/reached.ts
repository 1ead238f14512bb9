/** Waiting for another host without asking anything of it. */
import type { SessionRemote } from "./remote.ts";

const quiet = { lost() {}, back() {} };

/** Resolves when it can be used, however long that takes and whatever somebody has to do for it. Rejects when `signal` is aborted. */
export async function reached(remote: SessionRemote, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await remote.hands.ready(signal, quiet);
    } catch {
      signal.throwIfAborted();
      await ready(remote, signal);
    }
  }
}

function ready(remote: SessionRemote, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      unwatch();
      signal.removeEventListener("abort", left);
    };
    const left = () => {
      end();
      reject(signal.reason);
    };
    const unwatch = remote.watch(() => {
      if (!remote.ready) return;
      end();
      resolve();
    });
    signal.addEventListener("abort", left, { once: true });
  });
}
