/** Landlock: `landlock(7)`, and `Documentation/userspace-api/landlock.rst` for what came with which ABI. */
import { realpathSync, statSync } from "node:fs";
import type { Policy } from "../policy.ts";
import { attempt, must, noNewPrivs, type Step } from "./step.ts";
import { AT_FDCWD, O_CLOEXEC, O_PATH } from "./syscalls.ts";

const right = {
  execute: 1n << 0n,
  writeFile: 1n << 1n,
  readFile: 1n << 2n,
  readDir: 1n << 3n,
  removeDir: 1n << 4n,
  removeFile: 1n << 5n,
  makeChar: 1n << 6n,
  makeDir: 1n << 7n,
  makeReg: 1n << 8n,
  makeSock: 1n << 9n,
  makeFifo: 1n << 10n,
  makeBlock: 1n << 11n,
  makeSym: 1n << 12n,
  refer: 1n << 13n,
  truncate: 1n << 14n,
  ioctlDev: 1n << 15n,
  resolveUnix: 1n << 16n,
};

/** The rights that a kernel knows, by the ABI that brought them. */
const knownSince: [abi: number, rights: bigint][] = [
  [1, (1n << 13n) - 1n],
  [2, right.refer],
  [3, right.truncate],
  [5, right.ioctlDev],
  [9, right.resolveUnix],
];

const read = right.readFile | right.readDir;
const write =
  right.writeFile |
  right.removeDir |
  right.removeFile |
  right.makeDir |
  right.makeReg |
  right.makeSock |
  right.makeFifo |
  right.makeSym |
  right.refer |
  right.truncate |
  right.ioctlDev |
  right.resolveUnix;

const granted: Record<keyof Policy["filesystem"], bigint> = {
  list: right.readDir,
  ro: read,
  rox: read | right.execute,
  rw: read | write,
  rwx: read | write | right.execute,
};

/** What a rule on something else than a directory may hold; the kernel refuses a rule with more. */
const ofFiles =
  right.execute | right.writeFile | right.readFile | right.truncate | right.ioctlDev | right.resolveUnix;

const RULE_PATH_BENEATH = 1;
const RULE_NET_PORT = 2;
const netBind = 1n << 0n;
const netConnect = 1n << 1n;
const scopeAbstractUnix = 1n << 0n;
const scopeSignal = 1n << 1n;

export const netSince = 4;
export const scopeSince = 6;
/** From here on a socket in the file system can be denied by its path. */
export const unixSince = 9;

/** What is not to be handled at all, for who runs programs by hand. */
export interface Loosened {
  filesystem?: boolean;
  scoped?: boolean;
  /** Flags of landlock_restrict_self, ABI 7. */
  flags?: number;
}

function handledRights(abi: number): bigint {
  return knownSince.reduce((rights, [since, more]) => (abi >= since ? rights | more : rights), 0n);
}

/**
 * Makes the ruleset and restricts the process. No descriptor above 2 may be open.
 * @param sockets paths of sockets that may be connected to; of effect from ABI 9 on
 */
export function landlockSteps(
  policy: Pick<Policy, "filesystem" | "network">,
  abi: number,
  sockets: readonly string[] = [],
  { filesystem = false, scoped = false, flags = 0 }: Loosened = {},
): Step[] {
  const handled = filesystem ? 0n : handledRights(abi);
  const net = abi >= netSince && !policy.network.unrestricted ? netBind | netConnect : 0n;
  const scope = abi >= scopeSince && !scoped ? scopeAbstractUnix | scopeSignal : 0n;
  const rules = handled === 0n ? [] : pathRules(policy, handled, sockets);
  if (net !== 0n) rules.push(...portRules(policy.network));
  return [
    noNewPrivs,
    ...(handled === 0n && net === 0n && scope === 0n
      ? []
      : [
          must("make a Landlock ruleset", "landlock_create_ruleset", words(handled, net, scope), 24, 0),
          ...rules,
          must("restrict itself with Landlock", "landlock_restrict_self", ruleset, flags),
          must("close the Landlock ruleset", "close", ruleset),
        ]),
  ];
}

/** The first descriptors that are free. */
const ruleset = 3;
const opened = 4;

function pathRules(
  { filesystem }: Pick<Policy, "filesystem">,
  handled: bigint,
  sockets: readonly string[],
): Step[] {
  const wanted = new Map<string, bigint>();
  const add = (path: string, rights: bigint) => wanted.set(path, (wanted.get(path) ?? 0n) | rights);
  for (const [kind, paths] of Object.entries(filesystem))
    for (const path of paths) add(path, granted[kind as keyof typeof granted]);
  for (const path of sockets) add(realPath(path), right.resolveUnix);
  return [...wanted].flatMap(([path, rights]) => {
    const kept = rights & handled & (isDirectory(path) ? handled : ofFiles);
    return kept === 0n ? [] : pathRule(path, kept);
  });
}

function pathRule(path: string, rights: bigint): Step[] {
  const attr = new Uint8Array(12);
  const view = new DataView(attr.buffer);
  view.setBigUint64(0, rights, true);
  view.setInt32(8, opened, true);
  // What has gone since is not granted, and that is all.
  return [
    attempt(`open ${path}`, "openat2", AT_FDCWD, path, asMeant, 24),
    attempt(`grant ${path}`, "landlock_add_rule", ruleset, RULE_PATH_BENEATH, attr, 0),
    attempt(`close ${path}`, "close", opened),
  ];
}

const RESOLVE_NO_SYMLINKS = 4;

/**
 * `struct open_how`. Links were resolved when the policy was made: one that is there now was put in the way by somebody, such as a
 * program of the same session that may write here and would like to have a right elsewhere.
 */
export const asMeant = { fields: [O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS] };

function portRules({ bind, connect }: Policy["network"]): Step[] {
  const ports = new Map<number, bigint>();
  for (const port of bind) ports.set(port, (ports.get(port) ?? 0n) | netBind);
  for (const port of connect) ports.set(port, (ports.get(port) ?? 0n) | netConnect);
  return [...ports].map(([port, rights]) =>
    must(
      `grant TCP port ${port}`,
      "landlock_add_rule",
      ruleset,
      RULE_NET_PORT,
      words(rights, BigInt(port)),
      0,
    ),
  );
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** 64-bit words as the kernel reads them. */
function words(...values: bigint[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(values.length * 8));
  values.forEach((value, place) => {
    view.setBigUint64(place * 8, value, true);
  });
  return new Uint8Array(view.buffer);
}
