/** Folders on the host that are ours alone: BASE for programs and tools, ROOT for sessions, one for sockets. */
import { accessSync, chmodSync, constants, lstatSync, mkdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { defaultState, type Environment, home } from "../../config/paths.ts";
import { coded } from "../protocol/errors.ts";

/** The places that the bootstrap tries, in its order. */
function candidates(environment: Environment): string[] {
  const { OLLIE_DIR: own, XDG_RUNTIME_DIR: runtime } = environment;
  const uid = process.geteuid!();
  return [
    join(home(environment), ".cache/ollie"),
    ...(own ? [own] : []),
    ...(runtime ? [join(runtime, "ollie-remote")] : []),
    `/var/tmp/ollie-${uid}`,
    `/dev/shm/ollie-${uid}`,
  ].filter(isAbsolute);
}

/**
 * The first place that is ours alone and can be written; made where it is not there.
 * @throws CodedFault `boot.no_base` that says why each of them is none
 */
export function baseFolder(environment: Environment): string {
  return firstOwn(candidates(environment), (reasons) =>
    coded("boot.no_base", `no folder for programs on this host: ${reasons}`, {
      hint: "set OLLIE_DIR to one that its user can write",
    }),
  );
}

/**
 * The folder for sockets: the user's own, in memory. Short, since a socket's path has 107 bytes at most.
 * @throws CodedFault `session.runtime` that says why each of them is none
 */
export function runtimeFolder({ XDG_RUNTIME_DIR: runtime = "" }: Environment): string {
  const name = `ollie-remote-${process.geteuid!()}`;
  const own = isAbsolute(runtime) && runtime.length < 50 ? [join(runtime, "ollie-remote")] : [];
  const shared = ["/tmp", "/var/tmp", "/dev/shm"].map((folder) => join(folder, name));
  return firstOwn([...own, ...shared], (reasons) =>
    coded("session.runtime", `no folder for sockets on this host: ${reasons}`, {
      hint: "one of them must be a folder that is yours, with mode 0700",
    }),
  );
}

/** `--root`, else the state folder of the user, else one below BASE. */
export function rootFolder(environment: Environment, base: string, flag?: string): string {
  if (flag !== undefined) return ownFolder(flag);
  try {
    return ownFolder(join(defaultState(environment), "remote"));
  } catch {
    return ownFolder(join(base, "state"));
  }
}

function firstOwn(folders: readonly string[], none: (reasons: string) => Error): string {
  const reasons: string[] = [];
  for (const folder of folders) {
    try {
      return ownFolder(folder);
    } catch (error) {
      reasons.push(`${folder}: ${(error as Error).message}`);
    }
  }
  throw none(reasons.join("; "));
}

/**
 * Makes the folder, or sees that nobody else can write it, and that nobody else has made it.
 * @throws Error that says why it is of no use
 */
export function ownFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Error("it is no folder");
  if (stat.uid !== process.geteuid!()) throw new Error(`it belongs to user ${stat.uid}`);
  if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
  accessSync(folder, constants.W_OK | constants.X_OK);
  return folder;
}
