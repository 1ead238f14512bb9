/**
 * The trust anchor: an ollie-remote that the operator of a host has installed, and that alone decides which programs are launched there. What it
 * says on stdout is the grammar of `src/remote/bootstrap/bootstrap.ts`.
 */
import { spawnSync } from "node:child_process";
import { machine } from "node:os";
import type { Environment } from "../../../config/paths.ts";
import { passedOn } from "../../../exec/env.ts";
import { execve } from "../../../exec/libc.ts";
import { ownCommand } from "../../../exec/own.ts";
import { CodedFault } from "../../../fault.ts";
import { readHardPolicies } from "../../policy/hard-policy.ts";
import { coded } from "../../protocol/errors.ts";
import { baseFolder, rootFolder } from "../own-folder.ts";
import { receive } from "./install.ts";
import { Programs } from "./programs.ts";
import { Stamps } from "./stamps.ts";
import { type AnchorCall, parseCall, splitCommand } from "./words.ts";

export interface AnchorIo {
  environment: Environment;
  input: AsyncIterable<Uint8Array>;
  /** Writes all of it before it returns: the process may become another one right after. */
  say(text: string): void;
  /** Becomes the program; returns where that failed. */
  become(argv: string[], environment: Record<string, string>): void;
}

/** What the operator has fixed: in the command line, or in authorized_keys before what a client may say. */
export interface Fixed {
  root?: string;
  policy?: string;
}

/**
 * `check`, `install` and `launch` of a command line.
 * @returns the exit status
 */
export async function anchor(words: readonly string[], io: AnchorIo, fixed: Fixed = {}): Promise<number> {
  // Who is to be told that the words make no sense hears it behind the nonce, if there is one.
  const nonce = /^[0-9a-f]{8,64}$/.test(words[2] ?? "") ? words[2]! : "-";
  const say = (...said: string[]) =>
    io.say(`\nOLLIE1 ${nonce} ${said.join(" ").replace(/[\0-\x1f]/g, " ")}\n`);
  try {
    const call = parseCall(words);
    const options = { ...call.serve, ...fixed };
    refuseOther(call, fixed);
    await new Anchor(io, call, options, say).run();
    return 0;
  } catch (error) {
    const code = error instanceof CodedFault ? error.code.replace(/^boot\./, "").replace(".", "_") : "failed";
    say("fail", code, (error as Error).message);
    return 1;
  }
}

/**
 * The forced command of a key, `command="ollie-remote bootstrap --forced"`: the words are those of SSH_ORIGINAL_COMMAND, whose first is the name
 * that the client has for the anchor.
 */
export async function forcedAnchor(io: AnchorIo, fixed: Fixed): Promise<number> {
  const command = io.environment.SSH_ORIGINAL_COMMAND;
  if (!command) {
    io.say("this key starts ollie-remote and nothing else: there is no shell here\n");
    return 1;
  }
  let words: string[];
  try {
    words = splitCommand(command).slice(1);
  } catch {
    io.say("this key starts ollie-remote by its trust anchor: set bootstrap_command in remotes.yaml\n");
    return 1;
  }
  return anchor(words, io, fixed);
}

/** With what the operator has fixed, a client cannot choose another policy or folder. */
function refuseOther({ serve }: AnchorCall, fixed: Fixed): void {
  for (const key of ["root", "policy"] as const)
    if (serve[key] !== undefined && fixed[key] !== undefined && serve[key] !== fixed[key])
      throw coded("boot.forced", `--${key} is ${fixed[key]} for this key`, {
        hint: "leave it out of the profile",
      });
}

class Anchor {
  readonly #programs: Programs;

  constructor(
    private readonly io: AnchorIo,
    private readonly call: AnchorCall,
    private readonly options: Fixed,
    private readonly say: (...words: string[]) => void,
  ) {
    const { environment } = io;
    const base = baseFolder(environment);
    const { publisherKeys } = readHardPolicies(environment, options.policy);
    this.#programs = new Programs(base, new Stamps(rootFolder(environment, base)), publisherKeys);
  }

  async run(): Promise<void> {
    const { step, digest, upload } = this.call;
    if (step === "install") return this.#install(upload!);
    const there = (await this.#programs.has(digest)) && this.#programs.signed(digest);
    if (step === "check") {
      if (there) this.say("hit", digest);
      else this.say("miss", `arch=${machine()}`, "codecs=zstd,gzip");
      return;
    }
    if (!there) throw coded("boot.hash", `no program ${digest} is installed here that may run`);
    this.say("hit", digest);
    this.#launch();
  }

  async #install(upload: NonNullable<AnchorCall["upload"]>): Promise<void> {
    const { digest } = this.call;
    await receive(this.#programs, digest, upload, this.io.input, (path) => this.#test(path));
    this.say("installed", digest);
    this.#programs.sweep(digest);
  }

  /** A program that runs here says what it is; a Bun without its program says something else, and a wrong processor nothing. */
  #test(path: string): void {
    const [program, ...args] = this.#argv(path, "--ok");
    const env = { PATH: "/usr/bin:/bin" };
    const { status, stdout, error } = spawnSync(program!, args, { env, timeout: 30_000, encoding: "utf8" });
    if (status === 0 && /^ollie-remote \S+ \S+/.test(stdout)) return;
    if (status === 126 || (error as NodeJS.ErrnoException | undefined)?.code === "EACCES")
      throw coded("boot.noexec", `programs may not run in ${this.#programs.folder}`);
    throw coded(
      "boot.selftest",
      `the program does not run here: ${error?.message ?? `exit status ${status}`}`,
    );
  }

  #launch(): void {
    const { root, policy } = this.options;
    const path = this.#programs.path(this.call.digest);
    const options = [...(root ? ["--root", root] : []), ...(policy ? ["--policy", policy] : [])];
    const environment = Object.entries(this.io.environment).filter(([, value]) => value !== undefined);
    this.io.become(
      this.#argv(path, "serve", ...options),
      passedOn(Object.fromEntries(environment) as Record<string, string>, path),
    );
    throw coded("boot.noexec", `${path} cannot be started`);
  }

  /** Where this program needs a loader of its own, so does that one. */
  #argv(path: string, ...args: string[]): string[] {
    return [...ownCommand().slice(0, -1), path, ...args];
  }
}

export function become(argv: string[], environment: Record<string, string>): void {
  execve(
    argv[0]!,
    argv,
    Object.entries(environment).map(([name, value]) => `${name}=${value}`),
  );
}
