/**
 * Landrun's flags as steps of a launch: what is not granted is denied, in every domain that is not called unrestricted.
 *
 * Beyond landrun, a restricted network is one for all protocols and not for TCP alone, and sockets in the file system are denied by a
 * filter on kernels whose Landlock does not know them: as system calls, therefore without exceptions.
 */
import { realpathSync, statSync } from "node:fs";
import { Fault } from "../fault.ts";
import { landlockSteps, netSince, scopeSince, unixSince } from "./launch/landlock.ts";
import { inheritedSteps, limitOpenFiles } from "./launch/process.ts";
import { type Filter, seccompStep } from "./launch/seccomp.ts";
import { noNewPrivs, type Step } from "./launch/step.ts";
import type { Machine } from "./launch/syscalls.ts";
import { neededFiles } from "./libraries.ts";

/** What the flags say. */
export interface Restrictions {
  /** Paths as they were written. */
  filesystem: Record<"ro" | "rox" | "rw" | "rwx", string[]>;
  unix: string[];
  /** TCP ports. */
  bind: number[];
  connect: number[];
  unrestricted: { filesystem: boolean; network: boolean; scoped: boolean };
  ignoreMissing: boolean;
  /** Flags of landlock_restrict_self(2). */
  log: number;
}

export interface Kernel {
  machine: Machine;
  /** Landlock's ABI; 0 = none. */
  landlock: number;
  seccomp: boolean;
}

/** `landlock_restrict_self(2)`: what of denied accesses is written to the audit log. */
export const logFlags = { originatingOff: 1, subprocessesOn: 2, subdomainsOff: 4 };
const logSince = 7;

/** From which ABI on Landlock guards it, and what a program can do before. */
const files: [since: number, lack: string][] = [
  [1, "read and write files that were not granted"],
  [3, "cut files to length 0 that were not granted"],
  [5, "send ioctls to devices that were not granted"],
];

/** What this kernel cannot deny, though it should be; one phrase each that says what is missing. Empty = all is enforced. */
export function shortfalls(restrictions: Restrictions, { landlock, seccomp }: Kernel): string[] {
  const { unrestricted, bind, connect, unix, log } = restrictions;
  const found: string[] = [];
  const lacks = (lack: string, since: number) => {
    if (landlock < since) found.push(`${lack} (needs Landlock ABI ${since}, this kernel has ${landlock})`);
  };
  if (!unrestricted.filesystem) {
    for (const [since, lack] of files) lacks(lack, since);
    if (unix.length > 0) lacks("reach other sockets in the file system than those of --unix", unixSince);
    else if (!seccomp) lacks("reach sockets in the file system", unixSince);
  }
  if (!unrestricted.network) {
    if (bind.length + connect.length > 0) lacks("use other TCP ports than those named", netSince);
    if (!seccomp) found.push("use networks that are not TCP (needs seccomp, which this kernel lacks)");
  }
  if (!unrestricted.scoped) lacks("send signals to processes outside and reach abstract sockets", scopeSince);
  if (log !== 0) lacks("have its denied accesses logged otherwise than asked for", logSince);
  return found;
}

/** From a process that Bun has set up to one that is confined; what makes it the program is not among them. */
export function confiningSteps(restrictions: Restrictions, kernel: Kernel): Step[] {
  const { unrestricted, bind, connect } = restrictions;
  const { landlock, machine, seccomp } = kernel;
  const resolved = (paths: string[]) => resolvePaths(paths, restrictions.ignoreMissing);
  const { ro, rox, rw, rwx } = restrictions.filesystem;
  const unix = resolved(restrictions.unix);
  const policy = {
    filesystem: { list: [], ro: resolved(ro), rox: resolved(rox), rw: resolved(rw), rwx: resolved(rwx) },
    network: { unrestricted: unrestricted.network, bind, connect, unix },
  };
  const flags = landlock >= logSince ? restrictions.log : 0;
  const filter = filterOf(restrictions, landlock);
  return [
    ...inheritedSteps(),
    limitOpenFiles(),
    ...(landlock > 0 ? landlockSteps(policy, landlock, unix, { ...unrestricted, flags }) : [noNewPrivs]),
    ...(seccomp && filter ? [seccompStep(filter, machine)] : []),
  ];
}

/** Undefined where nothing is left to filter. */
function filterOf({ unrestricted, bind, connect, unix }: Restrictions, landlock: number): Filter | undefined {
  if (unrestricted.filesystem && unrestricted.network) return undefined;
  const restricted = bind.length + connect.length > 0 ? "tcp" : "none";
  return {
    network: unrestricted.network ? "any" : restricted,
    unix: unrestricted.filesystem || landlock >= unixSince || unix.length > 0,
  };
}

/** Adds to `rox` what the program needs to be loaded, and to `ro` what its loader reads. */
export function withLibraries(
  restrictions: Restrictions,
  program: string,
  libraryPath: readonly string[],
): Restrictions {
  const { files: needed, indexes } = neededFiles(program, libraryPath);
  const { filesystem } = restrictions;
  return {
    ...restrictions,
    filesystem: {
      ...filesystem,
      ro: [...filesystem.ro, ...indexes],
      rox: [...filesystem.rox, ...needed],
    },
  };
}

function resolvePaths(paths: readonly string[], ignoreMissing: boolean): string[] {
  return paths.flatMap((path) => {
    try {
      return [realpathSync(path)];
    } catch (error) {
      // A pipe behind /dev/stdin has no place in the file system: Landlock neither knows nor denies it.
      if (statSync(path, { throwIfNoEntry: false })) return [];
      const code = (error as { code?: string }).code;
      if (ignoreMissing && (code === "ENOENT" || code === "ENOTDIR")) return [];
      throw new Fault("missing", `${path} does not exist: --ignore-missing goes on without it`);
    }
  });
}
