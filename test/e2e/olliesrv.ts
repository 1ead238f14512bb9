/** A compiled server in folders of its own, and the compiled client to use it with. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";

const dist = join(import.meta.dir, "../../dist");

export interface Ran {
  status: number;
  out: string;
  err: string;
}

export class Olliesrv implements AsyncDisposable {
  readonly home = mkdtempSync(join(tmpdir(), "ollie-e2e-"));
  readonly address: string;
  readonly #env: Record<string, string>;
  readonly #clients: Client[] = [];
  #server?: Bun.Subprocess<"ignore", "pipe", "ignore">;

  private constructor(rules: object[]) {
    if (!existsSync(join(dist, "olliesrv")))
      throw new Error("there are no compiled programs: run `npm run build` first");
    const run = join(this.home, "run");
    mkdirSync(run, { mode: 0o700 });
    const scenario = join(this.home, "scenario.yaml");
    writeFileSync(scenario, JSON.stringify({ rules }));
    this.address = `unix!${join(run, "9p")}`;
    this.#env = {
      PATH: process.env.PATH ?? "/usr/bin:/bin",
      HOME: this.home,
      XDG_RUNTIME_DIR: run,
      OLLIE_ADDR: this.address,
      OLLIE_BACKEND: "script",
      OLLIE_SCRIPT_SCENARIO: scenario,
    };
  }

  /** Runs until it is disposed of. `rules` are those of a scenario: what the scripted model answers. */
  static async start(rules: object[]): Promise<Olliesrv> {
    const olliesrv = new Olliesrv(rules);
    const server = Bun.spawn([join(dist, "olliesrv"), "fgstart"], {
      env: olliesrv.#env,
      cwd: olliesrv.home,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    olliesrv.#server = server;
    const output = server.stdout.getReader();
    let said = "";
    while (!said.includes("listens on")) {
      const { value, done } = await output.read();
      if (done) throw new Error(`olliesrv ended with ${await server.exited} before it listened`);
      said += new TextDecoder().decode(value);
    }
    output.releaseLock();
    return olliesrv;
  }

  /** Runs `ollie-9p` to its end. */
  async run(args: string[], stdin = ""): Promise<Ran> {
    const { process, out, err } = this.spawn(args, stdin);
    return { status: await process.exited, out: await out, err: await err };
  }

  spawn(args: string[], stdin = "") {
    const process = Bun.spawn([join(dist, "ollie-9p"), ...args], {
      env: this.#env,
      stdin: new TextEncoder().encode(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
    return {
      process,
      out: new Response(process.stdout).text(),
      err: new Response(process.stderr).text(),
    };
  }

  /** What `ollie-9p read` prints. */
  async read(path: string): Promise<string> {
    const { status, out, err } = await this.run(["read", path]);
    if (status !== 0) throw new Error(err);
    return out;
  }

  /** A connection of its own. */
  async connect(): Promise<Client> {
    const client = await dial(this.address);
    this.#clients.push(client);
    return client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    this.#server?.kill("SIGKILL");
    await this.#server?.exited;
    rmSync(this.home, { recursive: true, force: true });
  }
}
