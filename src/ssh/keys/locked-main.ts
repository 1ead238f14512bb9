/** The other process of `locked.ts`. */
import ssh2 from "ssh2";
import type { LockedAnswer, LockedRequest } from "./locked.ts";

/** Answers one request on stdin. */
export async function answerLocked(): Promise<void> {
  const request = (await Bun.stdin.json()) as LockedRequest;
  await Bun.write(Bun.stdout, JSON.stringify(answer(request)));
}

function answer({ key, passphrase, data, hash }: LockedRequest): LockedAnswer {
  const parsed = ssh2.utils.parseKey(Buffer.from(key, "base64"), Buffer.from(passphrase, "base64"));
  if (parsed instanceof Error) return { error: parsed.message };
  if (data === undefined) return { public: parsed.getPublicSSH().toString("base64") };
  const signature = parsed.sign(Buffer.from(data, "base64"), hash) as Buffer | Error;
  return signature instanceof Error
    ? { error: signature.message }
    : { signature: signature.toString("base64") };
}

if (import.meta.main) await answerLocked();
