/** Running one program whose output is kept as it is: see `runProgram`. */
import { closeSync } from "node:fs";
import { end, type Member } from "../../../exec/family.ts";
import { inTime } from "../../../exec/in-time.ts";
import type { Launch } from "../../../exec/launch.ts";
import { spawnPiped } from "../../../exec/spawn.ts";
import { passes } from "../garbage.ts";
import type { Spool } from "./spool.ts";

export interface ProgramOptions {
  argv: string[];
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  stdin: string;
  launch?: Launch;
  out: Spool;
  err: Spool;
  /** Something has been printed. */
  onOutput(): void;
  onStarted(pid: number): void;
  /** Milliseconds until it is ended. */
  timeout: number;
  /** Aborted = it is ended: TERM, and KILL after `grace()` milliseconds. */
  signal: AbortSignal;
  grace(): number;
}

export interface ProgramEnd {
  how: "exit" | "timeout" | "cancelled";
  code?: number;
  signal?: string;
  /** Processes that it had left running, and that were ended with it. */
  leftovers: Member[];
}

/** Milliseconds that output may still arrive after the program has ended. */
const drain = 250;
/** Bytes after which others get their turn: a program that floods its pipe always has more to read at once. */
const turn = 256 * 1024;
/** Bytes of stderr in which a launch that has failed says so. */
const complaintLimit = 4096;

/**
 * Settles when the program exits, not when its output closes; what it has left behind is ended.
 * @throws Fault if it cannot be started; LaunchFault if it could not be confined and so has not run
 */
export async function runProgram(options: ProgramOptions): Promise<ProgramEnd> {
  if (options.signal.aborted) return { how: "cancelled", leftovers: [] };
  const before = options.out.size;
  const stdin = options.stdin === "" ? "ignore" : new TextEncoder().encode(options.stdin);
  const { child, family, stdout, stderr } = spawnPiped({ ...options, stdin });
  options.onStarted(child.pid);
  const complaint: Uint8Array[] = [];
  const out = new Pump(stdout, options.out, options.onOutput);
  const err = new Pump(stderr, options.err, options.onOutput, complaint);
  const drained = Promise.all([out.done, err.done]);
  const exited = child.exited.then(() => "exit" as const);
  const limit = interruption(options);
  const how = await Promise.race([exited, limit.reached]);
  limit.dispose();
  if (how === "exit") await inTime(drained, drain);
  const { ended, left } = await end(family, how === "exit" ? 500 : options.grace());
  for (let seen = -1; seen !== out.bytes + err.bytes && !(await inTime(drained, drain)); )
    seen = out.bytes + err.bytes;
  out.stop();
  err.stop();
  await drained;
  await inTime(exited, drain);
  const code = child.exitCode ?? undefined;
  const said = Buffer.concat(complaint).toString("utf8");
  const failure =
    options.out.size === before && err.bytes === Buffer.byteLength(said)
      ? options.launch?.failure?.({ code, stderr: said })
      : undefined;
  if (failure) throw failure;
  const signal = child.signalCode === null ? undefined : String(child.signalCode);
  return { how, code, signal, leftovers: how === "exit" ? [...ended, ...left] : left };
}

class Pump {
  bytes = 0;
  readonly done: Promise<void>;
  readonly #reader;

  /** `fd` is the reading end of a pipe and is closed here. */
  constructor(
    fd: number,
    private readonly spool: Spool,
    private readonly onOutput: () => void,
    private readonly beginning?: Uint8Array[],
  ) {
    this.#reader = Bun.file(fd).stream().getReader();
    this.done = this.#pump().finally(() => closeSync(fd));
  }

  /** Ends the reading although somebody still holds the other end. */
  stop(): void {
    this.#reader.cancel().catch(() => {});
  }

  async #pump(): Promise<void> {
    for (let unyielded = 0; ; ) {
      const { value, done } = await this.#reader.read();
      if (done) return;
      if (this.bytes < complaintLimit) this.beginning?.push(value.slice(0, complaintLimit - this.bytes));
      this.bytes += value.length;
      this.spool.add(value);
      this.onOutput();
      passes(value.length);
      unyielded += value.length;
      if (unyielded < turn) continue;
      unyielded = 0;
      await new Promise(setImmediate);
    }
  }
}

function interruption({ timeout, signal }: ProgramOptions) {
  const { promise, resolve } = Promise.withResolvers<"timeout" | "cancelled">();
  const cancel = () => resolve("cancelled");
  // setTimeout takes 31 bits and fires at once beyond.
  const timer = setTimeout(() => resolve("timeout"), Math.min(timeout, 2 ** 31 - 1));
  signal.addEventListener("abort", cancel, { once: true });
  const dispose = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  };
  return { reached: promise, dispose };
}
