/** `sandbox-exec`: becomes a program that Landlock and seccomp confine; takes landrun's flags. */
import { accessSync, constants, existsSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { systemCall } from "../exec/libc.ts";
import { toFault } from "../fault.ts";
import {
  confiningSteps,
  type Kernel,
  logFlags,
  type Restrictions,
  shortfalls,
  withLibraries,
} from "../sandbox/landrun.ts";
import { become } from "../sandbox/launch/become.ts";
import { must, type Step } from "../sandbox/launch/step.ts";
import { numberOf, thisMachine } from "../sandbox/launch/syscalls.ts";
import { command, type Options, type Values, WrongUse } from "./program.ts";

const paths = (help: string) => ({ type: "string", value: "PATH,…", multiple: true, help }) as const;
const ports = (help: string) => ({ type: "string", value: "PORT,…", multiple: true, help }) as const;
const on = (help: string) => ({ type: "boolean", help }) as const;

const options = {
  ro: paths("may be read"),
  rox: paths("may be read and executed"),
  rw: paths("may be read, written, created, renamed and removed"),
  rwx: paths("all of it"),
  unix: paths("sockets that may be connected to"),
  "bind-tcp": ports("TCP ports to listen at"),
  "connect-tcp": ports("TCP ports to connect to"),
  env: {
    type: "string",
    value: "KEY[=VALUE]",
    multiple: true,
    help: "a variable; without any the environment is empty",
  },
  "add-exec": on("grant the program itself, to be executed"),
  ldd: on("grant its loader and libraries, to be executed"),
  "ignore-missing": on("go on without paths that do not exist"),
  "best-effort": on("go on where the kernel cannot enforce everything, and say what is missing"),
  "unrestricted-filesystem": on("leave the file system alone"),
  "unrestricted-network": on("leave the network alone"),
  "unrestricted-scoped": on("leave signals and abstract sockets alone"),
  "log-level": { type: "string", value: "LEVEL", help: "error, info or debug: say what is granted" },
  "log-disable-originating": on("do not log what this program is denied"),
  "log-enable-subprocesses": on("log what programs that it executes are denied"),
  "log-disable-subdomains": on("do not log what sandboxes within this one deny"),
} as const satisfies Options;

const levels = ["error", "info", "debug"];

/** As env(1) has them: the sandbox or the program could not be started; the program was not found. */
const notStarted = 126;
const notFound = 127;

export const sandboxExec = command({
  usage: "[OPTIONS] [--] PROGRAM [ARG …]",
  about:
    "Becomes PROGRAM, which may do nothing but what is granted: Landlock confines it, and seccomp where Landlock cannot. The options are\n" +
    "those of landrun. Lists may be repeated and hold several values with commas between. The exit status is that of the program; 126 if\n" +
    "it or the sandbox could not be started, 127 if it was not found.",
  options,
  words: [1, Number.POSITIVE_INFINITY],
  ownWords: true,
  async run({ values, words: [name, ...args] }) {
    const level = values["log-level"] ?? "error";
    if (!levels.includes(level)) throw new WrongUse(`--log-level must be one of ${levels.join(", ")}`);
    const env = environment(values.env ?? []);
    const restrictions = restrictionsOf(values);
    const program = lookUp(name!);
    if (typeof program === "number") {
      say(program === notFound ? `${name} is not found` : `${name} is no program that can be executed`);
      return program;
    }
    try {
      if (values["add-exec"]) restrictions.filesystem.rox.push(program);
      const granted = values.ldd ? withLibraries(restrictions, program, libraryPath(env)) : restrictions;
      const kernel = thisKernel();
      if (level !== "error") say(`Landlock ABI ${kernel.landlock}, seccomp ${kernel.seccomp ? "on" : "off"}`);
      if (level === "debug") for (const line of described(granted, env)) say(line);
      const lacking = shortfalls(granted, kernel).join("; ");
      if (lacking && !values["best-effort"]) {
        say(`the program could, though it should not, ${lacking}; --best-effort starts it all the same`);
        return notStarted;
      }
      if (lacking) say(`the program can, though it should not, ${lacking}`);
      const steps = [...confiningSteps(granted, kernel), executionOf(program)];
      become(steps.map(withStatus), kernel.machine, [program, ...args], env);
    } catch (error) {
      say(toFault(error).message);
      return notStarted;
    }
  },
});

/** At once: nothing of this process is there a moment later. */
function say(text: string): void {
  writeSync(2, `sandbox-exec: ${text}\n`);
}

function executionOf(program: string): Step {
  return must(`run ${program}: is it granted to be executed, with its loader (--add-exec, --ldd)?`, "exec");
}

function withStatus(step: Step): Step {
  return { ...step, status: notStarted };
}

function restrictionsOf(values: Values<typeof options>): Restrictions {
  const list = (key: "ro" | "rox" | "rw" | "rwx" | "unix") => separated(values[key]);
  const flag = (key: keyof typeof options, bit: number) => (values[key] ? bit : 0);
  return {
    filesystem: { ro: list("ro"), rox: list("rox"), rw: list("rw"), rwx: list("rwx") },
    unix: list("unix"),
    bind: portsOf("bind-tcp", values["bind-tcp"]),
    connect: portsOf("connect-tcp", values["connect-tcp"]),
    unrestricted: {
      filesystem: values["unrestricted-filesystem"] ?? false,
      network: values["unrestricted-network"] ?? false,
      scoped: values["unrestricted-scoped"] ?? false,
    },
    ignoreMissing: values["ignore-missing"] ?? false,
    log:
      flag("log-disable-originating", logFlags.originatingOff) |
      flag("log-enable-subprocesses", logFlags.subprocessesOn) |
      flag("log-disable-subdomains", logFlags.subdomainsOff),
  };
}

function separated(lists: readonly string[] = []): string[] {
  return lists.flatMap((list) => list.split(",")).filter(Boolean);
}

function portsOf(option: string, lists: readonly string[] | undefined): number[] {
  return separated(lists).map((text) => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    if (!(port <= 65535)) throw new WrongUse(`--${option} ${text}: a port is a number from 0 to 65535`);
    return port;
  });
}

/** A name without a value stands for the caller's variable, if there is one. */
function environment(wanted: readonly string[]): string[] {
  return wanted.flatMap((text) => {
    if (text.startsWith("=") || text === "") throw new WrongUse(`--env ${text}: which variable?`);
    if (text.includes("=")) return [text];
    const value = process.env[text];
    return value === undefined ? [] : [`${text}=${value}`];
  });
}

function libraryPath(env: readonly string[]): string[] {
  const name = "LD_LIBRARY_PATH=";
  const given = env.findLast((text) => text.startsWith(name))?.slice(name.length) ?? "";
  return given.split(/[:;]/).filter(Boolean);
}

/** A path, or the exit status that says why there is none. What is found in the working folder by its name alone is not meant. */
function lookUp(name: string): string | number {
  const folders = (process.env.PATH ?? "").split(":").filter((folder) => folder.startsWith("/"));
  const candidates = name.includes("/") ? [name] : folders.map((folder) => join(folder, name));
  const there = candidates.filter(existsSync);
  return there.find(canExecute) ?? (there.length > 0 ? notStarted : notFound);
}

function canExecute(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const LANDLOCK_CREATE_RULESET_VERSION = 1;
const PR_GET_SECCOMP = 21;

function thisKernel(): Kernel {
  const machine = thisMachine();
  const abi = systemCall(numberOf("landlock_create_ruleset", machine), 0, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return {
    machine,
    landlock: Math.max(0, abi),
    seccomp: systemCall(numberOf("prctl", machine), PR_GET_SECCOMP, 0, 0) >= 0,
  };
}

function described({ filesystem, unix, bind, connect }: Restrictions, env: readonly string[]): string[] {
  const granted: [string, (string | number)[]][] = [
    ...Object.entries(filesystem),
    ["unix", unix],
    ["bind-tcp", bind],
    ["connect-tcp", connect],
    // Values may be secrets.
    ["env", env.map((text) => text.split("=", 1)[0]!)],
  ];
  return granted.flatMap(([what, values]) => values.map((value) => `--${what} ${value}`));
}
