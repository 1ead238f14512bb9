/** From configs to the policy that holds on this host. */
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Fault } from "../fault.ts";
import { type Layer, rights } from "./config.ts";
import { protectedPaths, type Repository } from "./git.ts";
import { Grants } from "./grants.ts";
import type { SandboxGround } from "./ground.ts";
import { type Followed, follow } from "./links.ts";
import { realpathOfPart, within } from "./paths.ts";
import { bits, type Places, R, W, X } from "./places.ts";
import type { Policy } from "./policy.ts";
import { expandTemplates, type Values } from "./templates.ts";

export interface Surroundings {
  ground: SandboxGround;
  places: Places;
  /** Links resolved. */
  cwd: string;
  /** The session's private folder; without one `{TMPDIR}` stands for nothing. */
  tmp?: string;
  repository?: Repository;
}

export interface Resolved {
  policy: Policy;
  grants: Grants;
  /** What the user's own files say in vain: a sentence each. */
  warnings: string[];
}

/** A path of a config, found on this host. */
interface Entry extends Followed {
  rights: number;
  /** For warnings: file, key and path as written; undefined in the shipped default. */
  label?: string;
}

/** @param layers from the weakest to the strongest */
export function resolvePolicy(layers: readonly Layer[], around: Surroundings): Resolved {
  const warnings: string[] = [];
  const { places } = around;
  const entries = layers.flatMap((layer) => entriesOf(layer, around, warnings));
  let grants = granted(entries, around);
  // Who can write where a link lies could have it lead anywhere, and so give itself any folder.
  const writable = grants.paths(W);
  const safe = entries.filter(({ through, real, label }) => {
    const led = through.some((folder) => writable.some((path) => within(folder, path)));
    if (led && label)
      warnings.push(`${label}: leads to ${real} by a link that tools can change; name ${real}`);
    return !led;
  });
  if (safe.length < entries.length) grants = granted(safe, around);
  for (const { real, rights: wanted, label } of safe)
    if (label && grants.reach(real, wanted) !== wanted)
      warnings.push(`${label}: is ollie's own and protected`);
  for (const path of grants.crowded)
    warnings.push(`${path} holds something protected and too many other entries: name the folders in it`);
  const policy: Policy = {
    filesystem: grants.filesystem(),
    ...switches(layers),
    env: [...new Set(layers.flatMap(({ config }) => config.env))],
    frozen: frozen(grants, around),
    hidden: hidden(around),
  };
  // Who writes a socket's path among files, as configs for Docker do, means to talk to it. One that tools can put there is none of these.
  const named = safe.filter(
    ({ real, rights: given, label }) =>
      label && given & W && isOpenSocket(real, places) && !(grants.at(dirname(real)) & W),
  );
  policy.network.unix = [
    ...new Set([
      ...layers.flatMap((layer) => sockets(layer, around, warnings)),
      ...named.map(({ real }) => real),
      ...agentSocket(layers, around),
    ]),
  ];
  return { policy, grants, warnings: [...new Set(warnings)] };
}

/** Values that templates have for this policy. */
export function templateValues({ ground, cwd, tmp }: Pick<Surroundings, "ground" | "cwd" | "tmp">): Values {
  const { paths, environment } = ground;
  const own: Record<string, string | undefined> = {
    CWD: cwd,
    HOME: paths.home,
    TMPDIR: tmp && join(tmp, "tmp"),
    OLLIE_TOOLS_PATH: paths.tools.join(":"),
    OLLIE_SKILLS_PATH: paths.skills.join(":"),
    OLLIE_MEMORY_PATH: paths.memory,
  };
  return (name) => (Object.hasOwn(own, name) ? own[name] : environment[name]);
}

function entriesOf({ file, config }: Layer, around: Surroundings, warnings: string[]): Entry[] {
  return rights.flatMap((right) =>
    config.filesystem[right].flatMap((text) => {
      const label = file && `${file}: filesystem.${right}: ${text}`;
      return located(text, label, around, warnings).map((found) => ({
        ...found,
        rights: bits[right],
        label,
      }));
    }),
  );
}

/** Where a path of a config leads on this host; nowhere is a warning where the user wrote it. */
function located(
  text: string,
  label: string | undefined,
  around: Surroundings,
  warnings: string[],
): Followed[] {
  const { paths, unset } = expandTemplates(text, templateValues(around));
  const warn = (why: string) => label && warnings.push(`${label}: ${why}`);
  // A session has a TMPDIR; where there is no session nothing is wrong.
  if (unset !== undefined && unset !== "TMPDIR") warn(`${unset} is not set`);
  return paths.flatMap((path) => {
    const found = path.startsWith("/") ? follow(path) : undefined;
    if (!found) warn(path.startsWith("/") ? "does not exist" : `${path} is no absolute path`);
    else if (within(path, around.cwd)) checkUnmoved(found, around.cwd);
    return found ?? [];
  });
}

/** `cwd` had no links when it was looked at: who lays one now, on the way to it, would have it lead anywhere. */
function checkUnmoved({ through }: Followed, cwd: string): void {
  if (through.some((folder) => folder !== cwd && within(cwd, folder)))
    throw new Fault("denied", `the working folder ${cwd} has become a link`);
}

function granted(entries: readonly Entry[], around: Surroundings): Grants {
  const { ground, places, cwd, repository } = around;
  const grants = new Grants(places, realpathOfPart(ground.paths.home));
  for (const { real, rights } of entries) grants.grant(real, rights);
  own(grants, around);
  if (repository) {
    // git writes beside the work tree, and programs of a subfolder are found from the top: no more than may be done in the folder itself.
    const here = grants.at(cwd);
    for (const folder of [repository.gitDir, repository.commonDir]) grants.grant(folder, here);
    grants.grant(repository.top, here & ~W);
  }
  return grants;
}

/** What every tool needs to run at all, whatever configs say. */
function own(grants: Grants, { ground, tmp }: Surroundings): void {
  for (const path of ground.paths.tools) if (existsSync(path)) grants.add(realpathSync(path), R | X);
  if (existsSync("/dev")) grants.list("/dev");
  if (tmp === undefined) return;
  const folder = realpathSync(tmp);
  // The folder itself stays as it is, so that nothing in it can be a link by which ollie would write elsewhere.
  for (const name of ["tmp", "output"]) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 });
  grants.add(folder, R);
  grants.add(join(folder, "tmp"), R | W | X);
}

/** The last that says something counts; lists of ports add up. Nobody says anything: no. */
function switches(layers: readonly Layer[]): Pick<Policy, "network" | "bestEffort"> {
  const configs = layers.map(({ config }) => config);
  const last = (values: (boolean | undefined)[]) => values.findLast((value) => value !== undefined) ?? false;
  const ports = (key: "bind_tcp" | "connect_tcp") =>
    [...new Set(configs.flatMap(({ network }) => network[key]))].sort((a, b) => a - b);
  return {
    network: {
      unrestricted: last(configs.map(({ network }) => network.unrestricted)),
      bind: ports("bind_tcp"),
      connect: ports("connect_tcp"),
      unix: [],
    },
    bestEffort: last(configs.map(({ general }) => general.best_effort)),
  };
}

function sockets({ file, config }: Layer, around: Surroundings, warnings: string[]): string[] {
  return config.network.unix.flatMap((text) => {
    const label = file && `${file}: network.unix: ${text}`;
    return located(text, label, around, warnings)
      .filter(({ real }) => {
        const closed = isClosed(real, around.places);
        if (closed && label) warnings.push(`${label}: is ollie's own and protected`);
        return !closed;
      })
      .map(({ real }) => real);
  });
}

/** Who lets tools have SSH_AUTH_SOCK means to let them use the keys behind it. */
function agentSocket(layers: readonly Layer[], { ground, places }: Surroundings): string[] {
  const name = "SSH_AUTH_SOCK";
  const path = ground.environment[name];
  if (!path?.startsWith("/") || !layers.some(({ config }) => config.env.includes(name))) return [];
  const real = realpathOfPart(path);
  return isOpenSocket(real, places) ? [real] : [];
}

function isOpenSocket(real: string, places: Places): boolean {
  return statSync(real, { throwIfNoEntry: false })?.isSocket() === true && !isClosed(real, places);
}

function isClosed(real: string, { all }: Places): boolean {
  return all.some(({ path, without, firm }) => firm && without & R && within(real, path));
}

/** What git would run or obey, as far as it exists where tools can write. */
function frozen(grants: Grants, { repository }: Surroundings): string[] {
  if (!repository) return [];
  return protectedPaths(repository)
    .filter((path) => grants.at(path) & W && isFrozen(path))
    .map((path) => realpathSync(path));
}

/** A `.git` that is a folder has things in it that git must write. */
function isFrozen(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat || !existsSync(path)) return false;
  return basename(path) !== ".git" || stat.isFile();
}

/** Of the state folder everything but `tmp`, of which a session has a part. */
function hidden({ ground, places }: Surroundings): string[] {
  const { state } = ground.paths;
  const parts = existsSync(state) ? readdirSync(state).filter((name) => name !== "tmp") : [];
  const closed = places.all
    .filter(({ path, without, firm }) => firm && without & R && !within(state, path))
    .map(({ path }) => path);
  const paths = [...parts.map((name) => join(state, name)), ...closed].filter((path) => existsSync(path));
  return [...new Set(paths.map((path) => realpathSync(path)))]
    .filter((path) => path !== realpathOfPart(state))
    .sort();
}

/**
 * Refuses working folders around which there is no sandbox.
 * @throws Fault that says which folder to choose
 */
export function checkCwd({ ground, places, cwd, tmp }: Surroundings): void {
  const home = realpathOfPart(ground.paths.home);
  if (cwd === "/" || (cwd !== home && within(home, cwd)))
    throw new Fault(
      "invalid",
      `the working folder ${cwd} holds the home folder, which tools must not have as a whole: choose a project's folder as cwd`,
    );
  if (tmp !== undefined && within(cwd, realpathOfPart(tmp))) return;
  const open = places.open.some((path) => within(cwd, path));
  const place = places.all.find(({ path, without, firm }) => firm && without & W && within(cwd, path));
  if (place && !open)
    throw new Fault(
      "denied",
      `the working folder ${cwd} lies in ${place.path}, which is ollie's own and closed to tools: choose a folder outside of it as cwd`,
    );
}
