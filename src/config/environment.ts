/** The env file and the process environment as one. */
import { readFileSync } from "node:fs";
import { Fault, toFault } from "../fault.ts";
import { parseEnvFile } from "./envfile.ts";
import { configFolder, type Environment, home, tilde } from "./paths.ts";
import { isOwnKey } from "./secrets.ts";

/** Keys that this process was started with. */
const taken: Record<string, string> = {};

/**
 * The environment that this process was started with. Keys and tokens of backends are from then on in what is returned and nowhere in
 * `process.env`, so that nothing that reads or inherits that one has them.
 */
export function takeEnvironment(): Environment {
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || !isOwnKey(name)) continue;
    taken[name] = value;
    delete process.env[name];
  }
  return { ...process.env, ...taken };
}

/**
 * The env file's values, and over them those of `environment`. A missing file is an empty one.
 * @param config the config folder, where `--config` named one
 * @throws Fault that names the file, and the line that makes no sense
 */
export function readEnvironment(environment: Environment, config?: string): Record<string, string> {
  const folder = configFolder(environment, config);
  const name = tilde(`${folder}/env`, home(environment));
  const merged: Record<string, string> = Object.fromEntries(
    parseEnvFile(readEnvFile(folder, name), name, environment),
  );
  for (const [key, value] of Object.entries(environment)) if (value !== undefined) merged[key] = value;
  return merged;
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
