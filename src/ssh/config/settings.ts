/** What of ssh_config(5) counts for a connection, with everything filled in. */
import { hostname } from "node:os";
import { join } from "node:path";
import { sshFault } from "../fault.ts";
import { type Destination, parseTarget, writeTarget } from "../target.ts";
import type { SshTarget } from "../transport.ts";
import { account } from "./account.ts";
import { readConfig } from "./file.ts";
import { askProgram, findProgram } from "./program.ts";
import { expandPath, expandTokens, words } from "./tokens.ts";

/** Values by their key in small letters, one for each line. */
export type Options = Map<string, string[]>;

export interface Settings {
  destination: Destination;
  /** Where the connection goes, and as whom. */
  host: string;
  port: number;
  user: string;
  identityFiles: string[];
  /** Keys of the agent that belong to none of these files stay where they are. */
  identitiesOnly: boolean;
  /** Socket of the agent; undefined: none. */
  agent?: string;
  /** Hosts to go through, the nearest first, each as a user would write it. */
  jumps: string[];
  proxyCommand?: string;
  userKnownHosts: string[];
  globalKnownHosts: string[];
  hashKnownHosts: boolean;
  /** Of a key that is in none of these files. */
  strict: "yes" | "ask" | "accept-new";
  /** Name of the host in them. */
  hostKeyAlias?: string;
  /** Milliseconds between two questions whether the other host is there, and how many may stay without an answer. */
  alive: { interval: number; count: number };
  /** Milliseconds. */
  connectTimeout?: number;
  compression: boolean;
  family?: 4 | 6;
  bindAddress?: string;
  allows: { publickey: boolean; password: boolean; keyboardInteractive: boolean };
  passwordPrompts: number;
  /** Socket of a master of the user's own, if there is one. */
  controlPath?: string;
  /** A word of the configuration that only the ssh program has an ear for. */
  programOnly?: string;
}

const identities = ["id_ed25519", "id_ecdsa", "id_rsa"];
/** 15 s × 4 as the design has it: NAT forgets idle connections after less than a minute at times, and a short stall is no drop. */
const alive = { interval: 15_000, count: 4 };

/** Of a chain of hosts to go through. */
const mostHops = 8;

/** With the hosts to go through looked at. @throws Fault `ssh.config` */
export async function resolveRoute(target: SshTarget, signal: AbortSignal): Promise<Settings> {
  const settings = await resolve(target, signal);
  let { jumps } = settings;
  // Only the nearest host's own words on how to get to it count.
  for (let hops = jumps.length; jumps.length > 0; hops += jumps.length) {
    if (hops > mostHops)
      throw sshFault(
        "ssh.config",
        `ProxyJump leads through more than ${mostHops} hosts: does it lead in a circle?`,
      );
    for (const jump of jumps) parseTarget(jump);
    jumps = (await resolve({ ...target, name: jumps[0]! }, signal)).jumps;
  }
  return settings;
}

/** @throws Fault `ssh.config` */
export async function resolve(target: SshTarget, signal: AbortSignal): Promise<Settings> {
  const destination = parseTarget(target.name);
  const program = findProgram(target.sshProgram);
  if (target.sshProgram !== undefined && program === undefined)
    throw sshFault("ssh.config", `${target.sshProgram} is not there or not executable`);
  const options =
    program === undefined
      ? readConfig(destination, target.configFile)
      : await askProgram(program, destination, target.configFile, signal);
  const settings = settingsOf(options, destination);
  return target.knownHosts === undefined
    ? settings
    : { ...settings, userKnownHosts: [target.knownHosts], globalKnownHosts: [] };
}

/** @throws Fault `ssh.config` */
export function settingsOf(options: Options, destination: Destination): Settings {
  const one = (key: string) => {
    const value = options.get(key)?.[0];
    return value === undefined || value.toLowerCase() === "none" ? undefined : value;
  };
  const is = (key: string, fallback: boolean) => {
    const value = options.get(key)?.[0]?.toLowerCase();
    return value === undefined ? fallback : value === "yes" || value === "true";
  };
  const number = (key: string) => {
    const value = Number(one(key));
    return Number.isFinite(value) && value > 0 ? value : undefined;
  };

  const host = expandTokens(one("hostname") ?? destination.host, { h: destination.host });
  const port = number("port") ?? 22;
  const user = one("user") ?? account().name;
  // A `Hostname` comes from the configuration, but may have been put together there from what somebody else wrote.
  parseTarget(writeTarget({ host }));
  const here = hostname();
  const values = {
    h: host,
    n: destination.host,
    p: String(port),
    r: user,
    u: account().name,
    i: String(process.getuid!()),
    d: account().home,
    l: here,
    L: here.split(".")[0]!,
    k: one("hostkeyalias") ?? destination.host,
  };
  const paths = (key: string, fallback: string[]) =>
    (options.has(key) ? words(options.get(key)![0]!) : fallback)
      .filter((path) => path.toLowerCase() !== "none")
      .map((path) => expandPath(path, values));
  const files = (key: string) =>
    (options.get(key) ?? [])
      .filter((path) => path.toLowerCase() !== "none")
      .map((path) => expandPath(path.replace(/^"(.*)"$/, "$1"), values));

  const proxyCommand = one("proxycommand");
  const strict = options.get("stricthostkeychecking")?.[0]?.toLowerCase();
  const interval = number("serveraliveinterval");
  const timeout = number("connecttimeout");
  const family = one("addressfamily");
  const knownHosts = ["known_hosts", "known_hosts2"];
  return {
    destination,
    host,
    port,
    user,
    identityFiles: options.has("identityfile")
      ? files("identityfile")
      : identities.map((name) => join(account().home, ".ssh", name)),
    identitiesOnly: is("identitiesonly", false),
    agent: agentOf(options.get("identityagent")?.[0], values),
    jumps: jumpsOf(one("proxyjump")),
    proxyCommand: proxyCommand && expandTokens(proxyCommand, values),
    userKnownHosts: paths(
      "userknownhostsfile",
      knownHosts.map((name) => join(account().home, ".ssh", name)),
    ),
    globalKnownHosts: paths(
      "globalknownhostsfile",
      knownHosts.map((name) => `/etc/ssh/ssh_${name}`),
    ),
    hashKnownHosts: is("hashknownhosts", false),
    // "no" and "off" would take a changed key too. That is never done here.
    strict:
      strict === "yes" || strict === "true"
        ? "yes"
        : strict === "accept-new" || strict === "no" || strict === "off" || strict === "false"
          ? "accept-new"
          : "ask",
    hostKeyAlias: one("hostkeyalias"),
    alive: interval ? { interval: interval * 1000, count: number("serveralivecountmax") ?? 3 } : alive,
    connectTimeout: timeout && timeout * 1000,
    compression: is("compression", false),
    family: family === "inet" ? 4 : family === "inet6" ? 6 : undefined,
    bindAddress: one("bindaddress"),
    allows: {
      publickey: is("pubkeyauthentication", true),
      password: is("passwordauthentication", true),
      keyboardInteractive: is("kbdinteractiveauthentication", true),
    },
    passwordPrompts: number("numberofpasswordprompts") ?? 3,
    controlPath: one("controlpath"),
    programOnly: programOnly(options),
  };
}

/** `SSH_AUTH_SOCK` names the variable, `$NAME` another one. */
function agentOf(value: string | undefined, values: Record<string, string>): string | undefined {
  if (value === undefined || value === "SSH_AUTH_SOCK") return process.env.SSH_AUTH_SOCK || undefined;
  if (value.toLowerCase() === "none") return undefined;
  if (/^\$\w+$/.test(value)) return process.env[value.slice(1)] || undefined;
  return expandPath(value, values);
}

function jumpsOf(value: string | undefined): string[] {
  return (value?.split(",") ?? []).map((jump) =>
    jump
      .trim()
      .replace(/^ssh:\/\//, "")
      .replace(/\/$/, ""),
  );
}

function programOnly(options: Options): string | undefined {
  const named = (key: string, usual: string) => {
    const value = options.get(key)?.[0];
    return value !== undefined && value.toLowerCase() !== usual;
  };
  if (named("pkcs11provider", "none")) return "PKCS11Provider";
  if (named("securitykeyprovider", "internal") && named("securitykeyprovider", "$ssh_sk_provider"))
    return "SecurityKeyProvider";
  if (named("certificatefile", "none")) return "CertificateFile";
  if (named("knownhostscommand", "none")) return "KnownHostsCommand";
  return undefined;
}
