/** Sandbox configs on this host: which there are, and what one comes to for a call. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Fault, toFault } from "../fault.ts";
import { asksBeyond } from "./asks.ts";
import { makeCaches } from "./caches.ts";
import type { Layer } from "./config.ts";
import { findRepository, type Repository } from "./git.ts";
import type { SandboxGround } from "./ground.ts";
import { readLayers, sandboxFile, sandboxNames } from "./layers.ts";
import { follow } from "./links.ts";
import { realpathOfPart } from "./paths.ts";
import { cachesOf, type Places, placesOf } from "./places.ts";
import type { Policy } from "./policy.ts";
import {
  approveCommand,
  type ProjectFile,
  projectFileName,
  readProjectFile,
  unapprovedRemark,
} from "./project.ts";
import { ProjectApprovals } from "./project-approvals.ts";
import { checkCwd, resolvePolicy, type Surroundings } from "./resolve.ts";

/** Whose policy. */
export interface PolicyRequest {
  /** Of a config: the session's key `sandbox`, else the agent config's; empty = `default`. */
  name?: string;
  cwd: string;
  /**
   * The folder that the policy is made around, in which `cwd` lies: links resolved when it was chosen. Whoever can write where it lies could
   * have put one in its place since.
   */
  bound?: string;
  /** The session's private folder, `STATE/tmp/ID`, which exists. */
  tmp: string;
  /** Who is told remarks, each once: `SESSION/AGENT`. */
  listener: string;
}

/** The policy that holds for a call, and what is to be said of it. */
export interface CallPolicy {
  policy: Policy;
  /** Sentences for the result of this call, such as of a project file that nobody has approved. */
  remarks: string[];
  /** The file of the user's own config in which a missing right would be granted, whether it exists or not. */
  rulesFile: string;
  /** The repository that `cwd` lies in, for the git guard. */
  repository?: Repository;
  /** What no rule opens, for explanations. */
  places: Places;
}

/** Everything that is to be said of the sandbox of a folder. */
export interface Survey extends CallPolicy {
  /** What the user's own configs say in vain. */
  warnings: string[];
  /** Whether the shipped default counts. */
  shipped: boolean;
  /** Files that count, from the weakest to the strongest. */
  files: string[];
  project?: { file: string; text: string; asks: string[]; approved: boolean };
}

/** Milliseconds for which a policy counts as unchanged, where none of the files that say what holds has changed. */
const fresh = 1000;
/** Policies that are remembered at once. */
const remembered = 256;

export class SandboxConfigs {
  readonly approvals: ProjectApprovals;
  readonly #told = new Set<string>();
  readonly #known = new Map<string, { survey: Survey; made: number; stamp: string }>();
  #prepared = false;

  /** @param onWarning gets each warning once, for a log */
  constructor(
    readonly ground: SandboxGround,
    readonly onWarning: (warning: string) => void = () => {},
  ) {
    this.approvals = new ProjectApprovals(ground.paths.state);
  }

  /** Names of all configs, sorted; `default` is always among them. */
  names(): string[] {
    return sandboxNames(this.ground.paths.config);
  }

  /** @throws Fault "missing" that lists the configs there are, "invalid" that names file and key */
  check(name: string): void {
    readLayers(this.ground.paths.config, name || "default");
  }

  /**
   * What confines a call. Configs, the project's file and approvals that change are noticed at once, what their paths lead to within 2 s.
   * @throws Fault as `check` does, and "denied" or "invalid" where no sandbox can be made around `cwd`: it lies in a place that is
   *   protected, or holds everything; the sentence says what to choose instead
   */
  policyFor({ name, cwd: folder, bound, tmp, listener }: PolicyRequest): CallPolicy {
    const cwd = bound ?? folder;
    this.#prepare();
    const key = [name, cwd, tmp].join("\0");
    let known = this.#known.get(key);
    if (!known || Date.now() - known.made > fresh || known.stamp !== this.#stamp(cwd, name, known.survey)) {
      const survey = this.survey(cwd, name, tmp, bound !== undefined);
      known = { survey, made: Date.now(), stamp: this.#stamp(cwd, name, survey) };
      for (const oldest of this.#known.keys()) {
        if (this.#known.size < remembered) break;
        this.#known.delete(oldest);
      }
      this.#known.set(key, known);
    }
    const { remarks, warnings, ...rest } = known.survey;
    for (const warning of warnings) if (this.#first("", warning)) this.onWarning(warning);
    return { ...rest, remarks: remarks.filter((remark) => this.#first(listener, remark)) };
  }

  protected howToApprove(file: ProjectFile): string {
    return approveCommand(file);
  }

  /** Of every file that says something, whether it exists or not. */
  #stamp(cwd: string, name: string | undefined, { repository }: Survey): string {
    const { config } = this.ground.paths;
    const configs = ["default", name || "default"].map((one) => sandboxFile(config, one));
    const projects = [cwd, repository?.top ?? cwd].map((folder) => join(folder, projectFileName));
    return [...configs, ...projects, this.approvals.file].map(stampOf).join(" ");
  }

  #first(listener: string, text: string): boolean {
    const key = `${listener}\0${text}`;
    if (this.#told.has(key)) return false;
    this.#told.add(key);
    return true;
  }

  /**
   * @param tmp undefined where there is no session
   * @param pinned whether `cwd` has no links, and must not have got any
   * @throws Fault as `policyFor`
   */
  survey(cwd: string, name = "", tmp?: string, pinned = false): Survey {
    const { ground } = this;
    const real = follow(cwd)?.real;
    if (real === undefined) throw new Fault("missing", `the working folder ${cwd} does not exist`);
    if (pinned && real !== cwd)
      throw new Fault(
        "denied",
        `the working folder ${cwd} leads to ${real} by now; if that is meant, set cwd again`,
      );
    const layers: Layer[] = readLayers(ground.paths.config, name || "default");
    const { repository, doubt } = findRepository(real, realpathOfPart(ground.paths.home));
    const places = placesOf(ground);
    const around: Surroundings = { ground, places, cwd: real, tmp, repository };
    checkCwd(around);
    const remarks = doubt ? [`${doubt}: tools cannot write there, so git may fail`] : [];
    let resolved = resolvePolicy(layers, around);
    let project: Survey["project"];
    const found = projectFile(real, repository, remarks);
    if (found) {
      const asks = asksBeyond(found.config, resolved, around);
      const approved = this.approvals.holds(found.file, found.text);
      project = { file: found.file, text: found.text, asks, approved };
      if (approved || asks.length === 0) {
        layers.push(approved ? found : narrowing(found));
        resolved = resolvePolicy(layers, around);
      } else remarks.push(unapprovedRemark(found, asks, this.howToApprove(found)));
    }
    return {
      policy: resolved.policy,
      remarks,
      warnings: resolved.warnings,
      shipped: layers.some(({ file }) => file === undefined),
      files: layers.flatMap(({ file }) => file ?? []),
      rulesFile: sandboxFile(ground.paths.config, name || "default"),
      repository,
      places,
      project,
    };
  }

  /** Folders that tools need and could not make. */
  #prepare(): void {
    if (this.#prepared) return;
    this.#prepared = true;
    const { paths, environment, covers } = this.ground;
    makeCaches(paths.home, environment.PATH ?? "");
    // What is not there cannot be covered, and the folder around it not be given as a whole.
    for (const folder of [paths.memory, ...(covers && existsSync(paths.home) ? cachesOf(this.ground) : [])]) {
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
      } catch {} // a folder that cannot be written: tools then do without
    }
  }
}

function stampOf(file: string): string {
  try {
    const { ino, size, ctimeMs } = statSync(file);
    return `${ino}:${size}:${ctimeMs}`;
  } catch {
    return "none";
  }
}

/** A mistake in it is no reason to run nothing: it is told. */
function projectFile(cwd: string, repository: Repository | undefined, remarks: string[]) {
  try {
    return readProjectFile(cwd, repository);
  } catch (error) {
    remarks.push(`${toFault(error).message}; the file does not count`);
    return undefined;
  }
}

/** Of a file that asks for nothing more: what it says of the network, where less is allowed by it. Paths are left out, since they could lead elsewhere by now. */
function narrowing({ file, config }: ProjectFile): Layer {
  const none = { ro: [], rox: [], rw: [], rwx: [] };
  return {
    file,
    config: { filesystem: none, env: [], network: { ...config.network, unix: [] }, general: {} },
  };
}
