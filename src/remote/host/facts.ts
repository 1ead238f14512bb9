/** What a hello tells of the host. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { build } from "../../config/version.ts";
import { ownCommand } from "../../exec/own.ts";
import { capabilities, type HostHello } from "../protocol/hello.ts";
import { maxFrame, protocol, window } from "../protocol/limits.ts";
import { knownSandbox } from "./confinement-file.ts";
import { readDaemonFile } from "./daemon-file.ts";
import { ownDigest, type Places, sessionFolder } from "./places.ts";
import { readSession, sessionIds } from "./session-record.ts";

export async function helloOf(places: Places): Promise<HostHello> {
  const digest = await ownDigest();
  const boot = bootId();
  const { username, shell } = account();
  return {
    proto: protocol,
    version: build.version,
    digest,
    os: process.platform,
    arch: process.arch,
    libc: libc(),
    kernel: release(),
    home: places.home,
    user: username,
    shell,
    root: places.root,
    caps: [...capabilities],
    limits: { maxFrame, window },
    sandbox: knownSandbox(places.root, boot, digest),
    tools: toolSets(places.base),
    clock: Date.now(),
    boot,
    sessions: sessionIds(places.root).map((sessionId) => ({
      sessionId,
      state: stateOf(places.root, sessionId),
    })),
    persist: persists(),
  };
}

export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}

/** sshd says who it is (sshd(8), LOGIN PROCESS); without it the file of users does. */
export function account(): { username: string; shell: string } {
  const { USER, LOGNAME, SHELL } = process.env;
  const uid = String(process.geteuid!());
  const entry = textOf("/etc/passwd")
    .split("\n")
    .map((line) => line.split(":"))
    .find((fields) => fields[2] === uid);
  return { username: USER || LOGNAME || entry?.[0] || uid, shell: SHELL || entry?.[6] || "/bin/sh" };
}

/** The program runs by the host's own C library, or by the one that was brought. */
function libc(): string {
  if (ownCommand().length > 1) return "brought";
  return build.target.endsWith("musl") ? "musl" : "glibc";
}

function toolSets(base: string): string[] {
  try {
    return readdirSync(join(base, "tools"))
      .filter((name) => /^[0-9a-f]{64}$/.test(name))
      .sort();
  } catch {
    return [];
  }
}

function stateOf(root: string, id: string): string {
  try {
    if (readSession(root, id).sealed) return "sealed";
    return readDaemonFile(sessionFolder(root, id)) ? "active" : "detached";
  } catch {
    return "damaged";
  }
}

/**
 * systemd may end everything of a user when his last login ends (`KillUserProcesses`, logind.conf(5)), except where the user lingers. What the
 * setting is cannot be asked without D-Bus: the files that set it are looked at.
 */
function persists(): boolean {
  if (!existsSync("/run/systemd/system")) return true;
  if (existsSync(`/var/lib/systemd/linger/${account().username}`)) return true;
  const files = ["/etc/systemd/logind.conf", ...partsOf("/etc/systemd/logind.conf.d")];
  return !files.some((file) => /^\s*KillUserProcesses\s*=\s*(?:yes|true|1|on)/m.test(textOf(file)));
}

function partsOf(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
