/** What `doctor` says of other hosts. */
import type { Config } from "../../../config/config.ts";
import { toFault } from "../../../fault.ts";
import { offers, programsFolder } from "../../../remote/bootstrap/programs.ts";
import { loadRemotes, remotesFile } from "../../../remote/policy/remotes.ts";
import type { Finding } from "../findings.ts";

export async function* remoteFindings(config: Config): AsyncGenerator<Finding> {
  const targets = targetsOf(config);
  if (targets) yield targets;
  yield await programs();
}

/** Nothing where there is no file: a target needs no entry. */
function targetsOf({ environment, paths, settings }: Config): Finding | undefined {
  try {
    const { names } = loadRemotes(remotesFile(environment, paths.config), settings.ssh);
    return names.length > 0
      ? { about: "remotes", status: "ok", text: `targets: ${names.join(" ")}` }
      : undefined;
  } catch (error) {
    return { about: "remotes", status: "fail", text: toFault(error).message };
  }
}

async function programs(): Promise<Finding> {
  try {
    const found = await offers({});
    const names = found.map(({ name, pack }) => (pack ? `${name} (also without glibc)` : name));
    return { about: "remote", status: "ok", text: `hosts of these kinds can be used: ${names.join(", ")}` };
  } catch (error) {
    const { message } = toFault(error);
    return {
      about: "remote",
      status: "warn",
      text: message,
      advice: `put ollie-remote into ${programsFolder()}`,
    };
  }
}
