/** Starting a program so that it and all that it starts can be found and ended, also by those who come after this process's death. */
import { accessSync, closeSync, constants, statSync } from "node:fs";
import { Fault, toFault } from "../fault.ts";
import { passedOn, unattended } from "./env.ts";
import { type Family, markName, newMark, pids } from "./family.ts";
import { ensureKeeper } from "./keeper.ts";
import { type Launch, plainLaunch } from "./launch.ts";
import { pipe } from "./libc.ts";
import { tagged } from "./tag.ts";

export interface SpawnOptions {
  /** argv[0] is a path; nothing is looked up and no shell interprets anything. */
  argv: string[];
  cwd: string;
  /** The whole environment of the child, on top of `unattended` (env.ts); nothing else is inherited. */
  env: Record<string, string>;
  /** How the process becomes the program; unset = `plainLaunch()`. */
  launch?: Launch;
  stdin: Uint8Array | "ignore" | "pipe";
  /** Descriptors, which stay the caller's. */
  stdout: number;
  stderr: number;
}

export interface Spawned {
  child: Bun.Subprocess;
  family: Family;
}

/**
 * The program gets a session and process group of its own and no terminal.
 * @throws Fault if it cannot be started
 */
export function spawnProgram(options: SpawnOptions): Spawned {
  const launch = options.launch ?? plainLaunch();
  try {
    mustBeExecutable(options.argv[0]!);
    ensureKeeper();
    return spawnIn(launch, options);
  } finally {
    launch.close?.();
  }
}

/** As `spawnProgram`, with a pipe for each of its outputs: `stdout` and `stderr` are the reading ends, to be closed by the caller. */
export function spawnPiped(
  options: Omit<SpawnOptions, "stdout" | "stderr">,
): Spawned & { stdout: number; stderr: number } {
  const pipes: ReturnType<typeof pipe>[] = [];
  try {
    pipes.push(pipe());
    pipes.push(pipe());
    const [out, err] = pipes as [ReturnType<typeof pipe>, ReturnType<typeof pipe>];
    const spawned = spawnProgram({ ...options, stdout: out.write, stderr: err.write });
    return { ...spawned, stdout: out.read, stderr: err.read };
  } catch (error) {
    for (const { read } of pipes) closeSync(read);
    throw error;
  } finally {
    for (const { write } of pipes) closeSync(write);
  }
}

function spawnIn(launch: Launch, options: SpawnOptions): Spawned {
  const { mark, value } = newMark();
  const env = { ...unattended, ...passedOn(options.env, options.argv[0]!), [markName]: value };
  const { cwd, stdin, stdout, stderr } = options;
  const strangers = pids();
  try {
    const { tag, result: child } = tagged(() =>
      Bun.spawn([...launch.argv, ...options.argv], { cwd, env, stdin, stdout, stderr, detached: true }),
    );
    return { child, family: { leader: child.pid, mark, tag, strangers } };
  } catch (error) {
    throw cannotStart(options, error);
  }
}

function mustBeExecutable(path: string): void {
  try {
    if (!statSync(path).isFile())
      throw new Fault("invalid", `${path} is not a program but a directory or a special file`);
    accessSync(path, constants.X_OK);
  } catch (error) {
    throw toFault(error, `cannot run ${path}`);
  }
}

function cannotStart(options: SpawnOptions, error: unknown): Fault {
  const code = (error as { code?: string }).code;
  if (code === "E2BIG")
    return new Fault("full", "the environment of the program is larger than the system allows", {
      cause: error,
    });
  try {
    if (!statSync(options.cwd).isDirectory())
      return new Fault("invalid", `the working folder ${options.cwd} is not a directory`);
  } catch (reason) {
    return toFault(reason, "the working folder cannot be used");
  }
  return toFault(error, `cannot run ${options.argv[0]}`);
}
