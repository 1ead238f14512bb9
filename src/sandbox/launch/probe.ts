/** What this host's kernel lets a launch do: found out by doing it and then trying what must be forbidden. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { SandboxPart } from "../../config/settings.ts";
import type { Policy } from "../policy.ts";
import type { Abilities } from "./compile.ts";
import type { Images } from "./images.ts";
import { landlockSteps } from "./landlock.ts";
import { namespaceSteps, viewSteps } from "./mounts.ts";
import { capabilitySteps, processSteps } from "./process.ts";
import { seccompStep } from "./seccomp.ts";
import { must, noNewPrivs, refused, reveal, type Step } from "./step.ts";
import { AT_FDCWD, EACCES, EROFS } from "./syscalls.ts";

export interface Probed extends Abilities {
  /** Why something cannot be done: a sentence each. */
  reasons: string[];
}

const nothing: Policy = {
  filesystem: { list: [], ro: [], rox: [], rw: [], rwx: [] },
  network: { unrestricted: false, bind: [], connect: [], unix: [] },
  env: [],
  bestEffort: false,
  frozen: [],
  hidden: [],
};

/**
 * Tries each part by itself; takes some milliseconds.
 * @param images where programs can be put
 * @param scratch a folder of this server alone
 * @param without what counts as not to be had: so what a kernel with less leaves of a sandbox can be seen on this one
 */
export function probe(images: Images, scratch: string, without: readonly SandboxPart[] = []): Probed {
  const reasons: string[] = [];
  const machine = images.machine;
  const given = (part: SandboxPart): boolean => {
    if (without.includes(part)) reasons.push(`${part}: OLLIE_SANDBOX_WITHOUT names it`);
    return !without.includes(part);
  };
  const works = (what: string, steps: Step[]): boolean => {
    const problem = attemptImage(images, [...processSteps({}), ...steps, succeed]);
    if (problem) reasons.push(`${what}: ${problem}`);
    return problem === undefined;
  };
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const outside = join(scratch, "outside");
  const cage = join(scratch, "cage");
  mkdirSync(cage, { recursive: true });
  const root = process.geteuid!() === 0;

  const abi = given("landlock") ? landlockAbi(images) : 0;
  if (abi === 0 && !without.includes("landlock"))
    reasons.push("Landlock: this kernel has none, or it was not enabled at boot (lsm=)");
  const landlock =
    abi > 0 &&
    works("Landlock", [...landlockSteps(nothing, abi), refused(EACCES, denied, ...makeFolder(outside))]);
  const policy = { ...nothing, filesystem: { ...nothing.filesystem, rwx: [cage] } };
  const view = { policy, cwd: cage, privateTmp: join(scratch, "tmp"), sockets: [] };
  const namespaces =
    given("namespaces") &&
    works("user and mount namespaces", [
      ...namespaceSteps(root),
      ...viewSteps(view),
      ...capabilitySteps(root),
      must("write in the cage", ...makeFolder(join(cage, String(process.pid)))),
      refused(EROFS, denied, ...makeFolder(outside)),
    ]);
  const filter = { network: "none", unix: true } as const;
  const seccomp =
    given("seccomp") &&
    works("seccomp", [
      noNewPrivs,
      seccompStep(filter, machine),
      refused(EACCES, "have a socket refused that must be", "socket", 2, 2, 0),
    ]);
  return { machine, landlock: landlock ? abi : 0, namespaces, seccomp, reasons };
}

const denied = "have a write refused that must be";
const makeFolder = (path: string) => ["mkdirat", AT_FDCWD, path, 0o700] as const;
const succeed = must("end", "exit_group", 0);

/** Runs an image that ends by itself; what went wrong, in words. */
export function attemptImage(images: Images, steps: readonly Step[]): string | undefined {
  try {
    const { exitCode, signalCode, stderr } = Bun.spawnSync([images.pathOf(steps)], {
      env: {},
      stdin: "ignore",
    });
    const text = stderr.toString().trim().replace(images.prefix, "cannot ");
    if (exitCode === 0 && text === "") return undefined;
    return text === "" ? `ended with ${signalCode ?? exitCode}` : `${text} (errno ${exitCode})`;
  } catch (error) {
    return (error as Error).message;
  }
}

const VERSION = 1;
/** ABIs are small, errnos positive: what is this large as an exit status was a number returned. */
const leastReturned = 200;

/** 0 = none. `landlock_create_ruleset(2)` */
function landlockAbi(images: Images): number {
  const question = reveal("tell Landlock's ABI", "landlock_create_ruleset", 0, 0, VERSION);
  const { exitCode } = Bun.spawnSync([images.pathOf([question])], {
    env: {},
    stdin: "ignore",
    stderr: "ignore",
  });
  return exitCode >= leastReturned ? 256 - exitCode : 0;
}
