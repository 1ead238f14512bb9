/** Starting and ending a server in the background. */

import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import type { Config } from "../../config/config.ts";
import { compiled } from "../../config/version.ts";
import { ownProgram } from "../../exec/own.ts";
import { Fault, toFault } from "../../fault.ts";
import { dial } from "../../ninep/dial.ts";
import { findInstance, type Instance } from "./instance.ts";
import { logFile, ownEnvironment } from "./options.ts";

/** Milliseconds. */
const startLimit = 30_000;
const stopLimit = 10_000;
const poll = 10;
/** Bytes of log from which a start begins a new one; the old one stays beside it. */
const logLimit = 10 * 1024 * 1024;

/**
 * Starts a server in a session of its own and waits until it answers.
 * @param args options of `fgstart`
 * @throws Fault with the reason that the server gave
 */
export async function startServer(config: Config, args: readonly string[]): Promise<Instance> {
  const { state } = config.paths;
  makeState(state);
  const log = logFile(config);
  const from = turnLog(log);
  const fd = openSync(log, "a", 0o600);
  const program = compiled ? [ownProgram()] : [ownProgram(), process.argv[1]!];
  const child = Bun.spawn([...program, "fgstart", ...args], {
    detached: true,
    // The keys are not in `process.env` any more, and argv is for everybody to read.
    env: ownEnvironment(),
    stdio: ["ignore", fd, fd],
  });
  closeSync(fd);
  child.unref();
  for (const end = Date.now() + startLimit; Date.now() < end; await Bun.sleep(poll)) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Fault("unavailable", lastWords(log, from));
    const instance = findInstance(state);
    if (instance?.pid !== child.pid || !instance.addresses[0]) continue;
    // What a server with the same pid has left names a socket that is not there yet.
    const client = await dial(instance.addresses[0]).catch(() => undefined);
    if (!client) continue;
    client.close();
    return instance;
  }
  child.kill();
  throw new Fault("timeout", `the server did not answer within ${startLimit / 1000} s, see ${log}`);
}

function makeState(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw toFault(
      error,
      `the state folder ${folder} cannot be made (OLLIE_STATE_PATH or --state names another)`,
    );
  }
}

/** Ends the server of a state folder and waits until it is gone. Returns its pid, undefined where none ran. */
export async function stopServer(state: string): Promise<number | undefined> {
  const instance = findInstance(state);
  if (!instance) return undefined;
  if (!tell(instance.pid)) return instance.pid;
  for (const end = Date.now() + stopLimit; findInstance(state)?.pid === instance.pid; await Bun.sleep(poll)) {
    if (Date.now() > end)
      throw new Fault("timeout", `the server (pid ${instance.pid}) does not end: kill -9 ${instance.pid}`);
  }
  return instance.pid;
}

/** False if the process has ended by itself meanwhile. */
function tell(pid: number): boolean {
  try {
    return process.kill(pid, "SIGTERM");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw new Fault("denied", `the server (pid ${pid}) cannot be ended: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** Returns the length of the log, before which nothing is of this start. */
function turnLog(log: string): number {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size < logLimit) return size;
  renameSync(log, `${log}.1`);
  return 0;
}

/** The sentence with which a command that fails ends, without its name in front. */
function lastWords(log: string, from: number): string {
  const text = readFileSync(log).subarray(from).toString();
  const sentences = [...text.matchAll(/^olliesrv: (.*)$/gm)];
  return sentences.at(-1)?.[1] ?? `the server ended at once, see ${log}`;
}
