/** Everything that is configured, read from the env file and the process environment. */
import { readEnvironment } from "./environment.ts";
import { type Environment, type Paths, resolvePaths } from "./paths.ts";
import { idleVariables, parseSettings, type Settings, unknownVariables } from "./settings.ts";

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
  const merged = readEnvironment(environment, flags.config);
  return {
    paths: resolvePaths(merged, flags),
    settings: parseSettings(merged),
    environment: merged,
    warnings: [
      ...unknownVariables(merged).map((key) => `${key} is no setting of ollie: misspelt?`),
      ...idleVariables(merged).map((key) => `${key} has no effect yet: what reads it is not built in`),
    ],
  };
}
