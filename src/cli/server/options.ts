/** Options that several commands of `olliesrv` share, and what follows from them. */
import { join } from "node:path";
import { type Config, loadConfig } from "../../config/config.ts";
import { takeEnvironment } from "../../config/environment.ts";
import { type Environment, resolvePaths } from "../../config/paths.ts";
import { looksSecret } from "../../config/secrets.ts";
import { type LogLevel, logLevels } from "../../config/settings.ts";
import { eraseVariables } from "../../exec/seal.ts";
import { Fault } from "../../fault.ts";
import { defaultAddress, serviceAddress } from "../../ninep/dial.ts";
import type { Options, Values } from "../program.ts";

/** Which server is meant. */
export const whichOptions = {
  state: { type: "string", value: "DIR", help: "state folder, instead of ~/.local/state/ollie" },
  config: { type: "string", value: "DIR", help: "config folder, instead of ~/.config/ollie" },
} as const satisfies Options;

export const startOptions = {
  listen: {
    type: "string",
    value: "ADDR",
    multiple: true,
    help: "listen there instead of at the default address; may be repeated",
  },
  ...whichOptions,
  yolo: { type: "boolean", help: "run tools without a sandbox" },
  "log-level": { type: "string", value: "LEVEL", help: logLevels.join(", ") },
} as const satisfies Options;
export type StartValues = Values<typeof startOptions>;

/** @throws Fault "invalid" that names the file and line, or the variable or option */
export function configFor(values: Values<typeof whichOptions>): Config {
  return loadConfig(ownEnvironment(), { config: values.config, state: values.state });
}

let erased = false;

/** What this process was started with, keys included; `process.env` and `/proc/PID/environ` have lost them once this was called. */
export function ownEnvironment(): Environment {
  const environment = takeEnvironment();
  if (!erased) eraseVariables(looksSecret);
  erased = true;
  return environment;
}

/** Where things lie. A mistake in the env file must keep nobody from finding, or ending, a server that runs. */
export function whereabouts(values: Values<typeof whichOptions>): Pick<Config, "paths" | "environment"> {
  try {
    return configFor(values);
  } catch {
    const environment = Object.fromEntries(
      Object.entries(ownEnvironment()).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
    return { paths: resolvePaths(environment, values), environment };
  }
}

/** The addresses to listen at. */
export function listenAddresses(config: Pick<Config, "environment">, values: StartValues): string[] {
  if (values.listen && values.listen.length > 0) return values.listen;
  const uid = process.getuid!();
  return [defaultAddress(config.environment, uid), serviceAddress(config.environment, uid) ?? []].flat();
}

export function logLevel(config: Config, values: StartValues): LogLevel {
  const asked = values["log-level"];
  if (asked === undefined) return config.settings.logLevel;
  const level = logLevels.find((one) => one === asked);
  if (!level) throw new Fault("invalid", `--log-level ${asked}: must be one of ${logLevels.join(", ")}`);
  return level;
}

/** The options as words, for a child that is to get the same. */
export function asArguments(values: StartValues): string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (typeof value === "boolean") return value ? [`--${key}`] : [];
    return [value ?? []].flat().map((one) => `--${key}=${one}`);
  });
}

/** Where the output of a server in the background goes. */
export function logFile(config: Pick<Config, "paths">): string {
  return join(config.paths.state, "olliesrv.log");
}
