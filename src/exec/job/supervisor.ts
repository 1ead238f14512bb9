/**
 * The supervisor of one job: a process of its own, which outlives the server that started it. It is the parent of the job's program,
 * takes its output, and leaves behind how it ended.
 *
 * It is this same program and not a shell script, though a shell would need 1 MB and this needs 5 (what it shares with the server and
 * other supervisors not counted). A shell cannot tell `exit 143` from SIGTERM, has no way to keep the newest part of an output that does
 * not lose bytes with some host's `head`, cannot go on when a disk was full for a while, and cannot find what a program has left behind
 * in other sessions and process groups. To the programs it starts it is what the server is to those of calls: they carry its mark, so its
 * keeper ends them when it is killed, and the sweep at a server's start leaves them alone for as long as it lives (family.ts).
 */
import { closeSync, writeSync } from "node:fs";
import type { ReadableStreamDefaultReader } from "node:stream/web";
import { type Fault, toFault } from "../../fault.ts";
import { end, type Member } from "../family.ts";
import { inTime } from "../in-time.ts";
import { dismissKeeper } from "../keeper.ts";
import { pipe } from "../libc.ts";
import { seal } from "../seal.ts";
import { type Spawned, spawnProgram } from "../spawn.ts";
import { reserveExit, writeExit, writeFamily } from "./folder.ts";
import { JobOutputWriter } from "./output.ts";

/** What the supervisor reads from its stdin, as JSON. */
export interface SupervisorInput {
  argv: string[];
  /** Goes before `argv`; see `Launch`. */
  launch: readonly string[];
  cwd: string;
  env: Record<string, string>;
  stdin: string;
}

/** Its one line on stdout, as JSON: empty when the program runs. */
export interface SupervisorAnswer {
  fault?: { kind: Fault["kind"]; message: string };
}

/** Milliseconds from TERM to KILL for what the program has left behind. */
const grace = 500;
/** Milliseconds that output may still arrive after the program has ended. */
const drain = 250;
/** Bytes after which others get their turn: a program that floods its pipe always has more to read at once. */
const turn = 1024 * 1024;

/** Supervises the job of the folder it is started in, to its end. */
export async function supervise(): Promise<void> {
  // Whoever ends processes by their terminal or session means the programs.
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => {});
  seal();
  const input = await readInput();
  if (!input) return;
  let job: Started;
  try {
    reserveExit(".");
    job = start(input);
  } catch (error) {
    const { kind, message } = toFault(error, "the job cannot be started");
    answer({ fault: { kind, message } });
    return;
  }
  answer({});
  await finish(job);
}

/** Undefined where the server has ended before it had said everything: then nobody knows of a job. */
async function readInput(): Promise<SupervisorInput | undefined> {
  try {
    return JSON.parse(await Bun.stdin.text()) as SupervisorInput;
  } catch {
    return undefined;
  }
}

function answer(text: SupervisorAnswer): void {
  try {
    writeSync(1, `${JSON.stringify(text)}\n`);
  } catch {
    // The server has ended meanwhile; the next one finds the job all the same.
  }
}

interface Started extends Spawned {
  output: JobOutputWriter;
  reader: ReadableStreamDefaultReader<Uint8Array>;
}

function start({ argv, launch, cwd, env, stdin }: SupervisorInput): Started {
  const output = new JobOutputWriter(() => ".");
  const { read, write } = pipe();
  try {
    const input = new TextEncoder().encode(stdin);
    const spawned = spawnProgram({
      argv,
      cwd,
      env,
      launch: { argv: launch },
      stdin: input.length > 0 ? input : "ignore",
      stdout: write,
      stderr: write,
    });
    try {
      writeFamily(".", spawned.family);
    } catch (error) {
      spawned.child.kill("SIGKILL");
      throw error;
    }
    return { ...spawned, output, reader: Bun.file(read).stream().getReader() };
  } catch (error) {
    closeSync(read);
    throw error;
  } finally {
    closeSync(write);
  }
}

async function finish({ child, family, output, reader }: Started): Promise<void> {
  const drained = pump(reader, output);
  await child.exited;
  await inTime(drained, drain);
  const { ended, left } = await end(family, grace);
  // Nobody we know holds the pipe any more; still, the end of file is waited for only as long as something comes.
  for (let before = -1; before !== output.bytes && !(await inTime(drained, drain)); ) before = output.bytes;
  reader.cancel().catch(() => {});
  output.close();
  writeExit(".", {
    ...(child.signalCode === null ? { code: child.exitCode ?? 0 } : { signal: String(child.signalCode) }),
    at: Date.now(),
    bytes: output.bytes,
    lost: output.lost,
    leftovers: describe(ended, left),
  });
  if (left.length === 0) dismissKeeper();
}

async function pump(reader: Started["reader"], output: JobOutputWriter): Promise<void> {
  for (let unyielded = 0; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    output.add(value);
    unyielded += value.length;
    if (unyielded < turn) continue;
    unyielded = 0;
    await new Promise(setImmediate);
  }
}

function describe(ended: Member[], left: Member[]): string | undefined {
  const parts = [];
  if (ended.length > 0) parts.push(`ended with it: ${names(ended)}`);
  if (left.length > 0) parts.push(`could not be ended: ${names(left)}`);
  return parts.join("; ") || undefined;
}

function names(members: Member[]): string {
  const shown = members.slice(0, 3).map(({ pid, command }) => `pid ${pid} ${command}`.trim());
  return [...shown, ...(members.length > 3 ? [`and ${members.length - 3} more`] : [])].join(", ");
}
