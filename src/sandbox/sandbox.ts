/** Cages for calls: the policy that holds for one, on what this host can enforce. */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { compiled, ownFiles, ownProgram } from "../exec/own.ts";
import { Fault } from "../fault.ts";
import { attend } from "./aftermath.ts";
import type { Cage } from "./cage.ts";
import type { CallPolicy, PolicyRequest, SandboxConfigs } from "./configs.ts";
import { GitGuard } from "./git-guard.ts";
import type { LaunchRequest } from "./launch/compile.ts";
import type { HostConfinement, Launcher } from "./launch/launcher.ts";
import { replacedFolders } from "./launch/view.ts";
import { realpathOfPart } from "./paths.ts";
import { letsThrough, type Policy } from "./policy.ts";
import { withoutProject } from "./unattended.ts";

export interface CageRequest extends PolicyRequest {
  /** Where its programs find the tree as it is for them: a dial string. Absent where there is no tree. */
  address?(over: "unix" | "tcp"): { addr: string };
  /** For what runs between the calls: it writes nothing of the project and does not find the tree. */
  service?: boolean;
}

export interface SandboxOptions {
  /** Confine nothing: the user has said so at the server's start. */
  yolo?: boolean;
  /** The user's runtime folder, `$XDG_RUNTIME_DIR`. */
  runtime?: string;
  /** The user's home folder. */
  home?: string;
}

export class Sandbox {
  readonly #guard = new GitGuard();

  constructor(
    private readonly launcher: Launcher,
    private readonly options: SandboxOptions = {},
  ) {}

  /** What holds for calls, as `version` tells it. */
  get confinement(): HostConfinement {
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
  cageFor(request: CageRequest, configs: SandboxConfigs): Cage | undefined {
    if (this.options.yolo) return undefined;
    const { confinement } = this.launcher;
    const found = configs.policyFor(request);
    if (confinement.state === "off") {
      if (found.policy.bestEffort) return undefined;
      throw new Fault(
        "unavailable",
        `tools cannot be confined on this host (${confinement.reasons.join("; ")}); to run them without a sandbox, set general.best_effort: true in ${found.rulesFile}, or start the server with --yolo`,
      );
    }
    if (request.service) return this.#serviceCage(request, found);
    const noUnixSockets = confinement.sockets === "seccomp" && found.policy.network.unix.length === 0;
    const address = request.address?.(noUnixSockets ? "tcp" : "unix");
    const way: ReturnType<typeof wayTo> = address ? wayTo(address.addr) : {};
    const policy = withOwnPrograms(way.port === undefined ? found.policy : withPort(found.policy, way.port));
    const view = this.#view(policy, request, way.path === undefined ? [] : [way.path]);
    const mounted = confinement.sockets === "namespace";
    const settle = attend(this.#guard, configs.ground, request, found, {
      frozen: mounted,
      replaced: () => (mounted ? replacedFolders(view) : []),
    });
    let settled = false;
    return {
      noUnixSockets,
      ...this.#launching(view),
      after: async (output) => {
        if (settled) return [];
        settled = true;
        return settle(output);
      },
    };
  }

  /** After a call that was let out: what it changed in protected places is not taken for a change by the others that still run. */
  acceptChanges(): void {
    this.#guard.accept();
  }

  #serviceCage(request: CageRequest, { policy, repository }: CallPolicy): Cage {
    const kept = withoutProject(policy, realpathSync(request.cwd), repository);
    return {
      ...this.#launching(this.#view(withOwnPrograms(kept), request, [])),
      after: async () => [],
    };
  }

  #view(policy: Policy, { cwd, tmp }: CageRequest, sockets: string[]) {
    const { runtime, home } = this.options;
    return {
      policy,
      cwd: realpathSync(cwd),
      privateTmp: join(realpathSync(tmp), "slash-tmp"),
      runtime,
      home: home && realpathOfPart(home),
      sockets,
    };
  }

  #launching(
    view: Omit<LaunchRequest, "memory" | "parent">,
  ): Pick<Cage, "notice" | "terms" | "allows" | "launch"> {
    return {
      terms: JSON.stringify(view),
      notice: this.launcher.confinement.state === "partial" ? "sandbox: partial" : undefined,
      allows: (variable) => view.policy.env.some((entry) => letsThrough(entry, variable)),
      launch: ({ memory, outlives } = {}) =>
        this.launcher.launch({ ...view, memory, parent: outlives ? undefined : process.pid }),
    };
  }
}

function wayTo(address: string): { path?: string; port?: number } {
  const [net, place, port] = address.split("!");
  return net === "unix" ? { path: place } : { port: Number(port) };
}

function withPort(policy: Policy, port: number): Policy {
  const { network } = policy;
  if (network.unrestricted) return policy;
  return { ...policy, network: { ...network, connect: [...network.connect, port] } };
}

/** Tools in TypeScript are run by this program, from a checkout by its sources; and tools may be clients of the server. */
function withOwnPrograms(policy: Policy): Policy {
  const folder = dirname(ownProgram());
  const own = compiled
    ? [...ownFiles(), ...["ollie-9p", "o"].map((name) => join(folder, name)).filter(existsSync)]
    : [ownProgram(), resolve(import.meta.dir, "../..")];
  return {
    ...policy,
    filesystem: {
      ...policy.filesystem,
      rox: [...policy.filesystem.rox, ...own.map((path) => realpathOfPart(path))],
    },
  };
}
