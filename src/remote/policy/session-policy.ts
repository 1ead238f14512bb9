/** The policy of one session, as the host's end asks it. */
import { mkdirSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { isOwnKey } from "../../config/secrets.ts";
import { coded } from "../protocol/errors.ts";
import { hashOf } from "../protocol/hash.ts";
import type { Step } from "../protocol/operation.ts";
import { type EffectivePolicy, policyHash } from "./effective.ts";
import { databases, resolveRefs, runnerOwned } from "./env-refs.ts";
import { DeniedGlobs, Globs } from "./globs.ts";
import type { EnvRefs, HostPolicy, PolicyGround, ResolvedProgram } from "./host-policy.ts";
import { findProgram, isProgram, noProgram, rustToolchain, systemFolders } from "./programs.ts";

/**
 * Makes the session's private folders, and finds the values of its references.
 * @throws CodedFault `policy.env_ref`
 */
export function openPolicy(policy: EffectivePolicy, envRefs: EnvRefs, ground: PolicyGround): HostPolicy {
  return new SessionPolicy(policy, envRefs, ground);
}

export function envRefHash(envRefs: EnvRefs): string {
  return hashOf(envRefs);
}

class SessionPolicy implements HostPolicy {
  readonly hash: string;
  readonly envRefHash: string;
  readonly folders: readonly string[];
  readonly #refs: Record<string, string>;
  readonly #denied: DeniedGlobs;
  readonly #layers: Record<"read" | "write", Globs[]>;
  readonly #cargo: string;

  constructor(
    readonly policy: EffectivePolicy,
    envRefs: EnvRefs,
    private readonly ground: PolicyGround,
  ) {
    this.hash = policyHash(policy);
    this.envRefHash = envRefHash(envRefs);
    this.#refs = resolveRefs(envRefs, policy, ground);
    this.#denied = new DeniedGlobs([...policy.denied, ...(ground.own ?? [])]);
    this.#layers = { read: policy.readable.map(withFolders), write: policy.writable.map(withFolders) };
    this.#cargo = join(ground.folder, "cargo");
    const sqlite = Object.values(envRefs).some(({ kind }) => kind === "session_sqlite");
    this.folders = [this.#cargo, ...(sqlite ? [databases(ground.folder)] : [])];
    for (const folder of this.folders) mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  checkProgram(program: string, cwd: string): ResolvedProgram {
    const { allowed_programs: allowed, program_paths: paths } = this.policy;
    const any = allowed.includes("*");
    if (!any && !allowed.includes(program) && !this.#isPathOfAllowed(program))
      throw coded(
        "policy.program",
        `${program} is no program that the policy of this host allows: allowed are ${allowed.join(", ") || "none"}`,
      );
    const mapped = Object.hasOwn(paths, program) ? paths[program] : undefined;
    const path = mapped ?? (program.includes("/") ? resolve(cwd, program) : undefined);
    if (path === undefined) {
      const found = findProgram(program, this.ground.home, this.#searched());
      if (!found) throw noProgram(program, `in ${this.#searched().join(", ")}`);
      return found;
    }
    if (!isProgram(path)) throw noProgram(program, `at ${path} that can be run`);
    return { path, argv0: program };
  }

  /** Allowed programs may be asked for by the path that their names would lead to as well. */
  #isPathOfAllowed(program: string): boolean {
    if (!isAbsolute(program)) return false;
    const { allowed_programs: allowed, program_paths: paths } = this.policy;
    return allowed.some(
      (name) =>
        (Object.hasOwn(paths, name)
          ? paths[name]
          : findProgram(name, this.ground.home, this.#searched())?.path) === program,
    );
  }

  checkStep(step: Step): void {
    const { allow_code_steps, allowed_programs, max_args, max_arg_bytes } = this.policy;
    if ("code" in step && !allow_code_steps)
      throw coded("policy.code", "the policy of this host allows no code steps: send {program, args}");
    if ("tool" in step && !(allow_code_steps && allowed_programs.includes("*")))
      throw coded(
        "policy.tool",
        "the policy of this host runs no tools of clients: they are programs of which it cannot know what they run; it would have to allow code steps and any program",
      );
    if (!("program" in step)) return;
    if (step.args.length > max_args)
      throw coded(
        "policy.limit",
        `${step.args.length} arguments are more than the ${max_args} allowed (max_args)`,
      );
    const long = step.args.find((arg) => Buffer.byteLength(arg) > max_arg_bytes);
    if (long !== undefined)
      throw coded(
        "policy.limit",
        `an argument of ${Buffer.byteLength(long)} bytes is longer than the ${max_arg_bytes} allowed (max_arg_bytes)`,
      );
    if ([step.program, ...step.args].some((word) => word.includes("\0")))
      throw coded("op.invalid", "a program and its arguments cannot hold a NUL");
  }

  environmentFor(own: Readonly<Record<string, string>>): Record<string, string> {
    const { inherited_env, allowed_env } = this.policy;
    for (const [name, value] of Object.entries(own)) {
      const why = runnerOwned.has(name)
        ? "is set by the runner"
        : Object.hasOwn(this.#refs, name)
          ? "is a reference, whose value the host knows"
          : !allowed_env.includes("*") && !allowed_env.includes(name)
            ? `is none that a request may set: allowed are ${allowed_env.join(", ") || "none"} (allowed_env)`
            : /[=\0]/.test(name) || name === "" || value.includes("\0")
              ? "cannot be in an environment"
              : undefined;
      if (why) throw coded("policy.env", `the variable ${name} ${why}`);
    }
    const { environment } = this.ground;
    const inherited = inherited_env
      .filter((name) => !isOwnKey(name) && environment[name] !== undefined)
      .map((name) => [name, environment[name]!]);
    return {
      ...Object.fromEntries(inherited),
      ...own,
      ...this.#refs,
      PATH: this.#path(),
      HOME: this.ground.home,
      CARGO_HOME: this.#cargo,
    };
  }

  checkPath(rel: string, access: "read" | "write"): void {
    if (this.allowsPath(rel, access)) return;
    const rule = this.#denied.matches(rel) ? "denied" : access === "read" ? "readable" : "writable";
    throw coded(
      "file.denied",
      `the policy does not let ${rel} be ${access === "read" ? "read" : "written"} (${rule})`,
    );
  }

  allowsPath(rel: string, access: "read" | "write"): boolean {
    if (rel === "") return true;
    return !this.#denied.matches(rel) && this.#layers[access].every((globs) => globs.matches(rel));
  }

  mayHold(rel: string): boolean {
    return !this.#denied.matches(rel);
  }

  checkElevated(): void {
    if (!this.policy.allow_elevated)
      throw coded(
        "policy.elevated",
        "the policy of this host allows nothing outside the sandbox (allow_elevated)",
      );
  }

  #searched(): string[] {
    const { loginPath } = this.ground;
    // With a list of programs, a folder that others can write to must not decide what their names mean.
    const login = this.policy.allowed_programs.includes("*") ? (loginPath?.split(":") ?? []) : [];
    return [...new Set([...login.filter(isAbsolute), ...systemFolders])];
  }

  /** Programs that are started by an allowed one have to find each other, rustc by cargo first of all. */
  #path(): string {
    const toolchain = rustToolchain(this.ground.home);
    return [...(toolchain ? [toolchain] : []), ...this.#searched()].join(":");
  }
}

/** `src/**` lets `src` itself be seen and made. */
function withFolders(patterns: readonly string[]): Globs {
  const folders = patterns
    .filter((pattern) => pattern.endsWith("/**"))
    .map((pattern) => pattern.slice(0, -3));
  return new Globs([...patterns, ...folders]);
}
