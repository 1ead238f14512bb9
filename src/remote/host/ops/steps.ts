/** Steps that are programs, or texts for an interpreter: what is started for them. */
import { mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Launch } from "../../../exec/launch.ts";
import { plainLaunch } from "../../../exec/launch.ts";
import { toFault } from "../../../fault.ts";
import type { Cage } from "../../../sandbox/cage.ts";
import { coded } from "../../protocol/errors.ts";
import type { Step } from "../../protocol/operation.ts";
import type { Confinement } from "./confinement.ts";
import type { OperationsGround } from "./engine.ts";

export type RawStep = Exclude<Step, { tool: string }>;

export interface RawExecution {
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  stdin: string;
  launch: Launch;
  cage?: Cage;
  /** To be called when the program has ended. */
  clear(): void;
}

const interpreters = {
  sh: { program: "sh", option: "-c" },
  bash: { program: "bash", option: "-c" },
  python: { program: "python3", option: "-c" },
  perl: { program: "perl", option: "-e" },
} as const;

/** Bytes of a text that can be an argument: 128 KiB is what Linux allows (MAX_ARG_STRLEN, execve(2)). */
const argumentLimit = 100_000;

/** Before anything is run: everything that is refused is refused here. @throws CodedFault */
export function checkRaw(step: RawStep, { policy, cwd }: OperationsGround): void {
  policy.checkStep(step);
  const folder = folderOf(step, cwd);
  policy.checkProgram("code" in step ? interpreters[step.lang].program : step.program, folder);
  policy.environmentFor("code" in step ? {} : step.env);
}

/**
 * @param free somebody has let it out of the sandbox
 * @throws Fault where there can be no sandbox, or the program is gone
 */
export function executionOf(
  step: RawStep,
  ground: OperationsGround,
  confinement: Confinement,
  { opId, sandbox, free, outlives }: { opId: string; sandbox: string; free: boolean; outlives: boolean },
): RawExecution {
  const { policy } = ground;
  const cwd = folderOf(step, ground.cwd);
  const cage = free ? undefined : confinement.cage({ name: sandbox, cwd, listener: "steps" });
  const scratch = join(confinement.tmp, "tmp");
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const launch = cage ? cage.launch({ outlives }) : plainLaunch();
  const env = {
    ...sessionVariables(ground),
    ...policy.environmentFor("code" in step ? {} : step.env),
    TMPDIR: scratch,
    PWD: cwd,
  };
  if (!("code" in step)) {
    const { path } = policy.checkProgram(step.program, cwd);
    const argv = [path, ...step.args];
    return { argv, cwd, env, stdin: step.stdin ?? "", launch, cage, clear: () => {} };
  }
  const { program, option } = interpreters[step.lang];
  const { path } = policy.checkProgram(program, cwd);
  const text = textOf(step.code, join(scratch, `step-${opId}`));
  return {
    argv: text.file === undefined ? [path, option, step.code] : [path, text.file],
    cwd,
    env,
    stdin: "",
    launch,
    cage,
    clear: text.clear,
  };
}

/** As an argument, or a file where it is too long for that. */
function textOf(code: string, file: string): { file?: string; clear(): void } {
  if (Buffer.byteLength(code) <= argumentLimit) return { clear: () => {} };
  writeFileSync(file, code, { mode: 0o600, flag: "wx" });
  return { file, clear: () => rmSync(file, { force: true }) };
}

/** Below the working folder: the sandbox is made around it. @throws CodedFault */
function folderOf(step: RawStep, top: string): string {
  const asked = "cwd" in step ? step.cwd : undefined;
  if (asked === undefined) return top;
  try {
    const real = realpathSync(resolve(top, asked));
    if (real === top || real.startsWith(top === "/" ? "/" : `${top}/`)) return real;
  } catch (error) {
    throw coded("op.cwd", `the working folder ${asked} cannot be used: ${toFault(error).message}`);
  }
  throw coded("op.cwd", `the working folder ${asked} lies outside of the session's, ${top}`);
}

/** The client's env file, as far as the policy lets requests set variables. */
function sessionVariables({ policy, settings }: OperationsGround): Record<string, string> {
  const { allowed_env: allowed } = policy.policy;
  const entries = Object.entries(settings().env);
  return Object.fromEntries(entries.filter(([name]) => allowed.includes("*") || allowed.includes(name)));
}
