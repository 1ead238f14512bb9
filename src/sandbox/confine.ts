/** Cages for calls: the policy that holds for one, on what this host can enforce. */
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { Fault } from "../fault.ts";
import type { Cage } from "./cage.ts";
import type { Confinement, Launcher } from "./launch/launcher.ts";
import type { Policy } from "./policy.ts";
import type { PolicyRequest, SandboxConfigs } from "./sandbox.ts";

export interface CageRequest extends PolicyRequest {
  /** Sockets that its programs may reach wherever they lie: their own address. */
  sockets: readonly string[];
}

export interface SandboxOptions {
  /** Confine nothing: the user has said so at the server's start. */
  yolo?: boolean;
  /** The user's runtime folder, `$XDG_RUNTIME_DIR`. */
  runtime?: string;
}

export class Sandbox {
  constructor(
    private readonly launcher: Launcher,
    public configs: SandboxConfigs,
    private readonly options: SandboxOptions = {},
  ) {}

  /** What holds for calls, as `version` tells it. */
  get confinement(): Confinement {
    const { confinement } = this.launcher;
    if (!this.options.yolo) return confinement;
    const reasons = ["the server was started with --yolo"];
    return { ...confinement, state: "off", sockets: "none", missing: ["everything"], reasons };
  }

  /**
   * Undefined = without a sandbox, since the user wants that (`--yolo`), or has said that it may be so where there can be none
   * (`general.best_effort`).
   * @throws Fault as `policyFor` does; "unavailable" where there can be no sandbox and nobody has said to do without
   */
  cageFor(request: CageRequest): Cage | undefined {
    if (this.options.yolo) return undefined;
    const { confinement } = this.launcher;
    const { policy, remarks, rulesFile } = this.configs.policyFor(request);
    if (confinement.state === "off") {
      if (policy.bestEffort) return undefined;
      throw new Fault(
        "unavailable",
        `tools cannot be confined on this host (${confinement.reasons.join("; ")}); to run them without a sandbox, set general.best_effort: true in ${rulesFile}, or start the server with --yolo`,
      );
    }
    return this.#cage(request, withOwnProgram(policy), remarks);
  }

  #cage(request: CageRequest, policy: Policy, remarks: string[]): Cage {
    const { launcher, options } = this;
    const { cwd, tmp, sockets } = request;
    return {
      notice: launcher.confinement.state === "partial" ? "sandbox: partial" : undefined,
      allows: (variable) => policy.env.some((name) => matches(name, variable)),
      launch: ({ memory, outlives } = {}) =>
        launcher.launch({
          policy,
          cwd: realpathSync(cwd),
          privateTmp: join(tmp, "slash-tmp"),
          runtime: options.runtime,
          sockets,
          memory,
          parent: outlives ? undefined : process.pid,
        }),
      after: async () => remarks,
    };
  }
}

function matches(name: string, variable: string): boolean {
  return name.endsWith("*") ? variable.startsWith(name.slice(0, -1)) : variable === name;
}

/** Tools in TypeScript are run by this program; from a checkout it reads its sources. */
function withOwnProgram(policy: Policy): Policy {
  const compiled = import.meta.path.startsWith("/$bunfs/");
  const own = compiled ? [process.execPath] : [process.execPath, resolve(import.meta.dir, "../..")];
  return { ...policy, filesystem: { ...policy.filesystem, rox: [...policy.filesystem.rox, ...own] } };
}
