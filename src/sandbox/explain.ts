/**
 * What the sandbox had to do with a failure, in words. To a program a denial is a plain "Permission denied", which sends a model in
 * circles; but so is one that the sandbox has no part in, which must not be blamed on it.
 */
import { accessSync, constants, lstatSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { tilde } from "../config/paths.ts";
import { type Attempt, type Finding, findDenials } from "./denials.ts";
import { follow } from "./links.ts";
import { realpathOfPart, within } from "./paths.ts";
import { bits, nameOf, type Places, R, W, X } from "./places.ts";
import type { Policy } from "./policy.ts";
import { printable } from "./project.ts";

export interface Scene {
  policy: Policy;
  cwd: string;
  home: string;
  /** The user's file in which a right would be granted. */
  rulesFile: string;
  /** What no rule opens. */
  places: Places;
  /** Folders of which programs see others than the host's, such as `/tmp` and `/run`; none where there is no mount namespace. */
  replaced(): readonly string[];
}

/** Sentences that are of use; more would only be read past. */
const most = 3;

/** Sentences for a result, none where the sandbox had no part in it. */
export function explain(output: string, scene: Scene): string[] {
  const sentences = new Set<string>();
  for (const finding of findDenials(output)) {
    const sentence = explainOne(finding, scene);
    if (sentence) sentences.add(sentence);
    if (sentences.size === most) break;
  }
  const found = [...sentences];
  // Once is enough.
  return found.map((text, i) =>
    i === found.length - 1 ? `${text}; elevated: true asks the user instead` : text,
  );
}

function explainOne(finding: Finding, scene: Scene): string | undefined {
  const network = aboutNetwork(finding, scene);
  if (network || finding.kind === "network") return network;
  for (const text of finding.paths) {
    const path = resolve(scene.cwd, text.startsWith("~/") ? scene.home + text.slice(1) : text);
    if (isAnothersView(path)) continue;
    const sentence =
      finding.kind === "missing"
        ? aboutHidden(path, finding.attempt, scene)
        : aboutPath(path, finding, scene);
    if (sentence) return sentence;
  }
  return finding.kind === "crossing" ? aboutCrossing(finding, scene) : undefined;
}

/** `/proc/PID/cwd` and the like lead to what only their process is to know, and no rule for it would open the way through there. */
function isAnothersView(path: string): boolean {
  return within(path, "/proc") && !within(realpathOfPart(path), "/proc");
}

function aboutNetwork({ kind, attempt, port, paths }: Finding, { policy, home, rulesFile }: Scene) {
  const { network } = policy;
  if (network.unrestricted || kind === "missing") return undefined;
  if (kind !== "network" && (attempt !== "socket" || paths.some((path) => isSocket(path)))) return undefined;
  // Who may connect there has failed for another reason.
  if (kind === "network" && port !== undefined && network.connect.includes(port)) return undefined;
  const ports = [...network.connect, ...network.bind];
  const open = ports.length > 0 ? `only TCP ports ${[...new Set(ports)].join(", ")}` : "no network";
  const rule =
    port === undefined ? "network.unrestricted: true" : `network.connect_tcp: [${port}] (bind_tcp to listen)`;
  return `the sandbox gives tools ${open}; ${rule} in ${tilde(rulesFile, home)} would allow it`;
}

function aboutPath(named: string, { kind, attempt }: Finding, scene: Scene): string | undefined {
  const { policy } = scene;
  const exists = lstatSync(named, { throwIfNoEntry: false }) !== undefined;
  const real = realpathOfPart(named);
  // What does not exist yet is made in its folder.
  const place = exists ? real : existing(dirname(real));
  const shown = printable(named);
  const frozen = policy.frozen.find((path) => within(real, path) || `${path}.lock` === real);
  if (frozen && kind !== "missing")
    return `${shown} is protected, since git runs what it says: tools cannot change it`;
  if (isSocket(named)) return aboutSocket(named, scene);
  if (policy.hidden.some((path) => within(real, path)))
    return `the sandbox does not let tools into ${shown}, and no rule can: it is ollie's own`;
  const right = missingRight(place, exists, kind, attempt, policy);
  if (!right) return kind === "readonly" ? aboutReadOnly(shown, place) : undefined;
  const runs = right === R && attempt !== "read" && isProgram(place);
  const verb = runs ? "read and execute" : { [R]: "read", [W]: "write", [X]: "execute" }[right]!;
  const blamed = `the sandbox does not let tools ${verb} ${shown}`;
  const closed = scene.places.all.some((one) => one.firm && one.without & right && within(place, one.path));
  if (closed) return `${blamed}, and no rule can: it is ollie's own`;
  if (right === R && place !== scene.home && within(scene.home, place))
    return `${blamed}, and no rule can: it holds the home folder; name what is to be looked at in it`;
  if (right !== W && scene.replaced().includes(place))
    return `${blamed}: they see in it only what a rule names, such as ${ruleFor(join(place, "NAME"), right, scene)}`;
  const rule =
    right === W && !exists && holdsProtected(place, scene.places)
      ? ruleOnceMade(place, real, scene)
      : `${ruleFor(place, runs ? R | X : right, scene)} would allow it`;
  const inTmp = within(real, "/tmp") && right === W;
  return `${blamed}: ${rule}${inTmp ? "; use $TMPDIR for temporary files" : ""}`;
}

/** A rule for the folder would give the right to write to what is in it, and not to itself: see grants.ts. */
function ruleOnceMade(folder: string, path: string, scene: Scene): string {
  const made = join(folder, relative(folder, path).split("/")[0]!);
  const shown = (one: string) => printable(tilde(one, scene.home));
  return `nothing new can be made in ${shown(folder)}, which holds something protected; once the user has made ${shown(made)}, ${ruleFor(made, W, scene)} would allow it`;
}

function holdsProtected(folder: string, { all }: Places): boolean {
  return all.some(({ path, without }) => without & W && path !== folder && within(path, folder));
}

/** What the sandbox mounts read-only and the user could not write either; the system's own words would be others without it. */
function aboutReadOnly(shown: string, place: string): string | undefined {
  if (may(place, W)) return undefined;
  return `to tools everything outside of their folders is read-only; ${shown} is not the user's to write without the sandbox either`;
}

/** The right that the policy does not give and that the user has: the first that fits what was tried. */
function missingRight(
  place: string,
  exists: boolean,
  kind: Finding["kind"],
  attempt: Attempt,
  policy: Policy,
): number | undefined {
  const given = rightsAt(place, policy);
  // EPERM has many reasons that are no matter of paths.
  if (kind === "forbidden" && attempt === undefined) return undefined;
  const write = attempt === "write" || !exists || (kind !== "denied" && kind !== "forbidden");
  // Where nothing says what was tried, it may have been any; the kernel's own files refuse reading for reasons of their own.
  const sure = attempt === "read" || within(place, "/proc") || within(place, "/sys");
  const wanted = write ? [W] : attempt === "execute" ? [X, R] : sure ? [R] : [R, W, X];
  return wanted.find((right) => !(given & right) && may(place, right));
}

/** rename(2) and link(2) fail between folders with different rights, also where both can be written. */
function aboutCrossing({ paths }: Finding, { policy, cwd }: Scene): string | undefined {
  const path = paths.map((text) => resolve(cwd, text)).find((one) => rightsAt(dirname(one), policy) & W);
  if (path === undefined) return undefined;
  return `the sandbox lets nothing be renamed or linked between folders with different rights, such as to or from ${printable(path)}: copy it and remove the original`;
}

/** A file that exists, or whose folder does, and that programs do not see. */
function aboutHidden(named: string, attempt: Attempt, scene: Scene): string | undefined {
  const { policy, replaced, places } = scene;
  const folder = replaced().find((path) => within(named, path) && named !== path);
  const there = [named, dirname(named)].find((path) => path !== folder && follow(path));
  const found = there && follow(there)?.real;
  if (!folder || !there || !found || rightsAt(found, policy) !== 0) return undefined;
  if (policy.hidden.some((path) => within(found, path))) return undefined;
  if (places.all.some((place) => place.firm && within(found, place.path))) return undefined;
  if (isSocket(found)) return aboutSocket(named, scene);
  const own = folder === "/tmp" ? "tools have a /tmp of their own" : `tools do not see what is in ${folder}`;
  const instead = folder === "/tmp" && attempt === "write" ? "; use $TMPDIR for temporary files" : "";
  const right = attempt === "write" ? W : R;
  return `${printable(there)} exists, but ${own}: ${ruleFor(found, right, scene)} would show it${instead}`;
}

function aboutSocket(path: string, { policy, home, rulesFile }: Scene): string | undefined {
  if (policy.network.unix.includes(realpathOfPart(path)) || !may(path, W)) return undefined;
  return `the sandbox does not let tools reach the socket ${printable(path)}: network.unix: ["${printable(path)}"] in ${tilde(rulesFile, home)} would allow it`;
}

function ruleFor(place: string, right: number, { policy, rulesFile, home }: Scene): string {
  const key = nameOf(rightsAt(place, policy) | right);
  return `filesystem.${key}: ["${printable(tilde(place, home))}"] in ${tilde(rulesFile, home)}`;
}

function rightsAt(path: string, { filesystem }: Policy): number {
  let rights = 0;
  for (const [key, given] of Object.entries(bits))
    if (filesystem[key as keyof typeof bits].some((folder) => within(path, folder))) rights |= given;
  return rights;
}

/** By the ordinary permissions, which the sandbox cannot widen. */
function may(path: string, right: number): boolean {
  try {
    accessSync(path, { [R]: constants.R_OK, [W]: constants.W_OK, [X]: constants.X_OK }[right]);
    return true;
  } catch {
    return false;
  }
}

function isProgram(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true && may(path, X);
}

/** The nearest folder above that exists. */
function existing(path: string): string {
  return lstatSync(path, { throwIfNoEntry: false }) ? path : existing(dirname(path));
}

function isSocket(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isSocket() === true;
}
