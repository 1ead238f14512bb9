/** Signatures by a key with a passphrase, made in a process of their own: the derivation of its cipher's key takes half a second of pure
 * JavaScript, in which this process would do nothing else. */
import { ownCommand } from "../own.ts";

/** To the other process, a JSON text on stdin; never in arguments or the environment. Bytes are in base64. */
export interface LockedRequest {
  key: string;
  passphrase: string;
  /** Nothing to sign: only the public half is asked for. */
  data?: string;
  hash?: string;
}

export interface LockedAnswer {
  public?: string;
  signature?: string;
  error?: string;
}

/** Milliseconds; some keys were made with many rounds. */
const limit = 60_000;

/** @throws Error with what ssh2 says of a key that it cannot read */
export async function unlock(
  key: Buffer,
  passphrase: Uint8Array,
  sign: { data: Buffer; hash?: string } | undefined,
  signal: AbortSignal,
): Promise<Buffer> {
  const request: LockedRequest = {
    key: key.toString("base64"),
    passphrase: Buffer.from(passphrase).toString("base64"),
    data: sign?.data.toString("base64"),
    hash: sign?.hash,
  };
  const child = Bun.spawn(ownCommand("ssh-key", "keys/locked-main.ts"), {
    env: {},
    stdin: Buffer.from(JSON.stringify(request)),
    stdout: "pipe",
    stderr: "ignore",
    timeout: limit,
    signal,
  });
  const [text] = await Promise.all([child.stdout.text(), child.exited]);
  if (text === "") throw new Error("the process that reads the key has ended without an answer");
  const answer = JSON.parse(text) as LockedAnswer;
  const bytes = answer.signature ?? answer.public;
  if (bytes === undefined) throw new Error(answer.error);
  return Buffer.from(bytes, "base64");
}
