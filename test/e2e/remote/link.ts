/** A client of one session on a host of the rig: link.child.ts, as often as it is killed. */
import { join } from "node:path";
import type { Client } from "../../rig/rig.ts";
import { dist } from "../harness.ts";
import type { Asked } from "./link.child.ts";

export interface End {
  /** As the report has it, or the code of what it was refused with. */
  status: string;
  code?: number;
  signal?: string;
  output: string;
}

type Told = { opId: string; accepted?: true; end?: End };

export class LinkClient {
  #child!: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #accepted = new Set<string>();
  readonly #ends = new Map<string, End>();
  readonly #waiting = new Set<() => void>();
  /** What it said about its way to the host. */
  log = "";

  constructor(
    private readonly client: Client,
    private readonly target: string,
    private readonly cwd: string,
    private readonly file: string,
  ) {
    this.start();
  }

  start(): void {
    const script = join(import.meta.dir, "link.child.ts");
    const child = Bun.spawn(
      [...this.client.inside, process.execPath, script, this.target, this.cwd, this.file, dist],
      { env: this.client.env, stdin: "pipe", stdout: "pipe", stderr: "pipe" },
    );
    this.#child = child;
    void this.#listen(child);
    void (async () => {
      const text = new TextDecoder();
      for await (const chunk of child.stderr) this.log += text.decode(chunk, { stream: true });
    })();
  }

  ask(asked: Asked): void {
    this.#child.stdin.write(`${JSON.stringify(asked)}\n`);
    this.#child.stdin.flush();
  }

  accepted(opId: string): boolean {
    return this.#accepted.has(opId);
  }

  ended(opId: string): End | undefined {
    return this.#ends.get(opId);
  }

  /** @throws Error with what it said, if that takes longer than the milliseconds */
  async end(opId: string, limit = 60_000): Promise<End> {
    const timer = setTimeout(() => this.#wake(), limit);
    try {
      for (const last = Date.now() + limit; ; ) {
        const end = this.#ends.get(opId);
        if (end) return end;
        if (Date.now() >= last) throw new Error(`${opId} has no end:\n${this.log.slice(-3000)}`);
        await new Promise<void>((resolve) => this.#waiting.add(resolve));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Forgets what it was told, so that it is told anew. */
  forget(opId: string): void {
    this.#ends.delete(opId);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  #wake(): void {
    for (const each of this.#waiting) each();
    this.#waiting.clear();
  }

  async #listen(child: Bun.Subprocess<"pipe", "pipe", "pipe">): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const { opId, accepted, end } of lines.map((line) => JSON.parse(line) as Told)) {
        if (accepted) this.#accepted.add(opId);
        if (end) this.#ends.set(opId, end);
        this.#wake();
      }
    }
  }
}
