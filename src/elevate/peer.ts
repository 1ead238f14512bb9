/** Who is at the other end of the approval socket: only the user himself, outside of every sandbox, may ask or answer there. */
import { readFileSync } from "node:fs";
import { confinementOf } from "../ninep/confinement.ts";
import { peerCredentials } from "../ninep/libc.ts";

/** Why the peer of a unix socket is not to be trusted, or undefined if it is. */
export function distrust(fd: number | undefined): string | undefined {
  try {
    const { uid, pid } = peerCredentials(fd ?? -1);
    const mine = process.geteuid!();
    if (uid !== mine) return `it belongs to user ${uid} and not to user ${mine}`;
    if (weAreConfined() || confinementOf(fd!, pid) === "free") return undefined;
    return `process ${pid} runs in a sandbox, or has ended`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Where everything has no-new-privs, as in some containers, the flag says nothing of a sandbox. */
function weAreConfined(): boolean {
  return /^NoNewPrivs:\s*1$/m.test(readFileSync("/proc/self/status", "utf8"));
}
