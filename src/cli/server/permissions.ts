/** What `doctor` says of files that are for their owner alone. */
import { readFileSync, statSync } from "node:fs";
import type { Config } from "../../config/config.ts";
import { parseEnvFile } from "../../config/envfile.ts";
import { tilde } from "../../config/paths.ts";
import { isOwnKey } from "../../config/secrets.ts";
import type { Finding } from "./findings.ts";

/** Permission bits of group and others. */
const others = 0o077;

export function* permissions({ paths, environment }: Config): Generator<Finding> {
  if (isOpen(paths.envFile) && holdsKeys(paths.envFile, environment)) {
    const file = tilde(paths.envFile, paths.home);
    yield {
      about: "config",
      status: "warn",
      text: `${file} holds keys, and others may read or write it (mode ${modeOf(paths.envFile)})`,
      advice: `chmod 600 ${file}`,
    };
  }
  if (isOpen(paths.state)) {
    const folder = tilde(paths.state, paths.home);
    yield {
      about: "state",
      status: "warn",
      text: `others may look into ${folder} (mode ${modeOf(paths.state)}), where everything is that agents were told`,
      advice: `chmod 700 ${folder}`,
    };
  }
}

function isOpen(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & others) !== 0;
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8).padStart(4, "0");
}

function holdsKeys(path: string, environment: Config["environment"]): boolean {
  const values = parseEnvFile(readFileSync(path, "utf8"), path, environment);
  return [...values].some(([name, value]) => value !== "" && isOwnKey(name));
}
