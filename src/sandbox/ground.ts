import type { Config } from "../config/config.ts";
import { defaultAddress, namespaceFolder, parseAddress } from "../ninep/dial.ts";
import type { SandboxGround } from "./sandbox.ts";

/**
 * What policies are made from, for a server of this configuration.
 * @param listen dial strings of the server; the usual ones are added, since another server may listen there
 */
export function groundOf(
  { paths, environment }: Pick<Config, "paths" | "environment">,
  listen: readonly string[] = [],
): SandboxGround {
  const uid = process.geteuid!();
  const namespace = namespaceFolder(environment, uid);
  const { XDG_RUNTIME_DIR } = environment;
  const usual = [
    defaultAddress(environment, uid),
    defaultAddress({ XDG_RUNTIME_DIR }, uid),
    `unix!/tmp/ollie-${uid}/9p`,
  ];
  const sockets = [...listen, ...usual, ...(namespace ? [`unix!${namespace}/ollie`] : [])].flatMap(socketOf);
  if (environment.OLLIE_ELEVATE_SOCKET?.startsWith("/")) sockets.push(environment.OLLIE_ELEVATE_SOCKET);
  return { paths, environment, sockets: [...new Set(sockets)] };
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
