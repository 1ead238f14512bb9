import type { Config } from "../config/config.ts";
import type { Paths } from "../config/paths.ts";
import { defaultAddress, fallbackAddress, parseAddress, serviceAddress } from "../ninep/dial.ts";

/** What every policy of a server is made from. */
export interface SandboxGround {
  paths: Paths;
  /** The server's environment, for templates such as `{GOPATH}`. Sessions' own variables are not trusted with paths. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Sockets of the server and of whoever answers for the user; none is ever granted. */
  sockets: readonly string[];
  /** Whether mounts cover what a program is not to see (`src/sandbox/launch/mounts.ts`), also in a folder that it is given. */
  covers?: boolean;
}

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
  const { XDG_RUNTIME_DIR } = environment;
  const usual = [
    defaultAddress(environment, uid),
    defaultAddress({ XDG_RUNTIME_DIR }, uid),
    fallbackAddress(uid),
    serviceAddress(environment, uid) ?? [],
  ].flat();
  const sockets = [...listen, ...usual].flatMap(socketOf);
  if (environment.OLLIE_ELEVATE_SOCKET?.startsWith("/")) sockets.push(environment.OLLIE_ELEVATE_SOCKET);
  return { paths, environment, sockets: [...new Set(sockets)], covers };
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
