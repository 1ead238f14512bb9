/** What it means when a host does not do what it was asked for: the error, and what to do about it. */
import type { SshChannel } from "../../ssh/transport.ts";
import { coded } from "../protocol/errors.ts";
import { places } from "./command.ts";

/** Characters of what a host said that an error repeats. */
const quotedLength = 200;

/** For one line: control characters made visible, white space as one space. */
export function visible(text: string): string {
  const plain = text.trim().replace(/[\s]+/g, " ");
  const shown = plain.replace(/[\x00-\x1f\x7f-\x9f]/g, (each) => {
    const code = each.charCodeAt(0);
    return code < 32 ? `^${String.fromCharCode(code + 64)}` : `\\x${code.toString(16)}`;
  });
  return shown.length > quotedLength ? `${shown.slice(0, quotedLength)}…` : shown;
}

/**
 * The channel has ended, and no marker has come.
 * @throws the Fault of the connection if it is that which broke
 */
export async function withoutMarker(channel: SshChannel, noise: string) {
  const { code, signal, fault } = await channel.closed;
  if (fault) throw fault;
  const said = visible(`${noise}\n${channel.stderr()}`);
  const words = said === "" ? "it said nothing" : `it said: ${said}`;
  const how = signal ? `was ended by ${signal}` : `ended with ${code ?? "no"} status`;
  if (/is not recognized|CommandNotFoundException|Microsoft Windows/.test(said))
    return coded("boot.unsupported", `the host seems to run Windows (${words})`, {
      hint: "ollie works on Linux hosts; on Windows, inside WSL with an sshd of its own",
    });
  if (/\brestricted\b/.test(said))
    return coded("ssh.no_shell", `the login shell of the host is a restricted one (${words})`, {
      hint: "give the user an ordinary shell, or install ollie-remote as its forced command",
    });
  if (code === 0)
    return coded("ssh.forced", `the host runs another command than ours (${words})`, {
      hint: "a ForceCommand or a command= in authorized_keys stands in the way",
    });
  return coded("ssh.no_shell", `the host runs no commands: its shell ${how} (${words})`, {
    hint: "does `ssh HOST true` work? the user needs a login shell and /bin/sh",
  });
}

/** The script has ended in the middle of its work. */
export async function brokenOff(channel: SshChannel) {
  const { code, signal, fault } = await channel.closed;
  if (fault) return fault;
  const how = signal ? `was ended by ${signal}` : `ended with status ${code ?? "unknown"}`;
  const said = visible(channel.stderr());
  return coded("boot.short", `the installation on the host ${how}${said && `: ${said}`}`, { retry: true });
}

export function tooMuchNoise(noise: string) {
  return coded(
    "boot.no_marker",
    `the login shell of the host prints without end and never runs our command (it said: ${visible(noise)})`,
  );
}

/** The program was started, and has ended before it said anything. */
export async function notStarted(channel: SshChannel) {
  const { code, signal, fault } = await channel.closed;
  if (fault) return fault;
  const said = visible(channel.stderr());
  if (code === 126 && /ermission denied/.test(said))
    return coded("boot.noexec", `ollie-remote may not be executed on the host: ${said}`);
  return coded(
    "boot.selftest",
    `ollie-remote does not start on the host (${signal ?? `status ${code}`}): ${said || "it said nothing"}`,
  );
}

const folderReasons: Record<string, { code: string; says: string }> = {
  read_only: { code: "boot.read_only", says: "is read-only" },
  nodir: { code: "boot.read_only", says: "cannot be made" },
  foreign: { code: "boot.read_only", says: "belongs to somebody else, or others can write it" },
  no_space: { code: "boot.no_space", says: "has no room" },
  noexec: { code: "boot.noexec", says: "is on a file system where no program may run (noexec)" },
};

/** @param reasons by the name of the place */
export function nowhere(reasons: ReadonlyMap<string, string>) {
  const told = [...reasons].map(([place, reason]) => tellPlace(place, reason));
  const first = folderReasons[reasons.values().next().value ?? ""];
  return coded(
    first?.code ?? "boot.read_only",
    `there is no folder on the host to install ollie-remote in: ${told.join(", ")}`,
    { hint: "set OLLIE_DIR on the host to a folder that is writable and not mounted noexec" },
  );
}

export function tellPlace(place: string, reason: string): string {
  return `${places[place] ?? place} ${folderReasons[reason]?.says ?? reason}`;
}

/** The program was there, whole, and has not answered `--ok` as it should. */
export function badAnswer(status: string, said: string) {
  const words = visible(said) || "it said nothing";
  if (status === "134")
    return coded("boot.unsupported", `ollie-remote cannot run on the host: it needs /proc (${words})`);
  if (status === "127" || /GLIBC_|No such file|not found/.test(said))
    return coded("boot.no_loader", `the host lacks what ollie-remote is loaded with (${words})`, {
      hint: "an ollie with the pack of the C library (ollie-remote-….libc beside olliesrv) brings that along",
    });
  if (/xec format error|cannot execute binary/.test(said))
    return coded("boot.unsupported", `ollie-remote is for another kind of machine (${words})`);
  return coded("boot.selftest", `ollie-remote does not run on the host (status ${status}): ${words}`, {
    hint: "was it stripped? that takes away what makes it more than Bun",
  });
}

export function missingTools(names: readonly string[]) {
  return coded("boot.tools_missing", `the host has no ${names.join(", ")} on its PATH`, {
    hint: "coreutils or busybox has them",
  });
}

export function otherMachine(words: readonly string[], offered: readonly string[]) {
  const machine = words.join(" ");
  if (words[0] !== "Linux")
    return coded("boot.unsupported", `the host runs ${visible(machine)}; ollie works on Linux hosts`);
  return coded(
    "boot.unsupported",
    `the host is ${visible(machine)}, and here is ollie-remote only for ${offered.join(", ")}`,
    { hint: "put the one for it beside olliesrv, named ollie-remote-linux-arm64 and so on" },
  );
}
