/** Namespaces that last as long as this process: hold.c, and what a run that was killed has left behind. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processes, processOf, signal, variableOf } from "./processes.ts";

/** Where `ip` and `sshd` are, too. */
export const path = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/** Set in all processes of a rig, to the process that made it. */
const mark = "OLLIE_RIG";

export const environment = { PATH: path, LANG: "C.UTF-8", [mark]: String(process.pid) };

/** Not in TMPDIR: what is in it has to be found by later runs, and to be on a disk. */
const place = "/var/tmp";
const prefix = "ollie-rig-";

export function workFolder(): string {
  return mkdtempSync(join(place, `${prefix}${process.pid}-`));
}

/** Compiles a program of this folder into another one. */
export function compile(name: string, into: string): string {
  const program = join(into, name);
  succeed(["gcc", "-O2", "-Wall", "-Wextra", "-o", program, join(import.meta.dir, `${name}.c`)]);
  return program;
}

/** Runs a program to its end. @throws Error with what it said */
export function succeed(argv: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(argv, { env: environment, stdin: "ignore" });
  if (!success) throw new Error(`${argv.join(" ")}: ${stderr.toString().trim()}${stdout.toString().trim()}`);
  return stdout.toString();
}

/** A process that sits in namespaces of its own. */
export class Hold {
  /** Of a process inside. */
  readonly pid: number;
  /** Its namespaces, as `Process` has them. Asked at the beginning: should it ever be killed, its pid may soon be anybody's. */
  readonly net: string;
  readonly pids: string;
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;

  private constructor(child: Bun.Subprocess<"pipe", "pipe", "pipe">, pid: number) {
    this.#child = child;
    this.pid = pid;
    const there = processOf(pid);
    if (!there || there.net === processOf(process.pid)?.net)
      throw new Error("the rig has no network of its own");
    this.net = there.net;
    this.pids = there.pids;
  }

  /**
   * @param hold the compiled hold.c
   * @param namespaces options of unshare(1); with `--fork`, the process is the first of its process namespace
   * @param folder for a file with the script
   * @param script for `sh -eu`: what is done inside before anything else
   */
  static async make(hold: string, namespaces: string[], folder: string, script: string[]): Promise<Hold> {
    // Not among its words: they would be there for everybody to see as long as the host is.
    const file = join(folder, "setup.sh");
    writeFileSync(file, script.join("\n"));
    const child = Bun.spawn(["unshare", ...namespaces, "--propagation", "private", hold, "sh", "-eu", file], {
      env: environment,
      cwd: "/",
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    const { value } = await child.stdout.getReader().read();
    if (!value || new TextDecoder().decode(value).trim() !== "0") {
      child.kill("SIGKILL");
      throw new Error(`the rig could not be set up: ${await new Response(child.stderr).text()}`);
    }
    const inside = namespaces.includes("--fork")
      ? processes().find(({ parent }) => parent === child.pid)?.pid
      : child.pid;
    if (inside === undefined) throw new Error("the rig has ended at once");
    return new Hold(child, inside);
  }

  /** In its namespaces: the words before those of a command. */
  enter(...namespaces: string[]): string[] {
    return ["nsenter", "--target", String(this.pid), ...namespaces, "--"];
  }

  async end(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** Entries of binfmt_misc are the machine's, and stay when their maker dies. */
export const formats = "/proc/sys/fs/binfmt_misc";
export const formatPrefix = "ollierig-";

/** Takes away what runs left behind that were killed. */
export function sweep(): void {
  for (const { pid } of processes()) {
    const owner = variableOf(pid, mark);
    if (owner !== undefined && !isAlive(owner)) signal(pid, "SIGKILL");
  }
  for (const name of readdirSync(place))
    if (name.startsWith(prefix) && !isAlive(name.slice(prefix.length).split("-")[0]!))
      rmSync(join(place, name), { recursive: true, force: true });
  for (const name of formatsOf((owner) => !isAlive(owner))) removeFormat(name);
}

/** Names of entries by the process that made them. */
export function formatsOf(chosen: (owner: string) => boolean): string[] {
  return inFormats(`ls ${formats}`)
    .split("\n")
    .filter(
      (name) => name.startsWith(formatPrefix) && chosen(name.slice(formatPrefix.length).split("-")[0]!),
    );
}

export function removeFormat(name: string): void {
  inFormats(`echo -1 > ${formats}/${name}`);
}

function inFormats(command: string): string {
  const script = `mount -t binfmt_misc none ${formats} && ${command}`;
  return succeed(["unshare", "--mount", "--propagation", "private", "sh", "-c", script]);
}

function isAlive(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").length > 0;
  } catch {
    return false;
  }
}

/** Writes a file that others may read, with these permissions whatever the umask. */
export function write(file: string, text: string, mode = 0o644): void {
  writeFileSync(file, text);
  succeed(["chmod", mode.toString(8), file]);
}
