/** Launching confined programs on this host. */
import { constants } from "node:os";
import { join } from "node:path";
import type { SandboxPart } from "../../config/settings.ts";
import type { Launch } from "../../exec/launch.ts";
import { Fault } from "../../fault.ts";
import { type LaunchRequest, launchSteps, type SocketGuard, socketGuard } from "./compile.ts";
import { failurePrefix } from "./image.ts";
import { Images } from "./images.ts";
import { scopeSince } from "./landlock.ts";
import { attemptImage, type Probed, probe } from "./probe.ts";
import { becomeProgram, must } from "./step.ts";
import { thisMachine } from "./syscalls.ts";

/** What holds on this host. */
export interface HostConfinement {
  state: "enforced" | "partial" | "off";
  /** Landlock's ABI; 0 = none. */
  landlock: number;
  sockets: SocketGuard;
  /** What a confined program can do nevertheless: a phrase each. */
  missing: string[];
  /** Why something is missing: a sentence each. */
  reasons: string[];
}

export class Launcher {
  readonly confinement: HostConfinement;
  readonly #images: Images | undefined;
  readonly #abilities: Probed;

  /**
   * @param folders for images, the first that programs can be executed in is used: no sandbox may write them
   * @param without what is not to be used
   */
  constructor(folders: readonly string[], without: readonly SandboxPart[] = []) {
    const { images, problem } = usable(folders);
    this.#images = images;
    this.#abilities = images
      ? probe(images, join(images.folder, "probe"), without)
      : { machine: "x64", landlock: 0, namespaces: false, seccomp: false, reasons: [problem] };
    this.confinement = confinementOf(this.#abilities);
  }

  /** How sockets are kept from a program decides how its own address must look. */
  get sockets(): SocketGuard {
    return this.confinement.sockets;
  }

  /** @throws Fault "io" if the image cannot be written */
  launch(request: LaunchRequest): Launch {
    if (!this.#images)
      throw new Fault("unavailable", `there is no sandbox here: ${this.confinement.reasons[0]}`);
    return {
      argv: [this.#images.pathOf(launchSteps(request, this.#abilities))],
      failure: launchFailure,
    };
  }

  close(): void {
    this.#images?.remove();
  }
}

/** What a launch prints when it cannot go on is all that was printed. */
export function launchFailure({ code, stderr }: { code?: number; stderr: string }): Fault | undefined {
  if (!stderr.startsWith(failurePrefix) || code === undefined) return undefined;
  const label = stderr.slice(failurePrefix.length).split("\n", 1)[0]!;
  const name = errnoName(code);
  if (label === becomeProgram.label)
    return new Fault("denied", `its program may not be executed in the sandbox (${name})`);
  return new Fault("unavailable", `the sandbox could not be set up: cannot ${label} (${name})`);
}

function errnoName(code: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === code)?.[0] ?? `errno ${code}`;
}

/** A folder may lie on a file system that is mounted noexec. */
function usable(folders: readonly string[]): { images?: Images; problem: string } {
  let problem = "";
  for (const folder of folders) {
    try {
      const images = new Images(folder, thisMachine());
      const trouble = attemptImage(images, [must("end", "exit_group", 0)]);
      if (trouble === undefined) return { images, problem };
      problem = `programs in ${folder} cannot be executed: ${trouble}`;
      images.remove();
    } catch (error) {
      problem = (error as Error).message;
    }
  }
  return { problem };
}

function confinementOf(abilities: Probed): HostConfinement {
  const { landlock, namespaces, seccomp, reasons } = abilities;
  const sockets = socketGuard(abilities);
  if (landlock === 0) return { state: "off", landlock, sockets: "none", missing: ["everything"], reasons };
  const missing: string[] = [];
  if (!namespaces) {
    missing.push("change modes, owners and times of files outside");
    missing.push("reach the shared memory and message queues of the user's other programs");
    if (landlock < 3) missing.push("cut files outside to length 0");
    missing.push("use shared memory of other programs");
  }
  if (landlock < 5) missing.push("send ioctls to devices that it may only read");
  if (landlock < scopeSince)
    missing.push("send signals to the user's other processes", "reach abstract sockets");
  if (sockets === "none") missing.push("reach the sockets of other programs");
  if (!seccomp) missing.push("use networks that are not TCP", "set limits of the user's other processes");
  return { state: missing.length > 0 ? "partial" : "enforced", landlock, sockets, missing, reasons };
}
