/**
 * Who is attacked: an ordinary user with a server, things to steal and to break, and other programs that run. Attempts are made through the
 * tool `shell`, as a model would make them; whether one has worked is looked at from outside.
 */
import { setDefaultTimeout } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../../src/ninep/client.ts";
import { dial } from "../../../src/ninep/dial.ts";
import { until } from "../harness.ts";
import { asOrdinary, OrdinaryServer } from "../ordinary.ts";

setDefaultTimeout(60_000);

/** Where the user's home is. What lies in /tmp is seen by tools in another way than the rest. */
export const places = { tmp: "/tmp", elsewhere: "/var/tmp" } as const;

export interface Host {
  place?: keyof typeof places;
  /** Parts of the sandbox that this kernel is not to have: OLLIE_SANDBOX_WITHOUT. */
  without?: string;
  /** Content of the user's `sandbox/default.yaml`. */
  sandbox?: string;
  env?: Record<string, string>;
  /** Content of the env file. */
  config?: string;
}

/** The hosts that attempts are made on; what cannot be kept from them where the kernel offers less is in SANDBOX.md. */
export const hosts = {
  full: { place: "elsewhere" },
  tmp: { place: "tmp" },
  fallback: { place: "elsewhere", without: "namespaces" },
} as const satisfies Record<string, Host>;

/** Seconds that an attempt may take. */
const limit = 30;

/**
 * `run COMMAND`, `job COMMAND` (in the background), `elevated COMMAND` and `call TOOL JSON` do what they say and answer with the result;
 * a prompt with several lines that begin with `same ` runs all of these in one turn.
 */
const rules = [
  { match: { user: "/^run ([^]*)/" }, do: [shell({ timeout: limit })] },
  { match: { user: "/^job ([^]*)/" }, do: [shell({ detach: true })] },
  { match: { user: "/^elevated ([^]*)/" }, do: [shell({ elevated: true })] },
  { match: { user: "/^call (\\w+) ([^]*)/" }, do: [{ calls: [{ name: "$1", args: "$2" }] }] },
  { match: { result: "/([^]*)/" }, do: [{ text: "$1" }] },
];

function shell(more: object): object {
  return { calls: [{ name: "shell", args: { command: "$1", ...more } }] };
}

export class Victim {
  /** A folder of the user's that no tool has anything to do in: `file`, `program`, and `folder` with `inner`. */
  readonly outside: string;
  client!: Client;
  #sessions = 0;
  #session = "";

  private constructor(readonly server: OrdinaryServer) {
    this.outside = join(server.home.folder, "private");
  }

  static async start({
    place = "elsewhere",
    without,
    sandbox,
    config,
    env = {},
  }: Host = {}): Promise<Victim> {
    const server = new OrdinaryServer(
      without === undefined ? env : { ...env, OLLIE_SANDBOX_WITHOUT: without },
      { rules },
      places[place],
    );
    const victim = new Victim(server);
    victim.#furnish();
    if (config !== undefined) victim.put(join(server.home.config, "env"), config);
    if (sandbox !== undefined) victim.put(join(server.home.config, "sandbox/default.yaml"), sandbox);
    try {
      await server.start();
      victim.client = await asOrdinary(() => dial(server.home.address));
      victim.#session = await victim.session();
      // The first call makes the caches.
      await victim.run("true");
    } catch (error) {
      await victim.stop();
      throw error;
    }
    return victim;
  }

  /** Jobs outlive a server, and so are ended with their sessions first. */
  async stop(): Promise<void> {
    try {
      for (const { name } of (await this.client?.readDir("session")) ?? [])
        if (!["new", "idx"].includes(name)) await this.client.remove(`session/${name}`);
    } catch {
      // the server is gone: an attempt may have meant to do just that, and a test has said so
    }
    this.client?.close();
    await this.server.stop();
  }

  get work(): string {
    return this.server.home.work;
  }

  get home(): string {
    return this.server.home.home;
  }

  /** Path of the owner's socket. */
  get socket(): string {
    return this.server.home.address.slice("unix!".length);
  }

  /** Before the start: a file, with the folders around it. */
  put(path: string, text: string, mode = 0o600): void {
    mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(path, text, { mode });
  }

  #furnish(): void {
    const { outside, home } = this;
    this.put(join(outside, "file"), "untouched\n");
    this.put(join(outside, "program"), "#!/bin/sh\necho RAN\n", 0o700);
    this.put(join(outside, "folder/inner"), "inner\n");
    for (const name of [".bashrc", ".profile", ".ssh/authorized_keys", ".ssh/id_ed25519"])
      this.put(join(home, name), `${name}\n`);
  }

  /** A new session in the work folder; returns its name. */
  async session(keys = ""): Promise<string> {
    const name = `s${++this.#sessions}`;
    await this.write("session/new", `name=${name} cwd="${this.work}" ${keys}\n`);
    return name;
  }

  /** Runs a command in the cage of a session, of the first one if none is named; returns the tool's result. */
  async run(command: string, session = this.#session): Promise<string> {
    return this.ask(`run ${command}`, session);
  }

  /** Runs a script once for each argument, `$1`, all in one call; returns what each has said, by its argument. */
  async each(args: readonly string[], script: string): Promise<Map<string, string>> {
    const steps = args.map((arg, i) => `echo "@@ ${i}"; attempt '${arg}' 2>&1`);
    // Longer than what a model is shown: a file of the work folder has it whole.
    const file = join(this.work, `said-${crypto.randomUUID()}`);
    await this.run(`exec >${file} 2>&1\nattempt() { ${script}\n}\n${steps.join("\n")}`);
    const parts = contentOf(file)
      .split(/^@@ \d+\n/m)
      .slice(1);
    return new Map(args.map((arg, i) => [arg, parts[i] ?? ""]));
  }

  /** Submits a prompt (see `rules`) and returns the reply. */
  async ask(prompt: string, session = this.#session): Promise<string> {
    await this.begin(prompt, session);
    await this.read(`s/${session}/idlewait`);
    return this.read(`s/${session}/reply`);
  }

  /** Submits a prompt and goes on. */
  begin(prompt: string, session = this.#session): Promise<void> {
    return this.write(`s/${session}/prompt`, prompt);
  }

  /** Starts a command in the cage and returns its first line, once that is there, by a file of the folder it may write. */
  async occupy(
    command: string,
    session: string,
    how: "run" | "job" = "run",
    folder = this.work,
  ): Promise<string> {
    const ready = join(folder, `ready-${session}-${crypto.randomUUID()}`);
    await this.begin(`${how} exec >${ready} 2>&1\n${command}`, session);
    const line = await until("it runs", () => /^(.*)\n/.exec(contentOf(ready))?.[1]);
    // A job may run before the server lists it.
    if (how === "job") await this.read(`s/${session}/idlewait`);
    return line;
  }

  /** Waits until no job of a session runs. */
  async ended(session: string): Promise<void> {
    for (const { name } of await this.client.readDir(`session/${session}/job`))
      await until(
        "the end of the job",
        async () => (await this.read(`session/${session}/job/${name}/exit`)) !== "",
      );
  }

  read(path: string): Promise<string> {
    return this.client.readText(path);
  }

  write(path: string, text: string): Promise<void> {
    return this.client.writeFile(path, text);
  }

  /** Everything of the user's that no tool is to change, as it is now: what and when, by path. */
  belongings(): Record<string, string> {
    const found: Record<string, string> = {};
    for (const folder of [this.home, this.outside, this.server.bin]) record(folder, found);
    return found;
  }

  /** Pids of what carries the mark of this server's calls, which the kernel hands on from parent to child: src/exec/tag.ts. */
  ofCalls(): number[] {
    return pids().filter((pid) => {
      const soft = /^Max file locks +(\d+)/m.exec(contentOf(`/proc/${pid}/limits`))?.[1];
      return soft !== undefined && Number(BigInt(soft) >> 32n) === this.server.pid;
    });
  }

  /** Pids of whatever has this word in its command line or environment, wherever it has got to. */
  processes(word: string): number[] {
    return pids().filter((pid) =>
      ["cmdline", "environ"].some((file) => contentOf(`/proc/${pid}/${file}`).includes(word)),
    );
  }
}

/** Of all that live. */
function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && !/^State:\s+[ZX]/m.test(contentOf(`/proc/${name}/status`)))
    .map(Number);
}

/** Changes for good reason: sessions, caches, memory. */
const busy = /^(\.local\/state\/ollie|\.cache|\.config\/ollie\/memory|\.npm|\.cargo|go|\.gradle|\.m2)$/;

function record(top: string, found: Record<string, string>, below = ""): void {
  for (const entry of readdirSync(join(top, below), { withFileTypes: true })) {
    const name = join(below, entry.name);
    if (busy.test(name)) continue;
    const path = join(top, name);
    const { mode, uid, gid, size, ctimeMs, nlink } = lstatSync(path);
    const content = entry.isFile() && size < 4096 ? readFileSync(path, "latin1") : "";
    const target = entry.isSymbolicLink() ? readlinkSync(path) : "";
    found[path] = [mode.toString(8), uid, gid, size, ctimeMs, nlink, content, target].join(" ");
    if (entry.isDirectory()) record(top, found, name);
  }
}

export function contentOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** What the kernel answers, in the words of the programs used here. */
export const denied =
  /permission denied|read-only file system|operation not permitted|cross-device link|not permitted/i;
/** What covers a folder leaves nothing to be denied. */
export const unseen = new RegExp(`${denied.source}|no such file`, "i");

/** System calls that have no program of their own, by perl's `syscall`, which every Debian has: numbers for this processor. */
const numbers = {
  ptrace: [101, 117],
  setxattr: [188, 5],
  renameat2: [316, 276],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_open: [434, 434],
  pidfd_getfd: [438, 438],
  pidfd_send_signal: [424, 424],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  mount_setattr: [442, 442],
  openat: [257, 56],
  open_by_handle_at: [304, 265],
  name_to_handle_at: [303, 264],
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  keyctl: [250, 219],
  add_key: [248, 217],
  prlimit64: [302, 261],
  setrlimit: [160, 164],
  prctl: [157, 167],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  io_uring_setup: [425, 425],
  userfaultfd: [323, 282],
  kcmp: [312, 272],
  landlock_restrict_self: [446, 446],
  seccomp: [317, 277],
} as const;

/** For perl: the number of a call. */
export function sys(call: keyof typeof numbers): number {
  return numbers[call][process.arch === "arm64" ? 1 : 0];
}

/** A shell command that runs a perl program, which may hold anything but single quotes. Dying says why on stderr. */
export function perl(program: string): string {
  if (program.includes("'")) throw new Error(`a single quote in ${program}`);
  return `perl -MSocket -MFcntl -MPOSIX -e '${program}'`;
}
