/** What a Tattach must show before it gets a tree: nothing, or a token, carried as the aname `token:HEX`. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { toFault } from "../fault.ts";
import type { Confinement } from "./confinement.ts";
import { NineError, phrase } from "./errors.ts";

/** Throws the NineError that refuses the Tattach. `token`: what it has shown, if anything. */
export type Admission = (token: string | undefined) => void;

const prefix = "token:";

/** The two things that an aname may say. */
export function splitAname(aname: string): { token?: string; aname: string } {
  return aname.startsWith(prefix) ? { token: aname.slice(prefix.length), aname: "" } : { aname };
}

export function anameOf(token: string): string {
  return prefix + token;
}

/** 256 random bits in hexadecimal. */
export function newToken(): string {
  return randomBytes(32).toString("hex");
}

/** Nobody comes in without this token. */
export function byToken(token: string): Admission {
  const right = same(token);
  return (shown) => {
    if (shown === undefined)
      throw new NineError(
        phrase.permission,
        "this address needs the token of OLLIE_TOKEN: attach as token:HEX",
      );
    if (!right(shown)) throw wrong();
  };
}

/**
 * The owner comes in. A process that may be a sandboxed one is taken for the owner only if it shows the token, which lies where no
 * sandbox can read it.
 */
export function ownersOnly(token: string, judged: Confinement): Admission {
  const right = same(token);
  return (shown) => {
    if (shown !== undefined) {
      if (!right(shown)) throw wrong();
    } else if (judged === "confined")
      throw new NineError(
        phrase.permission,
        "no-new-privs is set, as in a sandbox: tools use their OLLIE_ADDR, others the token beside the socket",
      );
    else if (judged === "unknown")
      throw new NineError(
        phrase.permission,
        "the process that connected cannot be looked at; show the token that lies beside the socket",
      );
  };
}

function wrong(): NineError {
  return new NineError(phrase.permission, "the token is wrong; the server may have been started anew since");
}

/** Compares in a time that tells nothing about the token; digests have one length whatever was shown. */
function same(token: string): (shown: string) => boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  const expected = digest(token);
  return (shown) => timingSafeEqual(digest(shown), expected);
}

/** Where the token for the owner's socket lies, so that whoever knows the address finds it. */
export function tokenFile(socket: string): string {
  return `${socket}.token`;
}

/** Puts a token beside the socket, for its owner alone. Throws a Fault where that is not possible. */
export function placeToken(socket: string, token: string): void {
  const file = tokenFile(socket);
  try {
    // Renamed into place: what stands there from before may be open, or have another mode.
    writeFileSync(`${file}.new`, `${token}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    rmSync(`${file}.new`, { force: true });
    throw toFault(error, `the token ${file} cannot be written`);
  }
}

export function removeToken(socket: string): void {
  rmSync(tokenFile(socket), { force: true });
}

/** The token for the owner's socket; undefined where there is none, or none for us. */
export function readToken(socket: string): string | undefined {
  try {
    const token = readFileSync(tokenFile(socket), "utf8").trim();
    return /^[0-9a-f]{64}$/.test(token) ? token : undefined;
  } catch {
    return undefined;
  }
}
