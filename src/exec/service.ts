/** A program that is kept running beside others, until it is ended: see `startService`. */
import { closeSync } from "node:fs";
import { Fault } from "../fault.ts";
import { end, type Family } from "./family.ts";
import { inTime } from "./in-time.ts";
import type { Launch } from "./launch.ts";
import { spawnPiped } from "./spawn.ts";

export interface ServiceOptions {
  /** As in `RunOptions`. */
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  launch?: Launch;
  /** Milliseconds in which it must have said that it is ready. */
  patience: number;
  /** Aborted = nobody waits for it any more: it is ended. */
  signal?: AbortSignal;
}

export interface Service {
  readonly pid: number;
  /** Resolves when it and everything that it started is gone. */
  readonly gone: Promise<ServiceEnd>;
  readonly running: boolean;
  /** TERM to it and everything that it started, KILL after 500 ms; resolves when they are gone. */
  end(): Promise<void>;
}

export interface ServiceEnd {
  /** Exit status 0. */
  ok: boolean;
  /** How it ended, with the last that it wrote to stderr. */
  how: string;
  code?: number;
  said: string;
}

/** Milliseconds from TERM to KILL. */
const grace = 500;
/** Milliseconds in which the last of its output must have come when nobody is left to write. */
const drain = 250;
/** Characters of stderr that are kept: its end. */
const kept = 4096;

/**
 * Starts a program and waits until it is ready, which it says by a line on stdout; what it writes there afterwards is passed over.
 * Its processes end as those of a call do: with `end`, and with this process, however that ends. When the program exits by itself,
 * what it has left behind is ended.
 * @throws Fault if it cannot be started, ends at once, is not ready in time or is given up; then nothing of it runs any more
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { child, family, stdout, stderr } = spawnPiped({ ...options, stdin: "ignore" });
  const program = new Program(child, family, stdout, stderr);
  if (await program.isReady(options)) return program;
  const running = program.running;
  await program.end();
  const { how, code, said } = await program.gone;
  throw (
    options.launch?.failure?.({ code, stderr: said }) ??
    new Fault(
      "unavailable",
      running ? `it was not ready within ${options.patience / 1000} s (${how})` : `it ended at once: ${how}`,
    )
  );
}

class Program implements Service {
  readonly gone: Promise<ServiceEnd>;
  running = true;
  readonly #ready = Promise.withResolvers<boolean>();
  #said = "";

  constructor(
    private readonly child: Bun.Subprocess,
    private readonly family: Family,
    stdout: number,
    stderr: number,
  ) {
    const drained = Promise.all([
      read(stdout, (text) => text.includes("\n") && this.#ready.resolve(true)),
      read(stderr, (text) => {
        this.#said = (this.#said + text).slice(-kept);
      }),
    ]);
    this.gone = child.exited.then(async () => {
      this.running = false;
      this.#ready.resolve(false);
      await end(family, grace);
      await inTime(drained, drain);
      const code = child.exitCode ?? undefined;
      return { ok: code === 0, how: this.#ending(), code, said: this.#said };
    });
  }

  get pid(): number {
    return this.child.pid;
  }

  /** False: it has ended, its time is up, or nobody waits any more. */
  async isReady({ patience, signal }: ServiceOptions): Promise<boolean> {
    const giveUp = () => this.#ready.resolve(false);
    if (signal?.aborted) giveUp();
    const timer = setTimeout(giveUp, patience);
    signal?.addEventListener("abort", giveUp, { once: true });
    const ready = await this.#ready.promise;
    clearTimeout(timer);
    signal?.removeEventListener("abort", giveUp);
    return ready;
  }

  async end(): Promise<void> {
    await end(this.family, grace);
    await this.gone;
  }

  #ending(): string {
    const how = this.child.signalCode ? `killed by ${this.child.signalCode}` : `exit ${this.child.exitCode}`;
    const said = this.#said.trim();
    return said ? `${how}: ${said}` : how;
  }
}

/** Reads a pipe to its end and closes it. */
async function read(fd: number, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of Bun.file(fd).stream()) onText(decoder.decode(chunk, { stream: true }));
  } finally {
    closeSync(fd);
  }
}
