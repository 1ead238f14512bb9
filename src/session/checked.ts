/** What create and cfg writes ask for, checked before anything is changed. */
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { Fault } from "../fault.ts";
import type { Agent } from "./agent.ts";
import { agentKeys, checkKeys, checkName, newSessionKeys, sessionKeys } from "./keys.ts";
import { checkPower, folderThere, folderWithin, real } from "./limits.ts";
import type { Keys } from "./live.ts";
import { noRemotes } from "./reach.ts";
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
    else if (Object.hasOwn(newSessionKeys, key)) split.session.set(key, value);
    else if (Object.hasOwn(agentKeys, key)) split.agent.set(key, value);
    else
      throw new Fault(
        "invalid",
        `unknown key ${key}; there are ${[...new Set([...Object.keys(newSessionKeys), ...Object.keys(agentKeys)])].join(" ")} env.NAME`,
      );
  }
  return split;
}

/**
 * Session keys as a create or cfg write gives them, checked. With `cwd` goes `within`, which is no key of anybody's: the folder that it must
 * stay in, whatever lies at that path later; for the owner the one that it leads to now.
 * @param remote the host that the session's tools run on, unless `keys` say another one; there nothing of a folder is known here
 */
export function checkedSessionKeys(
  keys: Keys,
  services: Services,
  {
    maker,
    remote = "",
    known = sessionKeys,
  }: { maker?: Agent; remote?: string; known?: typeof sessionKeys } = {},
): Record<string, string> {
  checkKeys(keys, known);
  const set = Object.fromEntries(keys);
  if (set.remote) checkRemote(set.remote, services);
  const there = (set.remote ?? remote) !== "";
  if (set.remoteSession && !there)
    throw new Fault("invalid", "remoteSession needs remote, the host that it is on");
  if (set.cwd !== undefined) Object.assign(set, ground(set.cwd, there, maker));
  if (set.sandbox) services.sandboxConfigs.check(set.sandbox);
  return set;
}

/** @throws Fault where that cannot be a host */
function checkRemote(target: string, { remotes }: Services): void {
  if (!remotes) throw new Fault("unavailable", `remote=${target}: ${noRemotes}`);
  remotes.check(target);
}

/** A working folder, empty = none, and what it has to stay in. */
function ground(cwd: string, there: boolean, maker: Agent | undefined): { cwd: string; within: string } {
  if (there) return { cwd: maker ? folderThere(cwd, maker) : checkFolderThere(cwd), within: "" };
  const folder = cwd && checkFolder(cwd);
  if (maker) return { cwd: folderWithin(folder, maker), within: maker.profile.bound() };
  return { cwd: folder, within: folder && real(folder) };
}

/** The path of a folder on another host. */
function checkFolderThere(path: string): string {
  if (path === "" || path.startsWith("/") || path === "~" || path.startsWith("~/")) return path;
  throw new Fault("invalid", `cwd=${path}: an absolute path on the other host, or one below ~, is right`);
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
  { maker, remote }: { maker?: Agent; remote: string },
): { name: string; set: Record<string, string | null> } {
  const rest = new Map(keys);
  const given = rest.get("name");
  rest.delete("name");
  const set = checkedSettings(rest, services, { maker, remote });
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

/** Checks agent keys as a create or cfg write gives them; null unsets. `within` and `remote` as in `checkedSessionKeys`. */
export function checkedSettings(
  keys: Keys,
  services: Services,
  { maker, remote }: { maker?: Agent; remote: string },
): Record<string, string | null> {
  checkKeys(keys, agentKeys);
  const set: Record<string, string | null> = {};
  for (const [key, value] of keys) set[key] = value === "" ? null : value;
  if (set.backend) services.backend(set.backend);
  if (set.agent) checkAgent(set.agent, services);
  if (set.agent && maker) checkPower(set.agent, maker, services);
  if (set.cwd !== undefined) {
    const { cwd, within } = ground(set.cwd ?? "", remote !== "", maker);
    Object.assign(set, { cwd: cwd || null, within: within || null });
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
