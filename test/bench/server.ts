/** A compiled server of its own for a measurement, in folders of its own. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";

const program = join(import.meta.dir, "../../dist/olliesrv");

export class BenchServer {
  readonly folder = mkdtempSync(join(tmpdir(), "ollie-bench-"));
  readonly address = `unix!${join(this.folder, "run/9p")}`;
  #process?: Bun.Subprocess;

  constructor(readonly environment: Record<string, string> = {}) {
    mkdirSync(join(this.folder, "run"), { mode: 0o700 });
  }

  /** Starts it and returns a client as soon as it answers, with the milliseconds that took. */
  async start(): Promise<{ client: Client; took: number }> {
    const began = performance.now();
    this.#process = Bun.spawn([program, "fgstart", "--listen", this.address], {
      cwd: this.folder,
      env: { PATH: process.env.PATH!, HOME: this.folder, ...this.environment },
      stdout: "ignore",
      stderr: "ignore",
    });
    for (;;) {
      try {
        const client = await dial(this.address);
        await client.readText("version");
        return { client, took: performance.now() - began };
      } catch (error) {
        if (this.#process.exitCode !== null)
          throw new Error(`the server ended with ${this.#process.exitCode}`);
        if (performance.now() - began > 30_000) throw error;
        await Bun.sleep(1);
      }
    }
  }

  /** Resident memory in bytes. */
  memory(): number {
    const status = readFileSync(`/proc/${this.#process!.pid}/status`, "utf8");
    return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
  }

  async stop(): Promise<void> {
    this.#process?.kill();
    await this.#process?.exited;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
