/** Where this ollie-remote keeps its things on a host, by the flags that it was started with and by where it lies itself. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Environment, home } from "../../config/paths.ts";
import { ownProgram } from "../../exec/own.ts";
import { coded } from "../protocol/errors.ts";
import { baseFolder, rootFolder } from "./own-folder.ts";

export interface Places {
  home: string;
  /** Programs, tools and blobs: `bin/`, `tools/HASH/`, `blobs/`. What is below it can be had again. */
  base: string;
  /** Sessions and their journals. */
  root: string;
  /** The hard policy, if the client's command names one. */
  policy?: string;
}

const named = /^ollie-remote-([0-9a-f]{64})$/;

/**
 * @param flags of `ollie-remote serve` and `ollie-remote daemon`
 * @throws CodedFault `boot.no_base`, `session.root` where nothing can be kept anywhere
 */
export function placesOf(
  environment: Environment,
  flags: { root?: string; base?: string; policy?: string } = {},
): Places {
  const program = ownProgram();
  // Where the bootstrap has found room for this program there is room for its tools.
  const beside = named.test(basename(program)) ? dirname(dirname(program)) : undefined;
  const base = flags.base ?? beside ?? baseFolder(environment);
  try {
    return {
      home: home(environment),
      base,
      root: rootFolder(environment, base, flags.root),
      policy: flags.policy,
    };
  } catch (error) {
    throw coded("session.root", `sessions cannot be kept on this host: ${(error as Error).message}`, {
      hint: "name another folder as remote_session_root in remotes.yaml",
    });
  }
}

/** SHA-256 of this program: its name says it where the bootstrap has put it. */
export async function ownDigest(): Promise<string> {
  const program = ownProgram();
  const known = named.exec(basename(program))?.[1];
  if (known) return known;
  const hash = createHash("sha256");
  for await (const piece of createReadStream(program)) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}

export function sessionsFolder(root: string): string {
  return join(root, "sessions");
}

export function sessionFolder(root: string, id: string): string {
  return join(sessionsFolder(root), id);
}
