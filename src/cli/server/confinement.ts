/** What `doctor` says of the sandbox on this host: found out as a server does at its start. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Config } from "../../config/config.ts";
import { defaultAddress, parseAddress } from "../../ninep/dial.ts";
import { SandboxConfigs } from "../../sandbox/configs.ts";
import { type HostConfinement, Launcher } from "../../sandbox/launch/launcher.ts";
import { confinementLine } from "../../sandbox/report.ts";
import { Sandbox } from "../../sandbox/sandbox.ts";
import { groundOf } from "../../session/ground.ts";
import type { Finding } from "./findings.ts";
import { findInstance } from "./instance.ts";

export function confinement(config: Config): Finding {
  const running = findInstance(config.paths.state);
  const found = probed(config, running?.addresses[0], running?.arguments.includes("--yolo"));
  const about = "sandbox";
  const text = confinementLine(found);
  if (found.state === "enforced") return { about, status: "ok", text };
  if (found.state === "partial") return { about, status: "warn", text };
  if (running?.arguments.includes("--yolo"))
    return { about, status: "warn", text, advice: "olliesrv stop and start, without it" };
  if (runsWithout(config))
    return { about, status: "warn", text, advice: "general.best_effort lets tools run all the same" };
  return {
    about,
    status: "fail",
    text,
    advice: "tools do not run; general.best_effort: true in a sandbox config, or --yolo, lets them",
  };
}

/** @param address of the server that runs, for what is beside its socket */
function probed(config: Config, address: string | undefined, yolo = false): HostConfinement {
  const folders = scratchFolders(config, address);
  try {
    const launcher = new Launcher(folders, config.settings.sandboxWithout);
    return new Sandbox(launcher, { yolo }).confinement;
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }
}

/** On the file systems that a server uses for this: they may be mounted noexec. */
function scratchFolders({ paths, environment }: Config, address?: string): string[] {
  const socket = parseAddress(address ?? defaultAddress(environment, process.getuid!()));
  const wanted = [...(socket.net === "unix" ? [dirname(socket.path)] : []), paths.state];
  return wanted.map((folder) => {
    const prefix = join(existing(folder), "ollie-doctor-");
    try {
      return mkdtempSync(prefix);
    } catch {
      return prefix; // the launcher says why nothing can be made there
    }
  });
}

/** The folder itself, or the nearest one in which it can be made. */
export function existing(folder: string): string {
  let found = folder;
  while (!existsSync(found)) found = dirname(found);
  return found;
}

/** Whether the config that holds where no other is named lets tools run without a sandbox. */
function runsWithout(config: Config): boolean {
  try {
    return new SandboxConfigs(groundOf(config)).survey(config.paths.home).policy.bestEffort;
  } catch {
    return false; // a mistake in it is told elsewhere
  }
}
