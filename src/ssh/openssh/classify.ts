/** What ssh says on stderr, as the errors of the protocol. */
import { readFileSync } from "node:fs";
import type { CodedFault } from "../../fault.ts";
import type { Settings } from "../config/settings.ts";
import { overloaded, sshFault } from "../fault.ts";
import { changed, unknown } from "../known/check.ts";
import { type KnownKey, keyType, knownName } from "../known/file.ts";

/** What a master that has ended without a connection means. `text`: all of its stderr. */
export function classify(text: string, settings: Settings, declined: boolean): CodedFault {
  const { host, port, user } = settings;
  const place = port === 22 ? host : `${host} port ${port}`;
  const said = lastLines(text);
  const retry = { retry: true };
  if (/REVOKED HOST KEY/.test(text))
    return sshFault("ssh.hostkey_changed", `${place} shows a key that was revoked: ${said}`);
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/.test(text))
    return changedKey(text, settings) ?? plainChange(place, said);
  if (/Host key verification failed|host key is known for/.test(text)) {
    const [, type, print] = /(\S+) key fingerprint is (SHA256:\S+?)\.?$/m.exec(text) ?? [];
    const [, known] = /No (\S+) host key is known/.exec(text) ?? [];
    return print
      ? unknown(nameOf(settings), settings, type!, print)
      : sshFault("ssh.hostkey_unknown", `the ${known ?? ""} key of ${nameOf(settings)} is not known`, {
          hint: `connect once with: ssh ${settings.destination.host}`,
        });
  }
  if (/Permission denied|Too many authentication failures|No more authentication methods/.test(text))
    return sshFault("ssh.auth", `${place} does not let ${user} in: ${said}`, {
      hint: declined ? "nobody answered" : `see that this gets in: ssh ${settings.destination.host}`,
    });
  if (/Could not resolve hostname/.test(text))
    return sshFault("ssh.unreachable", `there is no address for ${host}: ${said}`, retry);
  if (/stdio forwarding failed|open failed/.test(text))
    return sshFault("ssh.unreachable", `the host in between has no way to ${place}: ${said}`, {
      retry: true,
      hint: "is it up, and does the host in between allow forwarding (AllowTcpForwarding)?",
    });
  if (/Connection refused/.test(text))
    return sshFault("ssh.refused", `nothing accepts connections at ${place}`, {
      retry: true,
      hint: "is sshd running there, and is the port right?",
    });
  if (/timed out|Timeout, server/i.test(text))
    return sshFault("ssh.timeout", `${place} does not answer: ${said}`, retry);
  if (/No route to host|Network is unreachable/.test(text))
    return sshFault("ssh.unreachable", `no way to ${place}: ${said}`, retry);
  if (
    /Unable to negotiate|Bad configuration option|terminating, \d+ bad|Bad owner or permissions|No such file/.test(
      text,
    )
  )
    return sshFault("ssh.config", `ssh cannot connect to ${place}: ${said}`);
  if (/Connection (closed|reset) by|kex_exchange_identification|banner exchange/.test(text))
    return overloaded(place);
  return sshFault(
    "ssh.unreachable",
    `ssh has no connection to ${place}: ${said || "it says nothing"}`,
    retry,
  );
}

function nameOf({ hostKeyAlias, host, port }: Settings): string {
  return hostKeyAlias ?? knownName(host, port);
}

function changedKey(text: string, settings: Settings): CodedFault | undefined {
  const [, type, print] =
    /fingerprint for the (\S+) key sent by the remote host is\s+(SHA256:\S+?)\.?\s/.exec(text) ?? [];
  const [, file, line] = /Offending .*key in (.+):(\d+)/.exec(text) ?? [];
  if (!print || !file) return;
  const old = keyAt(file, Number(line));
  return old && changed(nameOf(settings), old, print, type!.toLowerCase());
}

function keyAt(file: string, line: number): KnownKey | undefined {
  try {
    const fields = readFileSync(file, "utf8").split("\n")[line - 1]!.trim().split(/\s+/);
    const blob = Buffer.from(fields.find((field) => field.startsWith("AAAA")) ?? "", "base64");
    return { file, line, type: keyType(blob), blob };
  } catch {
    return;
  }
}

function plainChange(place: string, said: string): CodedFault {
  return sshFault("ssh.hostkey_changed", `the key of ${place} is not the one that is known: ${said}`);
}

/** Without the frames of warnings. */
function lastLines(text: string): string {
  const lines = text.split(/[\r\n]+/).filter((line) => line.trim() !== "" && !/^@+|^debug\d:/.test(line));
  return lines.slice(-3).join("; ").slice(0, 500);
}
