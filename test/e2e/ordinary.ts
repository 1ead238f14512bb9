/** A server that belongs to an ordinary user, though the tests may run as root: what binds a user does not bind root. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lchownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lacksPrograms } from "../needs.ts";
import { build, dist, Home, type Outcome, run } from "./harness.ts";

const root = process.getuid!() === 0;
const setpriv = Bun.which("setpriv");
/** Nobody's, and another one in each test process. */
const uid = root ? 61_000 + (process.pid % 4000) : process.getuid!();
const become = root ? [setpriv ?? "setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups"] : [];

/** As root it takes setpriv to be somebody else. */
export const lacksOrdinary = root && lacksPrograms("setpriv");

export class OrdinaryServer {
  readonly home: Home;
  #bin = dist;
  #child?: Bun.Subprocess<"ignore", "pipe", "ignore">;

  /** @param place the folder that its home is made in; then its programs are there too, and the user's own */
  constructor(
    env: Record<string, string>,
    scenario: object,
    private readonly place?: string,
  ) {
    this.home = new Home(env, place);
    this.home.script(scenario);
  }

  /** Where its programs are. */
  get bin(): string {
    return this.#bin;
  }

  get pid(): number {
    return this.#child!.pid;
  }

  /** `args`: options of `olliesrv fgstart`. */
  async start(args: string[] = []): Promise<void> {
    await build();
    if (root) giveTo(uid, this.home.folder);
    if (this.place !== undefined) this.#linkPrograms();
    else if (root && (await this.run(["test", "-x", join(dist, "olliesrv")])).status !== 0)
      this.#copyPrograms();
    this.#child = Bun.spawn([...become, join(this.#bin, "olliesrv"), "fgstart", ...args], {
      cwd: this.home.work,
      env: this.home.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const { done } = await this.#child.stdout.getReader().read();
    if (done) throw new Error("the server did not start");
  }

  async stop(): Promise<void> {
    this.#child?.kill();
    await this.#child?.exited;
    this.home.remove();
  }

  /** Runs a program as the user. */
  run(argv: string[], stdin?: string): Promise<Outcome> {
    return run([...become, ...argv], this.home.env, { cwd: this.home.work, stdin });
  }

  /** Makes a file, or a folder without what is in it, the user's. */
  give(path: string): void {
    if (root) lchownSync(path, uid, uid);
  }

  /** Starts a program as the user; it is the caller's to end. */
  spawn(argv: string[], env: Record<string, string> = {}) {
    return Bun.spawn([...become, ...argv], {
      cwd: this.home.work,
      env: { ...this.home.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  p9(args: string[], stdin?: string): Promise<Outcome> {
    return this.run([join(this.#bin, "ollie-9p"), ...args], stdin);
  }

  /** What of the user's runs now, this server and zombies not counted: command lines. For an ordinary user that is the whole desktop. */
  running(): string[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && Number(name) !== this.pid)
      .map((pid) => ({ status: read(`/proc/${pid}/status`), words: read(`/proc/${pid}/cmdline`) }))
      .filter(({ status }) => status.includes(`\nUid:\t${uid}\t`) && !/^State:\s+[ZX]/m.test(status))
      .map(({ words }) => words.replaceAll("\0", " "));
  }

  /** A checkout in root's home is closed to others. */
  #copyPrograms(): void {
    this.#bin = join(this.home.folder, "bin");
    mkdirSync(this.#bin);
    for (const name of ["olliesrv", "ollie-9p"]) copyFileSync(join(dist, name), join(this.#bin, name));
    chmodSync(this.#bin, 0o755);
  }

  #linkPrograms(): void {
    this.#bin = join(this.home.folder, "bin");
    mkdirSync(this.#bin);
    for (const name of programs) linkOrCopy(join(usersPrograms(), name), join(this.#bin, name));
    if (root) giveTo(uid, this.#bin);
    this.home.env.PATH = this.home.env.PATH!.replace(dist, this.#bin);
  }
}

const programs = ["olliesrv", "ollie-9p", "o"];
let copies: string | undefined;

/** Copies that can belong to the user: one for all servers of this run, since they are large. They go with its temporary folder. */
function usersPrograms(): string {
  if (copies !== undefined) return copies;
  copies = mkdtempSync(join(tmpdir(), "ollie-programs-"));
  for (const name of programs) copyFileSync(join(dist, name), join(copies, name));
  return copies;
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** What is done on the way there is done as the user: a server asks the kernel who connects. */
export async function asOrdinary<T>(work: () => Promise<T>): Promise<T> {
  if (!root) return work();
  process.seteuid!(uid);
  try {
    return await work();
  } finally {
    process.seteuid!(0);
  }
}

function giveTo(user: number, folder: string): void {
  chownSync(folder, user, user);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) giveTo(user, path);
    else chownSync(path, user, user);
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
