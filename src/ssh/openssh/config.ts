/** The configuration that our ssh runs with: a few words of ours, then the user's. */
import { resolve } from "node:path";
import type { Settings } from "../config/settings.ts";
import { policyOf } from "../known/check.ts";
import type { SshTarget } from "../transport.ts";

/**
 * Text of a file for `ssh -F`. A file and not `-o`, as the ssh processes of a ProxyJump read the file too, but get no options.
 *
 * The first value of a key is the one that counts, so ours stand before the user's; SendEnv adds up, so ours stands behind.
 */
export function configText(target: SshTarget, settings: Settings): string {
  const { alive, connectTimeout } = settings;
  const seconds = Math.ceil(Math.min(target.connectTimeout, connectTimeout ?? target.connectTimeout) / 1000);
  const strict = { refuse: "yes", ask: "ask", accept: "accept-new" }[policyOf(target, settings.strict)];
  const ours = [
    // Hosts in between; the master itself gets a path as an argument, which comes first.
    "ControlMaster no",
    "ControlPath none",
    "ControlPersist no",
    `StrictHostKeyChecking ${strict}`,
    "UpdateHostKeys no",
    ...(target.knownHosts === undefined
      ? []
      : [`UserKnownHostsFile ${quoted(target.knownHosts)}`, "GlobalKnownHostsFile none"]),
    "RemoteCommand none",
    "RequestTTY no",
    "ForwardAgent no",
    "ForwardX11 no",
    "PermitLocalCommand no",
    "ClearAllForwardings yes",
    "Tunnel no",
    "EscapeChar none",
    "LogLevel INFO",
    `BatchMode ${target.batch ? "yes" : "no"}`,
    `ConnectTimeout ${Math.max(seconds, 1)}`,
    `ServerAliveInterval ${Math.max(Math.round(alive.interval / 1000), 1)}`,
    `ServerAliveCountMax ${alive.count}`,
  ];
  // As ssh itself would read them; those that are not there are none.
  const users =
    target.configFile === undefined
      ? ["~/.ssh/config", "/etc/ssh/ssh_config"]
      : [quoted(resolve(target.configFile))];
  return [...ours, ...users.map((path) => `Include ${path}`), "Match all", "SendEnv -*", ""].join("\n");
}

function quoted(path: string): string {
  return `"${path}"`;
}
