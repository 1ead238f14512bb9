/** Addresses: `unix!PATH`, `tcp!HOST!PORT`, `tcp!HOST:PORT`, `tls!…` alike, `ssh!USER@HOST[!PATH]`. */
import { existsSync, lstatSync } from "node:fs";
import { Fault } from "../fault.ts";
import { anameOf, readToken } from "./admission.ts";
import { Client, type ClientOptions } from "./client.ts";
import { SocketStream } from "./socket.ts";
import type { ByteStream } from "./stream.ts";

export type Address =
  | { net: "unix"; path: string }
  | { net: "tcp" | "tls"; host: string; port: number }
  | { net: "ssh"; host: string; user?: string; path?: string };

/** `9fs` of services(5). */
const defaultPort = 564;

/** Reads an address; a Fault "invalid" says what it should look like. */
export function parseAddress(text: string): Address {
  const bang = text.indexOf("!");
  const net = text.slice(0, Math.max(bang, 0));
  const rest = text.slice(bang + 1);
  if (rest === "") throw wrong(text, "nothing follows the !");
  switch (net) {
    case "unix":
      return { net, path: rest };
    case "tcp":
    case "tls":
      return { net, ...hostAndPort(text, rest) };
    case "ssh":
      return { net, ...userAndHost(text, rest) };
    default:
      throw wrong(text, "it begins with unix!, tcp!, tls! or ssh!");
  }
}

function wrong(text: string, why: string): Fault {
  return new Fault(
    "invalid",
    `${JSON.stringify(text)} is no address (${why}): write unix!PATH, tcp!HOST!PORT or ssh!USER@HOST`,
  );
}

function hostAndPort(text: string, rest: string): { host: string; port: number } {
  const parts = /^(?:\[([^\]]+)\]|([^!:[\]]+))(?:[!:]([^!:]+))?$/.exec(rest);
  if (!parts) throw wrong(text, "it needs HOST!PORT, an IPv6 host in brackets");
  const service = parts[3] ?? "9fs";
  const port = service === "9fs" ? defaultPort : Number(service);
  if (!/^(9fs|\d+)$/.test(service) || port < 1 || port > 65535)
    throw wrong(text, "its port is none from 1 to 65535");
  return { host: parts[1] ?? parts[2]!, port };
}

function userAndHost(text: string, rest: string): { host: string; user?: string; path?: string } {
  const parts = /^(?:([^@!]+)@)?([^@!]+)(?:!(.+))?$/.exec(rest);
  if (!parts) throw wrong(text, "it needs USER@HOST or USER@HOST!PATH");
  const [, user, host, path] = parts;
  return { host: host!, ...(user && { user }), ...(path && { path }) };
}

/**
 * Connects and attaches. A Fault "unavailable" says that nobody answers at the address. Where `options` names no tree, the token of the
 * address is shown, if there is one: that of a unix socket lies beside it, that of a TCP port is in OLLIE_TOKEN.
 */
export async function dial(address: string, options: ClientOptions = {}): Promise<Client> {
  try {
    const stream = await dialStream(address);
    // Not before: a server that has just been started has made a new one.
    return await Client.open(stream, { ...proof(address), ...options });
  } catch (error) {
    throw foreign(address) ?? error;
  }
}

function proof(address: string): { aname?: string } {
  const parsed = parseAddress(address);
  const token =
    parsed.net === "unix"
      ? readToken(parsed.path)
      : parsed.net === "tcp"
        ? process.env.OLLIE_TOKEN
        : undefined;
  return token ? { aname: anameOf(token) } : {};
}

/** A server of ours hangs up on other users without a word. */
function foreign(address: string): Fault | undefined {
  const parsed = parseAddress(address);
  if (parsed.net !== "unix" || !existsSync(parsed.path)) return undefined;
  const owner = lstatSync(parsed.path).uid;
  if (owner === process.geteuid!()) return undefined;
  return new Fault(
    "denied",
    `the server at ${address} belongs to another user (uid ${owner}) and serves nobody else`,
  );
}

/** Connects only. */
export async function dialStream(address: string): Promise<ByteStream> {
  const parsed = parseAddress(address);
  if (parsed.net !== "unix" && parsed.net !== "tcp")
    throw new Fault("unavailable", `${parsed.net}! addresses are not supported yet, use unix!PATH`);
  try {
    return await (parsed.net === "unix" ? connectUnix(parsed.path) : connectTcp(parsed));
  } catch (error) {
    const why = parsed.net === "unix" ? unreachable(error, parsed.path) : (error as Error).message;
    throw new Fault("unavailable", `no server answers at ${address}: ${why}`, { cause: error });
  }
}

async function connectTcp({ host, port }: { host: string; port: number }): Promise<ByteStream> {
  const socket = await Bun.connect<SocketStream | undefined>({
    hostname: host,
    port,
    socket: SocketStream.handlers((socket) => new SocketStream(socket)),
  });
  return socket.data!;
}

/** Tries again for a moment while the server refuses: its queue may only be full, which Bun does not tell from its being dead. */
async function connectUnix(path: string): Promise<ByteStream> {
  for (let pause = 5; ; pause *= 2) {
    try {
      const socket = await Bun.connect<SocketStream | undefined>({
        unix: path,
        socket: SocketStream.handlers((socket) => new SocketStream(socket)),
      });
      return socket.data!;
    } catch (error) {
      if (pause > 160 || (error as NodeJS.ErrnoException).code !== "ECONNREFUSED") throw error;
      await Bun.sleep(pause);
    }
  }
}

function unreachable(error: unknown, path: string): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
      return "there is no such socket, is the server running?";
    case "ECONNREFUSED":
      // Bun says so also of a path that leads through a file.
      if (!existsSync(path)) return "there is no such socket, is the server running?";
      return "its server has ended";
    case "EACCES":
      return isMine(path)
        ? "this program may not connect to it, as in a sandbox"
        : `${path} is another user's`;
    default:
      return (error as Error).message;
  }
}

function isMine(path: string): boolean {
  try {
    return lstatSync(path).uid === process.geteuid!();
  } catch {
    return false;
  }
}

type Environment = Record<string, string | undefined>;

/** Where the server listens: OLLIE_ADDR, else a socket in the user's runtime folder, else one below /tmp. */
export function defaultAddress(env: Environment, uid: number): string {
  if (env.OLLIE_ADDR) return env.OLLIE_ADDR;
  const runtime = env.XDG_RUNTIME_DIR || runtimeFolder(uid);
  return runtime ? `unix!${runtime}/ollie/9p` : fallbackAddress(uid);
}

/**
 * Where clients look: there too, or below /tmp where only that exists: a server that cron started while nobody was logged in had no
 * runtime folder.
 */
export function clientAddress(env: Environment, uid: number): string {
  const address = defaultAddress(env, uid);
  const usual = `/run/user/${uid}/ollie/9p`;
  if (address !== `unix!${usual}` || existsSync(usual)) return address;
  return isOurs(fallback(uid), uid) && existsSync(`${fallback(uid)}/9p`) ? fallbackAddress(uid) : address;
}

/** Made by pam_systemd(8) at a login; the variable that names it is missing in cron and after su. */
function runtimeFolder(uid: number): string | undefined {
  const folder = `/run/user/${uid}`;
  return isOurs(folder, uid) ? folder : undefined;
}

/** Where a server listens that finds no runtime folder. */
export function fallbackAddress(uid: number): string {
  return `unix!${fallback(uid)}/9p`;
}

function fallback(uid: number): string {
  return `/tmp/ollie-${uid}`;
}

/** Anybody may make a folder in /tmp: one that is not ours, or open to others, is nobody's to trust. */
function isOurs(folder: string, uid: number): boolean {
  if (!existsSync(folder)) return false;
  const stat = lstatSync(folder);
  return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o077) === 0;
}

/** Where Plan 9 programs look for the service `ollie`, a socket of that name in their folder; undefined where there is none. */
export function serviceAddress(env: Environment, uid: number): string | undefined {
  const folder = namespaceFolder(env, uid);
  return folder && `unix!${folder}/ollie`;
}

/** $NAMESPACE, else `/tmp/ns.USER.DISPLAY` if that is there, private and ours. */
function namespaceFolder(env: Environment, uid: number): string | undefined {
  if (env.NAMESPACE) return env.NAMESPACE;
  if (!env.USER || !env.DISPLAY) return undefined;
  const display = env.DISPLAY.replace(/^(:\d+)\.0$/, "$1").replaceAll("/", "_");
  const folder = `/tmp/ns.${env.USER}.${display}`;
  return isOurs(folder, uid) ? folder : undefined;
}
