/** Starting a job: see `startJob`. */

import { join } from "node:path";
import { Fault } from "../../fault.ts";
import { markName } from "../family.ts";
import type { Launch } from "../launch.ts";
import { compiled, ownExactCommand, ownProgram } from "../own.ts";
import type { SupervisorAnswer, SupervisorInput } from "./supervisor.ts";
import { identify, type Supervisor } from "./supervisor-process.ts";
import { lookNow } from "./watch.ts";

export interface JobProgram {
  /** argv[0] is a path. */
  argv: string[];
  cwd: string;
  /** As in `RunOptions`. */
  env: Record<string, string>;
  stdin: string;
  launch: Launch;
}

/** Milliseconds in which a supervisor says that the program runs. */
const patience = 20_000;

/** Of a binary this very one, also when another has been installed under its name meanwhile. */
const supervisorCommand = compiled
  ? [...ownExactCommand(), "job-supervisor"]
  : [ownProgram(), "--config=/dev/null", "--no-env-file", join(import.meta.dir, "supervisor-main.ts")];

/**
 * Starts a program under a supervisor of its own, which works in `folder` (see folder.ts). Resolves when the program runs.
 *
 * @param register writes down, durably, who supervises the job. It has done so before there is anything to lose: the supervisor
 * starts the program after that, and never where this process has ended meanwhile.
 * @throws Fault if it cannot be started; then nothing of it runs
 */
export async function startJob(
  program: JobProgram,
  folder: string,
  register: (supervisor: Supervisor) => Promise<void>,
): Promise<void> {
  const { argv, cwd, env, stdin, launch } = program;
  const child = Bun.spawn(supervisorCommand, {
    argv0: "olliesrv",
    cwd: folder,
    // Not this server's mark, which would end the job with it; but those of a call that this server itself runs in.
    env: process.env[markName] ? { [markName]: process.env[markName] } : {},
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
    detached: true,
  });
  child.unref();
  child.exited.then(lookNow);
  try {
    const supervisor = identify(child.pid);
    if (!supervisor) throw new Fault("io", "the job's supervisor has ended at once");
    await register(supervisor);
    const input: SupervisorInput = { argv, launch: launch.argv, cwd, env, stdin };
    child.stdin.write(JSON.stringify(input));
    await child.stdin.end();
    const { fault } = await answerOf(child.stdout);
    if (fault) throw new Fault(fault.kind, fault.message);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    launch.close?.();
  }
}

async function answerOf(stdout: ReadableStream<Uint8Array>): Promise<SupervisorAnswer> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(reject, patience, new Fault("timeout", "the job's supervisor does not answer"));
  try {
    for (let text = ""; ; ) {
      const { value, done } = await Promise.race([reader.read(), late]);
      if (done) throw new Fault("io", "the job's supervisor has ended at once");
      text += decoder.decode(value, { stream: true });
      if (text.endsWith("\n")) return JSON.parse(text) as SupervisorAnswer;
    }
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}
