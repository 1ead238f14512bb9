/** What the sandboxes of a server are made from: see `groundOf`. */
import type { Config } from "../config/config.ts";
import { tokenFile } from "../ninep/admission.ts";
import { defaultAddress, fallbackAddress, parseAddress, serviceAddress } from "../ninep/dial.ts";
import { annex } from "../ninep/folder.ts";
import type { SandboxGround } from "../sandbox/ground.ts";
import { launchFolder } from "../sandbox/places.ts";

/**
 * What policies are made from, for a server of this configuration.
 * @param listen dial strings of the server; the usual ones are added, since another server may listen there
 * @param covers as in `SandboxGround`
 */
export function groundOf(
  { paths, environment }: Pick<Config, "paths" | "environment">,
  listen: readonly string[] = [],
  covers = false,
): SandboxGround {
  const uid = process.geteuid!();
  const { XDG_RUNTIME_DIR, OLLIE_ELEVATE_SOCKET } = environment;
  const usual = [
    defaultAddress(environment, uid),
    defaultAddress({ XDG_RUNTIME_DIR }, uid),
    fallbackAddress(uid),
    serviceAddress(environment, uid) ?? [],
  ].flat();
  const sockets = [...listen, ...usual].flatMap(socketOf).flatMap(withNeighbours);
  if (OLLIE_ELEVATE_SOCKET?.startsWith("/")) sockets.push(OLLIE_ELEVATE_SOCKET);
  return { paths, environment, sockets: [...new Set(sockets)], covers };
}

/** A socket, and what a server puts beside it. */
export function withNeighbours(socket: string): string[] {
  return [socket, tokenFile(socket), annex(socket), launchFolder(socket)];
}

/** None where the address is no path; a mistake in one is told elsewhere. */
function socketOf(address: string): string[] {
  try {
    const parsed = parseAddress(address);
    return parsed.net === "unix" && parsed.path.startsWith("/") ? [parsed.path] : [];
  } catch {
    return [];
  }
}
