/** Everything that is configured, read from the env file and the process environment. */
import { readFileSync } from "node:fs";
import { Fault, toFault } from "../fault.ts";
import { parseEnvFile } from "./envfile.ts";
import { configFolder, type Environment, home, type Paths, resolvePaths, tilde } from "./paths.ts";
import { parseSettings, type Settings, unknownVariables } from "./settings.ts";

export interface Config {
  paths: Paths;
  settings: Settings;
  /** The env file's values under the process environment's, the keys of backends included: not to be handed to tools or logs. */
  environment: Record<string, string>;
  /** For the user, once: one sentence each. */
  warnings: string[];
}

/**
 * Reads the configuration. A missing env file is an empty one.
 * @param environment of the process; it wins over the file
 * @param flags `--config` and `--state` of the command line
 * @throws Fault "invalid" that names the file and line, or the variable
 */
export function loadConfig(
  environment: Environment,
  flags: { config?: string; state?: string } = {},
): Config {
  const folder = configFolder(environment, flags.config);
  const name = tilde(`${folder}/env`, home(environment));
  const merged: Record<string, string> = Object.fromEntries(
    parseEnvFile(readEnvFile(folder, name), name, environment),
  );
  for (const [key, value] of Object.entries(environment)) if (value !== undefined) merged[key] = value;
  return {
    paths: resolvePaths(merged, flags),
    settings: parseSettings(merged),
    environment: merged,
    warnings: unknownVariables(merged).map((key) => `${key} is no setting of ollie: misspelt?`),
  };
}

function readEnvFile(folder: string, name: string): string {
  try {
    return readFileSync(`${folder}/env`, "utf8");
  } catch (error) {
    const fault = toFault(error);
    if (fault.kind === "missing") return "";
    throw new Fault(fault.kind, `cannot read ${name}: ${fault.message}`, { cause: error });
  }
}
