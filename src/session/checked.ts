/** What create and cfg writes ask for, checked before anything is changed. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { Fault } from "../fault.ts";
import type { Agent } from "./agent.ts";
import { agentKeys, checkKeys, checkName, sessionKeys } from "./keys.ts";
import { checkPower, folderWithin, real } from "./limits.ts";
import type { Keys } from "./live.ts";
import type { Services } from "./services.ts";

export interface SplitKeys {
  session: Keys;
  agent: Keys;
  env: Keys;
}

/** Which of the keys of `session/new` are the session's, the first agent's, the environment's. `cwd` is the session's. */
export function splitKeys(keys: Keys): SplitKeys {
  const split: SplitKeys = { session: new Map(), agent: new Map(), env: new Map() };
  for (const [key, value] of keys) {
    if (key.startsWith("env.")) split.env.set(key.slice(4), value);
    else if (Object.hasOwn(sessionKeys, key)) split.session.set(key, value);
    else if (Object.hasOwn(agentKeys, key)) split.agent.set(key, value);
    else
      throw new Fault(
        "invalid",
        `unknown key ${key}; there are ${[...new Set([...Object.keys(sessionKeys), ...Object.keys(agentKeys)])].join(" ")} env.NAME`,
      );
  }
  return split;
}

/**
 * Session keys as a create or cfg write gives them, checked. With `cwd` goes `within`, which is no key of anybody's: the folder that it must
 * stay in, whatever lies at that path later; for the owner the one that it leads to now.
 */
export function checkedSessionKeys(keys: Keys, services: Services, maker?: Agent): Record<string, string> {
  checkKeys(keys, sessionKeys);
  const set = Object.fromEntries(keys);
  if (set.cwd) set.cwd = checkFolder(set.cwd);
  if (set.cwd !== undefined) {
    if (maker) set.cwd = folderWithin(set.cwd, maker);
    set.within = maker?.profile.bound() ?? (set.cwd && real(set.cwd));
  }
  if (set.sandbox) services.sandboxConfigs.check(set.sandbox);
  if (set.remote)
    throw new Fault("invalid", `remote=${set.remote}: sessions on other hosts are not built in yet`);
  return set;
}

/** What ollie gives to tools itself, and what would turn its own programs into others. */
const ownVariables =
  /^(OLLIE_(TOOL|CALL_ID|SESSION|AGENT|CWD|TOOLS_PATH|MEMORY_PATH|TMP|ADDR|TOKEN|ARG_.*)|BUN_OPTIONS|BUN_BE_BUN)$/;

export function checkEnv(keys: Keys): void {
  for (const [name, value] of keys) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
      throw new Fault("invalid", `${name}: a variable's name is letters, digits and _`);
    if (ownVariables.test(name)) throw new Fault("denied", `${name} is set by ollie itself`);
    if (name === "OLLIE_TOOL_MEMORY" && !/^\d*$/.test(value))
      throw new Fault("invalid", `${name}=${value}: a number of MiB is right`);
  }
}

/** What a new agent is to be: its name (free or named outright) and its settings. */
export function agentPlan(
  keys: Keys,
  services: Services,
  freeName: (wanted: string) => string,
  maker?: Agent,
): { name: string; set: Record<string, string | null> } {
  const rest = new Map(keys);
  const given = rest.get("name");
  rest.delete("name");
  const set = checkedSettings(rest, services, maker);
  const config = set.agent ?? "default";
  checkAgent(config, services);
  if (maker) checkPower(config, maker, services);
  const name = given || freeName(config);
  checkName(name);
  return { name, set };
}

/** @throws Fault where an agent config, or the sandbox config that it names, does not exist or makes no sense */
function checkAgent(name: string, services: Services): void {
  const { sandbox } = services.agentConfig(name);
  if (sandbox) services.sandboxConfigs.check(sandbox);
}

/** Checks agent keys as a create or cfg write gives them; null unsets. `within` as in `checkedSessionKeys`. */
export function checkedSettings(
  keys: Keys,
  services: Services,
  maker?: Agent,
): Record<string, string | null> {
  checkKeys(keys, agentKeys);
  const set: Record<string, string | null> = {};
  for (const [key, value] of keys) set[key] = value === "" ? null : value;
  if (set.backend) services.backend(set.backend);
  if (set.agent) checkAgent(set.agent, services);
  if (set.agent && maker) checkPower(set.agent, maker, services);
  if (set.cwd) set.cwd = checkFolder(set.cwd);
  if (set.cwd !== undefined) {
    if (maker) set.cwd = folderWithin(set.cwd ?? undefined, maker);
    set.within = maker?.profile.bound() ?? (set.cwd ? real(set.cwd) : null);
  }
  return set;
}

/** An absolute path of an existing folder; `~` is the home folder. */
export function checkFolder(path: string): string {
  const full = path === "~" || path.startsWith("~/") ? homedir() + path.slice(1) : path;
  if (!full.startsWith("/")) throw new Fault("invalid", `cwd=${path}: an absolute path is right`);
  let isFolder = false;
  try {
    isFolder = statSync(full).isDirectory();
  } catch {}
  if (!isFolder) throw new Fault("missing", `cwd=${path}: there is no such folder`);
  return full;
}
