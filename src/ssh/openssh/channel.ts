/** A program on the other host, over a channel of an ssh master. */
import { spawn } from "node:child_process";
import type { CodedFault } from "../../fault.ts";
import { sshFault } from "../fault.ts";
import { Flow, Tail, Waits } from "../flow.ts";
import type { SshChannel } from "../transport.ts";

type End = { code?: number; signal?: string; fault?: CodedFault };

/** The status of ssh itself when something went wrong, and of any program that likes it. */
const ownStatus = 255;

export class OpensshChannel implements SshChannel {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly closed: Promise<End>;
  private readonly tail = new Tail();
  private readonly child;
  private readonly waits = new Waits();
  private readonly finish: (end: End) => void;
  private over = false;
  /** Bytes in `write` that ssh has not taken yet. */
  private held = 0;

  /** @param alive what has become of the connection, asked where the program's status could be ssh's own */
  constructor(
    command: string[],
    private readonly place: string,
    alive: () => Promise<CodedFault | undefined>,
  ) {
    const { promise, resolve } = Promise.withResolvers<End>();
    this.closed = promise;
    const child = spawn(command[0]!, command.slice(1), { env: { ...process.env }, stdio: "pipe" });
    this.child = child;
    const flow = new Flow((stop) => (stop ? child.stdout.pause() : child.stdout.resume()));
    this.stdout = flow;
    this.finish = (end) => {
      this.over = true;
      flow.end();
      this.waits.end();
      resolve(end);
    };
    child.stdout.on("data", (bytes: Buffer) => flow.push(bytes));
    child.stderr.on("data", (bytes: Buffer) => this.tail.push(bytes));
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
    child.on("error", (error) =>
      this.finish({ fault: sshFault("ssh.dropped", `ssh cannot be started: ${error.message}`) }),
    );
    child.on("close", async (code, signal) => {
      if (this.over) return;
      if (code !== null && code !== ownStatus) return this.finish({ code });
      const fault = (await alive()) ?? this.refusal();
      this.finish(fault ? { fault } : code === null ? { signal: signal ?? undefined } : { code });
    });
  }

  stderr(): string {
    return this.tail.text;
  }

  get buffered(): number {
    return this.held;
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (this.over) throw await this.why();
    this.held += bytes.length;
    const sent = await this.waits.until((done) => this.child.stdin.write(bytes, (error) => done(!error)));
    this.held -= bytes.length;
    if (!sent) throw await this.why();
  }

  end(): void {
    this.child.stdin.end();
  }

  close(): void {
    if (this.over) return;
    this.finish({});
    this.child.kill("SIGTERM");
    // Nobody reads any more.
    this.child.stdout.resume();
  }

  private async why(): Promise<CodedFault> {
    const { fault } = await this.closed;
    return fault ?? sshFault("ssh.dropped", `the program on ${this.place} takes nothing more`);
  }

  private refusal(): CodedFault | undefined {
    if (!/Session open refused by peer|open failed: /.test(this.tail.text)) return;
    return sshFault("ssh.refused", `${this.place} allows no further program on this connection`, {
      retry: true,
      hint: "MaxSessions of its sshd_config says how many",
    });
  }
}
