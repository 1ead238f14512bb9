/**
 * Runs the compiled programs from outside, as a user does: each server with a home, state and runtime folder of its own.
 *
 * ```ts
 * const server = await startServer();
 * await server.o("new", "name=main");
 * expect(await server.read("session/main/agent/default/state")).toBe("idle\n");
 * await server.stop();
 * ```
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";

export { until } from "../until.ts";

const top = join(import.meta.dir, "../..");
/** The folder with `olliesrv`, `ollie-9p` and `o`. */
export const dist = join(top, "dist");
const olliesrv = join(dist, "olliesrv");

/** Milliseconds that anything may take before it counts as hung. */
const limit = 20_000;

let building: Promise<void> | undefined;

/** Builds `dist/` unless it is up to date; once in a test process. */
export function build(): Promise<void> {
  building ??= (async () => {
    const child = Bun.spawn([process.execPath, "build.ts"], { cwd: top, stdout: "pipe", stderr: "pipe" });
    const [said, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (status !== 0) throw new Error(`the build failed: ${said}`);
  })();
  return building;
}

export interface Outcome {
  /** Exit status; 128 + N after signal N, as a shell has it. */
  status: number;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  stdin?: string | Uint8Array;
  cwd?: string;
  /** Laid over the environment. */
  env?: Record<string, string>;
}

/** Runs a program to its end. @throws Error if it does not end */
export async function run(
  argv: string[],
  env: Record<string, string>,
  options: RunOptions = {},
): Promise<Outcome> {
  const child = Bun.spawn(argv, {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    stdin: options.stdin === undefined ? "ignore" : Buffer.from(options.stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), limit);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  clearTimeout(timer);
  if (child.signalCode === "SIGKILL")
    throw new Error(`${argv.join(" ")} did not end; it said: ${stdout}${stderr}`);
  const status = child.exitCode ?? 128 + constants.signals[child.signalCode as NodeJS.Signals];
  return { status, stdout, stderr };
}

/** A home of its own, with nothing in it. */
export class Home {
  readonly folder: string;
  readonly home: string;
  readonly config: string;
  readonly state: string;
  /** What `o new` and prompts without a folder work in. */
  readonly work: string;
  readonly address: string;
  readonly env: Record<string, string>;

  /** @param place the folder that it is made in */
  constructor(env: Record<string, string> = {}, place = tmpdir()) {
    this.folder = mkdtempSync(join(place, "ollie-e2e-"));
    this.home = join(this.folder, "home");
    this.config = join(this.home, ".config/ollie");
    this.state = join(this.home, ".local/state/ollie");
    this.work = join(this.folder, "work");
    this.address = `unix!${this.folder}/run/ollie/9p`;
    for (const folder of [this.home, this.work, join(this.folder, "run")]) mkdirSync(folder, { mode: 0o700 });
    this.env = {
      HOME: this.home,
      XDG_RUNTIME_DIR: join(this.folder, "run"),
      PATH: `${dist}:/usr/local/bin:/usr/bin:/bin`,
      LANG: "C.UTF-8",
      USER: process.env.USER ?? "root",
      ...env,
    };
  }

  /** Writes the env file. */
  configure(text: string): void {
    mkdirSync(this.config, { recursive: true });
    writeFileSync(join(this.config, "env"), text);
  }

  /** Makes the backend `script` the default one, and this what it plays. */
  script(scenario: object): void {
    const file = join(this.folder, "scenario.json");
    writeFileSync(file, JSON.stringify(scenario));
    Object.assign(this.env, { OLLIE_BACKEND: "script", OLLIE_SCRIPT_SCENARIO: file });
  }

  run(argv: string[], options?: RunOptions): Promise<Outcome> {
    return run(argv, this.env, { cwd: this.work, ...options });
  }

  olliesrv(...args: string[]): Promise<Outcome> {
    return this.run([olliesrv, ...args]);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface ServerOptions {
  /** Laid over the environment of the server and of all commands. */
  env?: Record<string, string>;
  /** Options of `olliesrv fgstart`. */
  args?: string[];
  /** Content of the env file. */
  config?: string;
  /** What the backend `script` plays (doc/SCENARIOS.md), which then is the default one. */
  scenario?: object;
  /** The words that start the server somewhere else, such as in the network of a rig (test/rig). */
  within?: (argv: string[], cwd: string) => string[];
}

/** Starts a server and waits until it answers. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  await build();
  const home = new Home(options.env);
  if (options.config !== undefined) home.configure(options.config);
  if (options.scenario !== undefined) home.script(options.scenario);
  const server = new TestServer(home, options.args ?? [], options.within);
  try {
    await server.start();
  } catch (error) {
    home.remove();
    throw error;
  }
  return server;
}

export class TestServer {
  #child?: Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** What the server wrote to stderr since its last start. */
  log = "";

  constructor(
    readonly home: Home,
    private readonly args: string[],
    private readonly within: NonNullable<ServerOptions["within"]> = (argv) => argv,
  ) {}

  get pid(): number {
    return this.#child!.pid;
  }

  get address(): string {
    return this.home.address;
  }

  async start(): Promise<void> {
    this.log = "";
    const { work } = this.home;
    const child = Bun.spawn(this.within([olliesrv, "fgstart", ...this.args], work), {
      cwd: work,
      env: this.home.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#child = child;
    void this.#collect(child.stderr);
    // It says that it listens when it does.
    const said = await Promise.race([firstLine(child.stdout), Bun.sleep(limit).then(() => "")]);
    if (said) return;
    child.kill("SIGKILL");
    await child.exited;
    throw new Error(`the server did not start: ${this.log}`);
  }

  /** Ends it as a user would and removes everything. */
  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    this.home.remove();
  }

  /** SIGKILL, at this instant; the files stay. */
  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Ends it (unless it is dead) and starts it again on the same files. */
  async restart(): Promise<void> {
    await this.#end("SIGTERM");
    await this.start();
  }

  async #end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.#child!;
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), limit);
    await child.exited;
    clearTimeout(timer);
  }

  o(...args: string[]): Promise<Outcome> {
    return this.home.run([join(dist, "o"), ...args]);
  }

  /** `ollie-9p` with its arguments. */
  p9(...args: string[]): Promise<Outcome> {
    return this.home.run([join(dist, "ollie-9p"), ...args]);
  }

  /** The content of a file. @throws Error with the server's words */
  async read(path: string): Promise<string> {
    return succeeded(await this.p9("read", path));
  }

  /** Writes a file. @throws Error with the server's words */
  async write(path: string, text: string): Promise<void> {
    succeeded(await this.home.run([join(dist, "ollie-9p"), "write", path], { stdin: text }));
  }

  /** Makes a session of `key=value` words and returns its name. */
  async create(keys = ""): Promise<string> {
    const said = await this.home.run([join(dist, "ollie-9p"), "rdwr", "session/new"], {
      stdin: keys || "\n",
    });
    return succeeded(said).trimEnd();
  }

  /** Submits a prompt to the first agent of a session, waits until the agent is idle, and returns the reply. */
  async ask(session: string, text: string): Promise<string> {
    await this.write(`s/${session}/prompt`, text);
    await this.read(`s/${session}/idlewait`);
    return this.read(`s/${session}/reply`);
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    const text = new TextDecoder();
    for await (const chunk of stream) this.log += text.decode(chunk, { stream: true });
  }
}

/** stdout of a command that worked. @throws Error with what it said */
export function succeeded({ status, stdout, stderr }: Outcome): string {
  if (status !== 0) throw new Error(`status ${status}: ${stderr.trim()}`);
  return stdout;
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  // The rest is nobody's business, but has to be read: a full pipe would hold the server up.
  const reader = stream.getReader();
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  void (async () => {
    while (!(await reader.read()).done);
  })();
  return text.split("\n")[0]!;
}
