/** What a program expects of the process it starts in, and what it must not have. */
import { readFileSync } from "node:fs";
import { attempt, equals, must, type Step } from "./step.ts";
import { AT_FDCWD, O_WRONLY } from "./syscalls.ts";

const RLIMIT_CORE = 4;
const RLIMIT_NPROC = 6;
const RLIMIT_NOFILE = 7;
const RLIMIT_AS = 9;
const SIGPIPE = 13;
const SIGXFSZ = 25;
const SIGKILL = 9;
const PDEATHSIG = 1;
const CAPBSET_DROP = 24;
/** What `select(2)` survives. Bun has raised its own soft limit beyond, and children would inherit that. */
const openFiles = 1024n;
/** Linux may have more capabilities one day; to drop one that does not exist fails and does no harm. */
const capabilities = 64;

export interface Limits {
  /** Bytes of address space of each process; unset = as the server has it. */
  memory?: number;
  /** Processes and threads of this user, where they are counted for the program alone. */
  processes?: number;
}

/** The first steps, which undo what a program would inherit from Bun: descriptors above 2, ignored signals. */
export function inheritedSteps(): Step[] {
  return [
    must("close descriptors", "close_range", 3, 0xffffffff, 0),
    // Bun ignores these two, and what is ignored stays so through an exec.
    must("take SIGPIPE", "rt_sigaction", SIGPIPE, new Uint8Array(32), 0, 8),
    must("take SIGXFSZ", "rt_sigaction", SIGXFSZ, new Uint8Array(32), 0, 8),
  ];
}

/** The same of its limit of descriptors; after the steps that need more of them. */
export function limitOpenFiles(): Step {
  const hard = hardLimit("Max open files");
  return limitStep("limit open files", RLIMIT_NOFILE, openFiles < hard ? openFiles : hard, hard);
}

/** `inheritedSteps`, and the limits of a call. */
export function processSteps({ memory, processes }: Limits): Step[] {
  const steps = [
    ...inheritedSteps(),
    // Whoever runs out of memory: the kernel shall pick the program and not the server.
    attempt("open oom_score_adj", "openat", AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY, 0),
    attempt("write oom_score_adj", "write", 3, "500", 3),
    attempt("close oom_score_adj", "close", 3),
    limitStep("forbid core dumps", RLIMIT_CORE, 0n, 0n),
  ];
  if (memory) steps.push(limitStep("limit memory", RLIMIT_AS, BigInt(memory), BigInt(memory)));
  if (processes) steps.push(limitStep("limit processes", RLIMIT_NPROC, BigInt(processes), BigInt(processes)));
  return steps;
}

function limitStep(label: string, resource: number, soft: bigint, hard: bigint): Step {
  return must(label, "prlimit64", 0, resource, limits(soft, hard), 0);
}

/** Of a user's capabilities in the system's own user namespace: those that let root work on files of others within its cage. */
const keptByRoot = [0, 1, 3, 4, 5, 6, 7]; // CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID

/** Gives up capabilities; root keeps those that make its own work on files possible. */
export function capabilitySteps(root: boolean): Step[] {
  const kept = root ? keptByRoot.reduce((mask, capability) => mask | (1n << BigInt(capability)), 0n) : 0n;
  const mask = kept & permitted();
  const steps: Step[] = [];
  for (let capability = 0; capability < capabilities; capability++)
    if ((mask & (1n << BigInt(capability))) === 0n)
      steps.push(attempt("drop a capability", "prctl", CAPBSET_DROP, capability, 0, 0, 0));
  steps.push(must("give up capabilities", "capset", capabilityHeader(), capabilitySets(mask)));
  return steps;
}

/** Ends the program when `parent` does. To be done after all that changes credentials, which undoes it. */
export function dieWith(parent: number): Step[] {
  return [
    must("follow the server's end", "prctl", PDEATHSIG, SIGKILL, 0, 0, 0),
    equals(parent, "go on: the server has ended", "getppid"),
  ];
}

function limits(soft: bigint, hard: bigint): Uint8Array {
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, soft, true);
  view.setBigUint64(8, hard, true);
  return new Uint8Array(view.buffer);
}

const unlimited = 2n ** 64n - 1n;

/** Of this process, which is what its children inherit. `proc_pid_limits(5)`. */
function hardLimit(name: string): bigint {
  const line = readFileSync("/proc/self/limits", "utf8")
    .split("\n")
    .find((one) => one.startsWith(name));
  const value = line?.slice(name.length).trim().split(/\s+/)[1];
  return value === undefined || value === "unlimited" ? unlimited : BigInt(value);
}

function permitted(): bigint {
  const hex = /^CapPrm:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return BigInt(`0x${hex ?? "0"}`);
}

/** `struct __user_cap_header_struct`: version 3, this process. */
function capabilityHeader(): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setUint32(0, 0x20080522, true);
  return new Uint8Array(view.buffer);
}

/** Two of `struct __user_cap_data_struct`: lower and upper halves of effective, permitted, inheritable. */
function capabilitySets(mask: bigint): Uint8Array {
  const view = new DataView(new ArrayBuffer(24));
  for (const half of [0, 1]) {
    const word = Number((mask >> BigInt(32 * half)) & 0xffffffffn);
    view.setUint32(half * 12, word, true);
    view.setUint32(half * 12 + 4, word, true);
  }
  return new Uint8Array(view.buffer);
}
