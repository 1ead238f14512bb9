/** Brings ollie-remote to hosts of the rig from a process in the client's network: driver.child.ts. */
import { join } from "node:path";
import type { Client } from "../../rig/rig.ts";
import { build, dist } from "../harness.ts";
import type { Answer, Command } from "./driver.child.ts";

export type { Answer } from "./driver.child.ts";

export interface Refusal {
  code: string;
  message: string;
  hint: string;
}

/** What is seen of a command. */
export type Seen = { result?: Answer; fault?: Refusal };

/** Milliseconds that a command may take before it counts as hung. */
const limit = 60_000;

export class Driver {
  readonly #waiting = new Map<number, (seen: Seen) => void>();
  readonly #child: Bun.Subprocess<"pipe", "pipe", "pipe">;
  #count = 0;
  #errors = "";

  private constructor(client: Client) {
    const script = join(import.meta.dir, "driver.child.ts");
    this.#child = Bun.spawn([...client.inside, process.execPath, script], {
      env: client.env,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    void this.#listen();
    void this.#overhear();
  }

  static async start(client: Client): Promise<Driver> {
    await build();
    return new Driver(client);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** @param command programs are those of dist unless it says others */
  async try(command: Command): Promise<Seen> {
    const id = this.#count++;
    const { promise, resolve } = Promise.withResolvers<Seen>();
    this.#waiting.set(id, resolve);
    const options = { programs: dist, ...command.options };
    this.#child.stdin.write(`${JSON.stringify({ id, ...command, options })}\n`);
    this.#child.stdin.flush();
    const timer = setTimeout(
      () => resolve({ fault: { code: "hung", message: `no answer; ${this.#errors}`, hint: "" } }),
      limit,
    );
    return promise.finally(() => clearTimeout(timer));
  }

  /** @throws Error where it is refused */
  async boot(target: string, command: Omit<Command, "target"> = {}): Promise<Answer> {
    const { result, fault } = await this.try({ target, ...command });
    if (result) return result;
    throw new Error(`${fault!.code}: ${fault!.message} ${fault!.hint}`);
  }

  /** What it is refused with. @throws Error where it is not */
  async refusal(target: string, command: Omit<Command, "target"> = {}): Promise<Refusal> {
    const { fault } = await this.try({ target, ...command });
    if (fault) return fault;
    throw new Error(`ollie-remote runs on ${target}`);
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async #overhear(): Promise<void> {
    const text = new TextDecoder();
    for await (const chunk of this.#child.stderr) this.#errors += text.decode(chunk, { stream: true });
  }

  async #listen(): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.#child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) {
        const { id, ...seen } = JSON.parse(line) as Seen & { id: number };
        this.#waiting.get(id)?.(seen);
      }
    }
  }
}
