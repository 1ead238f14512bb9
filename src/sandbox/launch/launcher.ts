/** Launching confined programs on this host. */
import { constants } from "node:os";
import { join } from "node:path";
import type { SandboxPart } from "../../config/settings.ts";
import { type Launch, LaunchFault } from "../../exec/launch.ts";
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

/** Milliseconds for which what was found of paths and sockets counts as unchanged. */
const recent = 1000;
/** Launches that are remembered at once: fewer than images are kept. */
const remembered = 128;

export class Launcher {
  readonly confinement: HostConfinement;
  readonly #images: Images | undefined;
  readonly #abilities: Probed;
  readonly #recent = new Map<string, { path: string; made: number }>();

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

  /** @throws Fault "io" if the image cannot be written */
  launch(request: LaunchRequest): Launch {
    if (!this.#images)
      throw new Fault("unavailable", `there is no sandbox here: ${this.confinement.reasons[0]}`);
    const images = this.#images;
    const key = JSON.stringify(request);
    const known = this.#recent.get(key);
    const fresh = known && Date.now() - known.made < recent ? known : undefined;
    const path = fresh?.path ?? images.pathOf(launchSteps(request, this.#abilities));
    if (!fresh) this.#remember(key, path);
    return {
      argv: [path],
      failure: (ended) => {
        const fault = launchFailure(ended, images.prefix);
        if (fault) this.#recent.delete(key);
        return fault;
      },
    };
  }

  #remember(key: string, path: string): void {
    if (this.#recent.size > remembered) this.#recent.clear();
    this.#recent.set(key, { path, made: Date.now() });
  }

  close(): void {
    this.#images?.remove();
  }
}

/** What a launch prints when it cannot go on is all that was printed. */
export function launchFailure(
  { code, stderr }: { code?: number; stderr: string },
  prefix = failurePrefix,
): LaunchFault | undefined {
  if (!stderr.startsWith(prefix) || code === undefined) return undefined;
  const label = stderr.slice(prefix.length).split("\n", 1)[0]!;
  const name = errnoName(code);
  if (label === becomeProgram.label)
    return new LaunchFault("denied", `its program may not be executed in the sandbox (${name})`);
  return new LaunchFault("unavailable", `the sandbox could not be set up: cannot ${label} (${name})`);
}

function errnoName(code: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === code)?.[0] ?? `errno ${code}`;
}

/** A folder may lie on a file system that is mounted noexec. */
function usable(folders: readonly string[]): { images?: Images; problem: string } {
  let problem = "";
  for (const folder of folders) {
    try {
      // No program can print what it does not know, and so pretend that it was never started.
      const images = new Images(folder, thisMachine(), `ollie ${crypto.randomUUID()}: cannot `);
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
  }
  if (landlock < 5) missing.push("send ioctls to devices that it may only read");
  if (landlock < scopeSince)
    missing.push("send signals to the user's other processes", "reach abstract sockets");
  if (sockets === "none") missing.push("reach the sockets of other programs");
  if (!seccomp)
    missing.push(
      "use networks that are not TCP",
      "use the user's keyrings",
      "set limits of the user's other processes",
    );
  return { state: missing.length > 0 ? "partial" : "enforced", landlock, sockets, missing, reasons };
}
