/**
 * Running one program to its end: see `run`. This folder knows nothing of tools, agents or sessions; `ollie-remote` uses it as it is.
 */
import { end, type Member } from "./family.ts";
import { inTime } from "./in-time.ts";
import type { Launch } from "./launch.ts";
import { spawnPiped } from "./spawn.ts";
import { OutputStream, type TextFilter } from "./stream.ts";

export interface RunOptions {
  /** argv[0] is a path; nothing is looked up and no shell interprets anything. */
  argv: string[];
  cwd: string;
  /** The whole environment of the child, on top of `unattended` (env.ts); nothing else is inherited. */
  env: Record<string, string>;
  stdin: string | Uint8Array;
  /** Milliseconds until the group is ended (TERM, then KILL). */
  timeout: number;
  /** Called with what was printed as it comes, line by line, cleaned for display; never awaited. Falls silent after 60 KiB. */
  onOutput?: (text: string) => void;
  /** Makes, for each of its two streams, what changes the cleaned text before anybody sees it; the file at `spill` holds what was printed. */
  filter?: () => TextFilter;
  /** Aborted = end the group: TERM at once, KILL after 500 ms. */
  signal: AbortSignal;
  /** Where the whole output is kept, at most 10 MiB; made only when the result does not hold everything. stderr goes to `{spill}.err`. */
  spill: string;
  /** How the process becomes the program; unset = `plainLaunch()`. */
  launch?: Launch;
  /** stdin stays open until the group is to be ended, or this process itself has ended: for a program that no signal of ours reaches. */
  lifeline?: boolean;
}

export interface RunResult {
  /** Exit status, or undefined when a signal ended it. */
  code?: number;
  signal?: string;
  ended: "exit" | "timeout" | "cancelled";
  /** stdout, then stderr under a line of its own; cleaned (UTF-8, no NUL, no ANSI, `\r` progress collapsed), head and tail within 16 KiB. */
  text: string;
  /** Bytes printed in all. */
  bytes: number;
  /** Set when `text` does not hold everything. */
  spilled?: string;
  /** Milliseconds. */
  wall: number;
  /** Processes that outlived the call and were ended, or that could not be. */
  leftovers?: string;
}

/** Milliseconds from TERM to KILL. */
const grace = 500;
/** Milliseconds that output may still arrive after the program has ended. */
const drain = 250;
/** Bytes of output in a result. 2 KiB less than a result's 16, for the lines that say what is missing and how the call ended. */
const textLimit = 14 * 1024;
/** What stderr gets of that at least, where both streams are long. */
const stderrShare = 4 * 1024;
const diskLimit = 10 * 1024 * 1024;
const liveLimit = 60 * 1024;

/**
 * Runs a program in a session and process group of its own, without a terminal, its stdin given and closed.
 *
 * Settles when the program exits, not when its output closes: what it leaves behind gets 250 ms to finish printing and is then ended
 * (TERM, KILL), wherever it has gone, and named in `leftovers`. Rejects with a Fault only if the program cannot be started.
 */
export async function run(options: RunOptions): Promise<RunResult> {
  const started = performance.now();
  if (options.signal.aborted) return { ended: "cancelled", text: "", bytes: 0, wall: 0 };
  const { child, family, stdout, stderr } = start(options);
  const drained = Promise.all([stdout.done, stderr.done]);

  const exited = child.exited.then(() => "exit" as const);
  const limit = interruption(options);
  const ended = await Promise.race([exited, limit.reached]);
  limit.dispose();
  letGo(child);
  if (ended === "exit") await inTime(drained, drain);
  const { ended: leftovers, left } = await end(family, grace);
  // Nobody we know holds the pipes any more; still, the end of file is waited for only as long as something comes.
  for (let before = -1; before !== stdout.bytes + stderr.bytes && !(await inTime(drained, drain)); ) {
    before = stdout.bytes + stderr.bytes;
  }
  stdout.stop();
  stderr.stop();
  await drained;
  await inTime(exited, drain);

  const { stderr: complaint, ...composed } = await compose(stdout, stderr);
  const code = child.exitCode ?? undefined;
  const failure =
    composed.bytes === complaint.length ? options.launch?.failure?.({ code, stderr: complaint }) : undefined;
  if (failure) throw failure;
  return {
    code,
    signal: child.signalCode === null ? undefined : String(child.signalCode),
    ended,
    ...composed,
    wall: performance.now() - started,
    leftovers: describe(ended === "exit" ? leftovers : [], left),
  };
}

function start(options: RunOptions) {
  const input = typeof options.stdin === "string" ? new TextEncoder().encode(options.stdin) : options.stdin;
  const stdin = options.lifeline ? "pipe" : input.length > 0 ? input : "ignore";
  const { stdout, stderr, ...spawned } = spawnPiped({ ...options, stdin });
  if (options.lifeline) feed(spawned.child, input);
  const onText = live(options.onOutput);
  const stream = (fd: number, path: string) =>
    new OutputStream(fd, { path, cap: diskLimit, limit: textLimit, onText, filter: options.filter?.() });
  return {
    ...spawned,
    stdout: stream(stdout, options.spill),
    stderr: stream(stderr, `${options.spill}.err`),
  };
}

/** A program need not read what it is given. */
function feed({ stdin }: Bun.Subprocess, input: Uint8Array): void {
  if (typeof stdin !== "object") return;
  Promise.resolve(stdin.write(input)).catch(() => {});
  Promise.resolve(stdin.flush()).catch(() => {});
}

/** Closes stdin, where it is still open. */
function letGo({ stdin }: Bun.Subprocess): void {
  if (typeof stdin === "object") Promise.resolve(stdin.end()).catch(() => {});
}

/** Resolves when the call is cancelled or its time is up. */
function interruption(options: RunOptions) {
  const { promise, resolve } = Promise.withResolvers<"timeout" | "cancelled">();
  const cancel = () => resolve("cancelled");
  // setTimeout takes 31 bits and fires at once beyond.
  const timer = setTimeout(() => resolve("timeout"), Math.min(options.timeout, 2 ** 31 - 1));
  options.signal.addEventListener("abort", cancel, { once: true });
  const dispose = () => {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", cancel);
  };
  return { reached: promise, dispose };
}

function live(onOutput: RunOptions["onOutput"]): (text: string) => void {
  let room = onOutput ? liveLimit : 0;
  return (text) => {
    if (room <= 0) return;
    room -= text.length;
    onOutput?.(
      room > 0
        ? text
        : `${text.slice(0, room + text.length)}\n[… more output; the result shows its head and tail]\n`,
    );
  };
}

async function compose(
  stdout: OutputStream,
  stderr: OutputStream,
): Promise<Pick<RunResult, "text" | "bytes" | "spilled"> & { stderr: string }> {
  const forStderr = Math.min(stderr.wanted, Math.max(stderrShare, textLimit - stdout.wanted));
  const out = await stdout.finish(textLimit - forStderr);
  const err = await stderr.finish(forStderr);
  const between = out.text && !out.text.endsWith("\n") ? "\n" : "";
  const text = err.text ? `${out.text}${between}[stderr]\n${err.text}` : out.text;
  return { text, stderr: err.text, bytes: stdout.bytes + stderr.bytes, spilled: out.path ?? err.path };
}

function describe(ended: Member[], left: Member[]): string | undefined {
  const parts = [];
  if (ended.length > 0) parts.push(`background process ended (${names(ended)})`);
  if (left.length > 0) parts.push(`process that could not be ended (${names(left)})`);
  return parts.join("; ") || undefined;
}

function names(members: Member[]): string {
  const shown = members.slice(0, 5).map(({ pid, command }) => `pid ${pid}${command && `: ${command}`}`);
  return members.length > 5 ? `${shown.join("; ")}; and ${members.length - 5} more` : shown.join("; ");
}
