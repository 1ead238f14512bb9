/** sudo on this host, asked before a call runs as root; and the passwords that the client has sent for its operations. */
import type { z } from "zod";
import { findSudo, sudoHere } from "../../../tools/sudo-door.ts";
import type { sudoAnswer } from "../../protocol/operation.ts";

type Answer = z.infer<typeof sudoAnswer>;

/** Milliseconds after which a password that nothing has used is forgotten. */
const keptFor = 60_000;
const noSudo = { program: "", password: false, refused: "sudo is not installed on that host" };

/** Never on disk. */
export class Passwords {
  readonly #kept = new Map<string, { secret: Uint8Array; timer: ReturnType<typeof setTimeout> }>();

  keep(opId: string, secret: Uint8Array): void {
    this.forget(opId);
    const timer = setTimeout(() => this.forget(opId), keptFor);
    timer.unref();
    this.#kept.set(opId, { secret, timer });
  }

  /** Whoever takes it clears it. */
  take(opId: string): Uint8Array | undefined {
    const kept = this.#kept.get(opId);
    if (!kept) return undefined;
    clearTimeout(kept.timer);
    this.#kept.delete(opId);
    return kept.secret;
  }

  /** A copy, to be cleared as well. */
  look(opId: string): Uint8Array | undefined {
    const kept = this.#kept.get(opId);
    // `slice` of a Buffer is no copy.
    return kept && Uint8Array.from(kept.secret);
  }

  forget(opId: string): void {
    this.take(opId)?.fill(0);
  }

  clear(): void {
    for (const opId of [...this.#kept.keys()]) this.forget(opId);
  }
}

export async function probe(tmp: string): Promise<Answer> {
  const program = findSudo();
  if (program === undefined) return noSudo;
  const found = await sudoHere({ program, tmp }).probe(new AbortController().signal);
  return "refused" in found ? { program, password: false, refused: found.refused } : found;
}

/** `password` of the answer: another one is wanted. */
export async function check(tmp: string, password: Uint8Array | undefined): Promise<Answer> {
  const program = findSudo();
  if (program === undefined) return noSudo;
  if (!password) return { program, password: true };
  try {
    const found = await sudoHere({ program, tmp }).check(password, new AbortController().signal);
    if (typeof found !== "string") return { program, password: false, refused: found.refused };
    return { program, password: found === "wrong" };
  } finally {
    password.fill(0);
  }
}
