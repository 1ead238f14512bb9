/** Where things lie: the XDG base directories, with the `OLLIE_*_PATH` variables over them. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { Fault } from "../fault.ts";

export type Environment = Record<string, string | undefined>;

export interface Paths {
  home: string;
  /** `~/.config/ollie`. */
  config: string;
  /** The env file in it. */
  envFile: string;
  /** `~/.local/state/ollie`: sessions, the log of a background server, its lock. */
  state: string;
  /** Folders searched in this order; the first that has a name wins. */
  agents: string[];
  prompts: string[];
  tools: string[];
  skills: string[];
  /** One folder. */
  memory: string;
}

/** @throws Fault "invalid" where HOME is relative (it would be another folder in each folder) or nothing says where the home is */
export function home(environment: Environment): string {
  const folder = environment.HOME || ofUser();
  if (folder.startsWith("/")) return folder;
  throw new Fault("invalid", `HOME must be an absolute path, not ${JSON.stringify(folder)}`);
}

/** What the user database has, for a process without HOME. */
function ofUser(): string {
  try {
    return homedir();
  } catch {
    return "";
  }
}

/** The config folder: `flag` (what `--config` said), else `$XDG_CONFIG_HOME/ollie`, else `~/.config/ollie`. */
export function configFolder(environment: Environment, flag?: string): string {
  if (flag) return resolve(flag);
  return join(xdg(environment, "XDG_CONFIG_HOME", ".config"), "ollie");
}

/** `$XDG_STATE_HOME/ollie`, else `~/.local/state/ollie`. */
export function defaultState(environment: Environment): string {
  return join(xdg(environment, "XDG_STATE_HOME", ".local/state"), "ollie");
}

/** Where the shipped files are when the config folder cannot be written; else there is none. */
export function shippedFolder(state: string): string {
  return join(state, "shipped");
}

/**
 * All paths.
 * @param environment the env file's values under the process environment's; see `loadConfig`
 * @param flags what the command line said, which wins over everything
 * @throws Fault "invalid" when a search path holds a relative folder: the server's cwd is nobody's business
 */
export function resolvePaths(
  environment: Environment,
  flags: { config?: string; state?: string } = {},
): Paths {
  const config = configFolder(environment, flags.config);
  const state = flags.state
    ? resolve(flags.state)
    : environment.OLLIE_STATE_PATH
      ? absolute("OLLIE_STATE_PATH", environment.OLLIE_STATE_PATH)
      : defaultState(environment);
  const instead = [shippedFolder(state)].filter((path) => existsSync(path));
  const search = (variable: string, folder: string): string[] => {
    const folders = (environment[variable] ?? "").split(":").filter((entry) => entry !== "");
    if (folders.length === 0) return [join(config, folder), ...instead.map((path) => join(path, folder))];
    return folders.map((entry) => absolute(variable, entry));
  };
  return {
    home: home(environment),
    config,
    envFile: join(config, "env"),
    state,
    agents: search("OLLIE_AGENTS_PATH", "agents"),
    prompts: search("OLLIE_PROMPTS_PATH", "prompts"),
    tools: search("OLLIE_TOOLS_PATH", "tools"),
    skills: search("OLLIE_SKILLS_PATH", "skills"),
    memory: environment.OLLIE_MEMORY_PATH
      ? absolute("OLLIE_MEMORY_PATH", environment.OLLIE_MEMORY_PATH)
      : join(config, "memory"),
  };
}

/** A relative value must be ignored, the XDG Base Directory Specification says. */
function xdg(environment: Environment, variable: string, fallback: string): string {
  const value = environment[variable];
  return value?.startsWith("/") ? value : join(home(environment), fallback);
}

function absolute(variable: string, path: string): string {
  if (!path.startsWith("/")) throw new Fault("invalid", `${variable}: ${path} must be an absolute path`);
  return resolve(path);
}

/** A path for people: the home folder as `~`. */
export function tilde(path: string, homeFolder: string): string {
  return path === homeFolder || path.startsWith(`${homeFolder}/`)
    ? `~${path.slice(homeFolder.length)}`
    : path;
}
