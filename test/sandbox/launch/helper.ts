/** A folder with what programs may and may not do there, and cages to run them in: as this user, and as an ordinary one. */
import { setDefaultTimeout } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LaunchRequest, launchSteps } from "../../../src/sandbox/launch/compile.ts";
import { buildImage } from "../../../src/sandbox/launch/image.ts";
import { Images } from "../../../src/sandbox/launch/images.ts";
import { type Probed, probe } from "../../../src/sandbox/launch/probe.ts";
import { must, type Step } from "../../../src/sandbox/launch/step.ts";
import { thisMachine } from "../../../src/sandbox/launch/syscalls.ts";
import type { Policy } from "../../../src/sandbox/policy.ts";

export { until } from "../../until.ts";

setDefaultTimeout(60_000);

export const machine = thisMachine();
export const isRoot = process.geteuid!() === 0;
/** `nobody` and `nogroup`. */
const ordinary = 65534;

export type Who = "root" | "ordinary user";
/** Root can be both. */
export const users: Who[] = isRoot ? ["root", "ordinary user"] : ["ordinary user"];

/** Does it as that user, who cannot see everything that root can. */
export function as<T>(who: Who, what: () => T): T {
  if (!isRoot || who === "root") return what();
  process.setegid!(ordinary);
  process.seteuid!(ordinary);
  try {
    return what();
  } finally {
    process.seteuid!(0);
    process.setegid!(0);
  }
}

/** A process outside of any cage, which ends with the test's. */
export function bystander(who: Who): Bun.Subprocess & Disposable {
  const child = Bun.spawn(argvAs(who, ["sleep", "1000"]));
  return Object.assign(child, { [Symbol.dispose]: () => child.kill("SIGKILL") });
}

function argvAs(who: Who, argv: string[]): string[] {
  if (!isRoot || who === "root") return argv;
  return ["setpriv", `--reuid=${ordinary}`, `--regid=${ordinary}`, "--clear-groups", ...argv];
}

let folders: string[] = [];

export function removeFolders(): void {
  for (const path of folders) rmSync(path, { recursive: true, force: true });
  folders = [];
}

/** A new folder that everybody may enter, its links resolved. One that is not in this run's own has to be removed. */
export function folder(parent = tmpdir()): string {
  const path = realpathSync(mkdtempSync(join(parent, "ollie-launch-")));
  chmodSync(path, 0o755);
  if (parent !== tmpdir()) folders.push(path);
  return path;
}

let images: Images | undefined;
/** What a program needs to run at all. */
export const system = ["/usr", "/bin", "/lib", "/lib64"].filter(existsSync);

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export type Abilities = Partial<Omit<Probed, "reasons" | "machine">>;

let probed: Probed | undefined;
/** What this host can do, for root. An ordinary user's namespaces are asked for where they are tested. */
export function host(): Probed {
  probed ??= probe(new Images(join(folder(), "images"), machine), join(folder(), "scratch"));
  return probed;
}

/** Rights in a world of its own; everything outside of `place` is what a program must leave alone. */
export class World {
  /** `list`, `ro`, `rox`, `rw`, `rwx` and `none`, each with a file `file`, and what is made during a test. */
  readonly place: string;
  readonly cwd: string;

  constructor(
    readonly who: Who,
    parent?: string,
  ) {
    this.place = folder(parent);
    for (const name of ["list", "ro", "rox", "rw", "rwx", "none", "tmp"]) {
      mkdirSync(this.at(name));
      this.write(`${name}/file`, name);
    }
    this.cwd = this.at("rwx");
    this.own();
  }

  at(...names: string[]): string {
    return join(this.place, ...names);
  }

  write(name: string, content: string | Uint8Array, mode = 0o644): string {
    const path = this.at(name);
    writeFileSync(path, content, { mode });
    chmodSync(path, mode);
    this.own();
    return path;
  }

  /** An image that does these steps, where it may be executed. */
  program(name: string, steps: readonly Step[]): string {
    return this.write(`rox/${name}`, buildImage(steps, machine), 0o755);
  }

  /** Everything in it belongs to the user. */
  own(): void {
    if (!isRoot || this.who === "root") return;
    for (const name of [".", ...readdirSync(this.place, { recursive: true, encoding: "utf8" })]) {
      const path = this.at(name);
      if (existsSync(path)) chownSync(path, ordinary, ordinary);
    }
  }

  policy(network: Partial<Policy["network"]> = {}): Policy {
    return {
      filesystem: {
        list: [this.at("list")],
        ro: [this.at("ro"), "/proc", "/etc"],
        rox: [this.at("rox"), ...system],
        rw: [this.at("rw"), "/dev/null"],
        rwx: [this.at("rwx")],
      },
      network: { unrestricted: false, bind: [], connect: [], unix: [], ...network },
      env: [],
      bestEffort: false,
      frozen: [],
      hidden: [],
    };
  }

  request(more: Partial<LaunchRequest> = {}): LaunchRequest {
    return {
      policy: this.policy(),
      cwd: this.cwd,
      privateTmp: this.at("tmp"),
      sockets: [],
      ...more,
    };
  }

  /** Runs a program in a cage, with the abilities of this host unless told otherwise. */
  async run(argv: string[], more: Partial<LaunchRequest> = {}, abilities: Abilities = {}): Promise<Ended> {
    const steps = as(this.who, () => launchSteps(this.request(more), { ...host(), ...abilities }));
    return runSteps(steps, argv, this.who, more.cwd ?? this.cwd);
  }

  sh(script: string, more: Partial<LaunchRequest> = {}, abilities: Abilities = {}): Promise<Ended> {
    return this.run(["/bin/sh", "-c", script], more, abilities);
  }

  /** What came of each command: `yes` or `no`. */
  async may(
    commands: Record<string, string>,
    more: Partial<LaunchRequest> = {},
    abilities: Abilities = {},
  ): Promise<Record<string, "yes" | "no">> {
    const lines = Object.values(commands).map(
      (command) => `if (${command}) >/dev/null 2>&1; then echo yes; else echo no; fi`,
    );
    const { stdout, stderr } = await this.sh(lines.join("\n"), more, abilities);
    const answers = stdout.trim().split("\n");
    if (answers.length !== lines.length) throw new Error(`${stdout}${stderr}`);
    return Object.fromEntries(Object.keys(commands).map((name, i) => [name, answers[i] as "yes" | "no"]));
  }
}

/** Runs a launch image of these steps. */
export async function runSteps(
  steps: readonly Step[],
  argv: string[] = [],
  who: Who = users[0]!,
  cwd = "/",
): Promise<Ended> {
  images ??= new Images(join(folder(), "images"), machine);
  chmodSync(images.folder, 0o755);
  const path = images.pathOf(steps);
  chmodSync(path, 0o755);
  const child = Bun.spawn(argvAs(who, [path, ...argv]), {
    cwd,
    env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Calls that launches do not make, by number. */
const calls = {
  // name: [x64, arm64]
  bind: [49, 200],
  listen: [50, 201],
  shmget: [29, 194],
  ptrace: [101, 117],
  socketpair: [53, 199],
} as const;

export function call(name: keyof typeof calls): number {
  return calls[name][machine === "x64" ? 0 : 1];
}

/** Ends the image well. */
export const end = must("end", "exit_group", 0);

/** `sockaddr_un`; one that begins with `@` is abstract. */
export function unixAddress(path: string): Uint8Array {
  const text = path.startsWith("@") ? `\0${path.slice(1)}` : `${path}\0`;
  return Buffer.concat([Buffer.from([1, 0]), Buffer.from(text)]);
}

/** `sockaddr_in` on the loopback. */
export function inetAddress(port: number): Uint8Array {
  return Uint8Array.of(2, 0, port >> 8, port & 255, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
}

/** What `reveal` made of a number that a call returned, such as a descriptor. */
export function returned(value: number): number {
  return (256 - value) & 255;
}
