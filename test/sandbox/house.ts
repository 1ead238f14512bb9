/** A home folder of its own, and sandboxes in it. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { resolvePaths } from "../../src/config/paths.ts";
import { type CallPolicy, SandboxConfigs, type Survey } from "../../src/sandbox/configs.ts";
import type { SandboxGround } from "../../src/sandbox/ground.ts";
import { within } from "../../src/sandbox/paths.ts";
import type { Policy } from "../../src/sandbox/policy.ts";

export class House {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), "ollie-sandbox-")));
  readonly home = join(this.folder, "home");
  readonly state = join(this.home, ".local/state/ollie");
  /** The private folder of a session. */
  readonly tmp = join(this.state, "tmp/one");
  readonly cwd = join(this.home, "project");
  readonly environment: Record<string, string> = { HOME: this.home, PATH: "" };
  readonly warnings: string[] = [];

  constructor() {
    for (const path of [this.tmp, this.cwd]) mkdirSync(path, { recursive: true });
  }

  get ground(): SandboxGround {
    const sockets = [join(this.folder, "run/ollie/9p"), join(this.folder, "run/broker.sock")];
    return { paths: resolvePaths(this.environment), environment: this.environment, sockets };
  }

  configs(): SandboxConfigs {
    return new SandboxConfigs(this.ground, (warning) => this.warnings.push(warning));
  }

  /** What holds in `cwd` by a fresh look. */
  confine(cwd = this.cwd, name?: string): CallPolicy {
    return this.configs().policyFor({ cwd, name, tmp: this.tmp, listener: "s/a" });
  }

  survey(cwd = this.cwd, name?: string): Survey {
    return this.configs().survey(cwd, name);
  }

  /** Writes a file below the home folder, and the folders to it. */
  file(path: string, content = ""): string {
    const full = join(this.home, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    return full;
  }

  dir(path: string): string {
    const full = join(this.home, path);
    mkdirSync(full, { recursive: true });
    return full;
  }

  link(path: string, target: string): string {
    const full = join(this.home, path);
    mkdirSync(dirname(full), { recursive: true });
    symlinkSync(target, full);
    return full;
  }

  /** A sandbox config of the user. */
  config(name: string, yaml: string): string {
    return this.file(`.config/ollie/sandbox/${name}.yaml`, yaml);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const letters = { ro: "r", rox: "rx", rw: "rw", rwx: "rwx" } as const;

/** What a policy lets be done at a path, in the order `rwx`; the way Landlock adds it up. */
export function may({ filesystem }: Policy, path: string): string {
  const given = Object.entries(letters).flatMap(([key, rights]) =>
    filesystem[key as keyof typeof letters].some((folder) => within(path, folder)) ? [...rights] : [],
  );
  return [..."rwx"].filter((letter) => given.includes(letter)).join("");
}
