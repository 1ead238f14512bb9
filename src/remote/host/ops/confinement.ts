/** The sandbox of a session on its host: the client's configs, which lie in the session's folder, on what the kernel here can enforce. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Paths } from "../../../config/paths.ts";
import type { Cage } from "../../../sandbox/cage.ts";
import { type CallPolicy, type PolicyRequest, SandboxConfigs } from "../../../sandbox/configs.ts";
import type { SandboxGround } from "../../../sandbox/ground.ts";
import { Launcher } from "../../../sandbox/launch/launcher.ts";
import type { ProjectFile } from "../../../sandbox/project.ts";
import { digest, ProjectApprovals } from "../../../sandbox/project-approvals.ts";
import { Sandbox } from "../../../sandbox/sandbox.ts";
import { coded } from "../../protocol/errors.ts";
import type { HostHello } from "../../protocol/hello.ts";
import type { Attached, SessionSettings } from "../../protocol/session.ts";
import type { OperationsGround } from "./engine.ts";

export class Confinement {
  readonly #launcher: Launcher;
  readonly #sandbox: Sandbox;
  #made?: { settings: SessionSettings; tools: string; configs: SandboxConfigs };

  constructor(
    private readonly ground: OperationsGround,
    private readonly toolFolders: () => string[],
  ) {
    const { folder, base, sessionId } = ground;
    this.#launcher = new Launcher([join(folder, "launch"), join(base, `launch-${sessionId}`)]);
    const { HOME, XDG_RUNTIME_DIR } = process.env;
    this.#sandbox = new Sandbox(this.#launcher, { runtime: XDG_RUNTIME_DIR, home: HOME });
    mkdirSync(this.tmp, { recursive: true, mode: 0o700 });
  }

  /** The session's private folder. */
  get tmp(): string {
    return join(this.ground.folder, "tmp");
  }

  /** For a hello. */
  get report(): HostHello["sandbox"] {
    const { state, landlock, sockets, missing } = this.#launcher.confinement;
    const enforced = [...(state === "off" ? [] : ["files"]), ...(sockets === "none" ? [] : ["sockets"])];
    return { state, abi: landlock, enforced, missing: [...missing] };
  }

  /**
   * @param listener who is told remarks, each once
   * @throws Fault as `Sandbox.cageFor`; CodedFault `sandbox.abi`
   */
  cage(request: { name: string; cwd: string; listener: string; service?: boolean }): Cage | undefined {
    const wanted = this.ground.policy.policy.require_landlock_abi;
    const { landlock } = this.#launcher.confinement;
    if (landlock < wanted)
      throw coded(
        "sandbox.abi",
        `the policy wants Landlock ${wanted}, and this kernel has ${landlock || "none"}`,
      );
    return this.#sandbox.cageFor({ ...request, tmp: this.tmp }, this.#configs());
  }

  /** What the project's file would open, if the user approved it. A file that makes no sense is told of by the results of calls. */
  get asks(): Attached["asks"] {
    try {
      const { project } = this.#configs().survey(this.ground.cwd, "", this.tmp);
      if (!project || project.approved || project.asks.length === 0) return undefined;
      const { file, text, asks } = project;
      return { file, sha256: digest(text), text, asks };
    } catch {
      return undefined;
    }
  }

  acceptChanges(): void {
    this.#sandbox.acceptChanges();
  }

  close(): void {
    this.#launcher.close();
  }

  #configs(): SandboxConfigs {
    const settings = this.ground.settings();
    const tools = this.toolFolders();
    const key = tools.join(":");
    if (this.#made?.settings !== settings || this.#made.tools !== key) {
      const config = join(this.ground.folder, "config");
      writeConfigs(join(config, "sandbox"), settings.sandboxes);
      const configs = new HostConfigs(this.#sandboxGround(config, tools), settings.approved, this.ground);
      this.#made = { settings, tools: key, configs };
    }
    return this.#made.configs;
  }

  #sandboxGround(config: string, tools: string[]): SandboxGround {
    const { folder, root, base, cwd, sockets } = this.ground;
    const paths: Paths = {
      home: process.env.HOME || "/",
      config,
      envFile: join(config, "env"),
      // All of the session's folder but `tmp` is closed to programs; a working folder that lies below the root is not.
      state: folder,
      agents: [],
      prompts: [],
      tools,
      skills: [],
      memory: cwd.startsWith(`${root}/`) ? cwd : join(folder, "memory"),
    };
    // Other sessions and the keys of their grants; programs that the next connection trusts.
    return { paths, environment: process.env, sockets: [...sockets, root, base], covers: false };
  }
}

/** What the user has approved is known by its hash alone: where the file lies is the host's business. */
class HashApprovals extends ProjectApprovals {
  constructor(
    state: string,
    private readonly approved: readonly string[],
  ) {
    super(state);
  }

  override holds(_path: string, text: string): boolean {
    return this.approved.includes(digest(text));
  }
}

class HostConfigs extends SandboxConfigs {
  override readonly approvals: ProjectApprovals;

  constructor(
    ground: SandboxGround,
    approved: readonly string[],
    private readonly session: OperationsGround,
  ) {
    super(ground, (warning) => session.log(warning));
    this.approvals = new HashApprovals(ground.paths.state, approved);
  }

  /** The file is approved where the user is, by what it holds. */
  protected override howToApprove({ file, text }: ProjectFile): string {
    return `on the user's own machine: olliesrv sandbox approve --remote TARGET --sha256 ${digest(text)} ${file}`;
  }

  /** With the folders that the host's policy gives the session: a CARGO_HOME of its own, databases. */
  override policyFor(request: PolicyRequest): CallPolicy {
    const found = super.policyFor(request);
    const { filesystem } = found.policy;
    const rwx = [...filesystem.rwx, ...this.session.policy.folders];
    // The files here are copies that the next attachment writes anew: the user changes his own.
    const rulesFile = `sandbox/${basename(found.rulesFile)} of ollie's config folder on the user's own machine`;
    return { ...found, rulesFile, policy: { ...found.policy, filesystem: { ...filesystem, rwx } } };
  }
}

/** Exactly these: one that the client has no more must not count. */
function writeConfigs(folder: string, sandboxes: Record<string, string>): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const wanted = Object.entries(sandboxes).filter(([name]) => /^[\w][\w.-]*$/.test(name));
  const names = new Set(wanted.map(([name]) => `${name}.yaml`));
  for (const name of existsSync(folder) ? readdirSync(folder) : [])
    if (!names.has(name)) rmSync(join(folder, name), { recursive: true, force: true });
  for (const [name, text] of wanted) writeFileSync(join(folder, `${name}.yaml`), text, { mode: 0o600 });
}
