/** sudo of another host. A password is asked for here, and goes there in a message that nobody keeps. */
import type { z } from "zod";
import type { SudoDoor } from "../../tools/hands.ts";
import { sudoAnswer } from "../protocol/operation.ts";
import type { Peer } from "../protocol/peer.ts";
import type { RemoteLink } from "./link.ts";

/** Milliseconds: a PAM module that asks a server elsewhere may take its time. */
const patience = 65_000;

export function remoteSudo(link: RemoteLink, opId: string): SudoDoor {
  const ask = async (method: string, signal: AbortSignal, secret?: Uint8Array) => {
    const peer = await link.gate.wait(signal);
    if (secret) sendSecret(peer, opId, secret);
    const options = { schema: sudoAnswer, limit: patience, signal };
    return peer.request<z.infer<typeof sudoAnswer>>(method, { opId }, options);
  };
  return {
    async probe(signal) {
      const { program, password, refused } = await ask("sudo.probe", signal);
      return refused === undefined ? { program, password } : { refused };
    },
    async check(secret, signal) {
      // Whether a password is still wanted: this one was wrong.
      const { password, refused } = await ask("sudo.check", signal, secret);
      if (refused !== undefined) return { refused };
      return password ? "wrong" : "right";
    },
  };
}

/** To be followed at once by the request that it is for. */
export function sendSecret(peer: Peer, opId: string, secret: Uint8Array): void {
  peer.notify("op.secret", { opId, secret: Buffer.from(secret).toString("base64") });
}
