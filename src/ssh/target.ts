/** What a user may write for a host. */
import { isIPv6 } from "node:net";
import { sshFault } from "./fault.ts";

export interface Destination {
  user?: string;
  /** A name, an alias of the configuration, or an address without brackets. */
  host: string;
  port?: number;
}

/**
 * Characters that a shell or a line of known_hosts could take for something else: names get into ProxyCommand, `Match exec` and files.
 * The same ones as OpenSSH refuses, and everything that cannot be seen.
 */
const forbidden = /[\s\p{C}'"`$;&<>|(){}*?!#,]/u;

function refuse(name: string, why: string): never {
  throw sshFault(
    "ssh.config",
    `${JSON.stringify(name)} is no host: ${why}; write [user@]host[:port], such as alice@build.example or [fd00::2]:2222`,
  );
}

/** `[user@]host[:port]`; the last @ ends the user. An IPv6 address needs brackets only where a port follows; names may
 * have them too, as ssh writes them. @throws Fault `ssh.config` */
export function parseTarget(name: string): Destination {
  const at = name.lastIndexOf("@");
  const user = at < 0 ? undefined : name.slice(0, at);
  const place = name.slice(at + 1);
  if (
    user !== undefined &&
    (user === "" || user.startsWith("-") || forbidden.test(user) || user.endsWith("\\"))
  )
    refuse(name, "that is no name of a user");

  const [, bracketed, plain, digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(place) ?? [];
  const host = bracketed ?? plain ?? place;
  // More than one colon without brackets: an address, of which no part can be a port.
  if (host.includes(":") && !isIPv6(host)) refuse(name, "that is no IPv6 address");
  if (host === "" || host.startsWith("-") || forbidden.test(host) || /[\\/@[\]]/.test(host))
    refuse(name, host.startsWith("-") ? "it would be read as an option" : "that is no name of a host");
  if (digits === undefined) return { user, host };
  const port = Number(digits);
  if (digits === "" || port < 1 || port > 65535) refuse(name, "ports are numbers from 1 to 65535");
  return { user, host, port };
}

/** As a user would write it. */
export function writeTarget({ user, host, port }: Destination): string {
  const place = port === undefined ? host : host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return user === undefined ? place : `${user}@${place}`;
}
