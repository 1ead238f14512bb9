/** From a policy to the steps of its launch image. */
import { processCeiling, processLimit } from "../../exec/limits.ts";
import { within } from "../paths.ts";
import type { Policy } from "../policy.ts";
import { landlockSteps, netSince, unixSince } from "./landlock.ts";
import { namespaceSteps, terminals, viewSteps } from "./mounts.ts";
import { capabilitySteps, dieWith, limitOpenFiles, processSteps } from "./process.ts";
import { type Filter, seccompStep } from "./seccomp.ts";
import { becomeProgram, type Step } from "./step.ts";
import type { Machine } from "./syscalls.ts";
import { hasOwnTmp, type View } from "./view.ts";

/** What this host's kernel lets us do; found out by `probe.ts`. */
export interface Abilities {
  machine: Machine;
  /** Landlock's ABI; 0 = none. */
  landlock: number;
  /** User and mount namespaces with all that `viewSteps` does in them. */
  namespaces: boolean;
  seccomp: boolean;
}

export interface LaunchRequest extends View {
  /** Bytes of address space of each process. */
  memory?: number;
  /** Pid of whom the program is not to outlive. */
  parent?: number;
}

/** How sockets in the file system are kept from a program. */
export type SocketGuard = "namespace" | "landlock" | "seccomp" | "none";

export function socketGuard({ landlock, namespaces, seccomp }: Omit<Abilities, "machine">): SocketGuard {
  if (namespaces) return "namespace";
  if (landlock >= unixSince) return "landlock";
  return seccomp ? "seccomp" : "none";
}

/** The whole way from a fresh process to the confined program. */
export function launchSteps(request: LaunchRequest, abilities: Abilities): Step[] {
  const { memory, parent } = request;
  const { landlock, namespaces, seccomp, machine } = abilities;
  const root = process.geteuid!() === 0;
  const ownNamespace = namespaces && !root;
  const policy = namespaces ? withOwnTmp(request) : withoutTerminals(request.policy);
  return [
    ...processSteps({ memory, processes: ownNamespace ? processLimit : processCeiling() }),
    ...(namespaces ? [...namespaceSteps(root), ...viewSteps(request)] : []),
    limitOpenFiles(),
    ...capabilitySteps(root),
    ...landlockSteps(policy, landlock, [...request.sockets, ...policy.network.unix]),
    ...(seccomp ? [seccompStep(filterOf(policy, abilities), machine)] : []),
    ...(parent === undefined ? [] : dieWith(parent)),
    becomeProgram,
  ];
}

function withOwnTmp(request: LaunchRequest): Policy {
  const { policy } = request;
  if (!hasOwnTmp(request)) return policy;
  const { filesystem } = policy;
  return { ...policy, filesystem: { ...filesystem, rwx: [...filesystem.rwx, "/tmp"] } };
}

/** Without a mount of their own, they would be those of the user. */
function withoutTerminals(policy: Policy): Policy {
  const filesystem = Object.entries(policy.filesystem).map(([right, paths]) => [
    right,
    paths.filter((path) => !within(path, terminals)),
  ]);
  return { ...policy, filesystem: Object.fromEntries(filesystem) as Policy["filesystem"] };
}

function filterOf({ network }: Policy, abilities: Abilities): Filter {
  const ports = network.bind.length + network.connect.length > 0;
  const restricted = ports && abilities.landlock >= netSince ? "tcp" : "none";
  return {
    network: network.unrestricted ? "any" : restricted,
    // An exception cannot be told by its path here: it opens all.
    unix: socketGuard(abilities) !== "seccomp" || network.unix.length > 0,
  };
}
