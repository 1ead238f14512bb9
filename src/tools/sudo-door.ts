/** What sudo wants before it runs something as root: nothing, a password, or it will not do it at all. */
import { join } from "node:path";
import { run } from "../exec/process.ts";
import type { SudoDoor } from "./hands.ts";

interface Refusal {
  /** Why sudo will not do it, whatever it is given. */
  refused: string;
}

export interface SudoOptions {
  /** Absolute path of sudo. */
  program: string;
  /** A folder for what sudo may have to say at length. */
  tmp: string;
}

/** Where sudo is, on the PATH of the server and in the usual places: it must never be found by a session's own PATH. */
export function findSudo(): string | undefined {
  const path = `${process.env.PATH ?? ""}:/usr/bin:/usr/local/bin:/run/wrappers/bin`;
  return Bun.which("sudo", { PATH: path }) ?? undefined;
}

export function sudoHere(options: SudoOptions): SudoDoor {
  const { program } = options;
  return {
    async probe(signal) {
      const probe = await probeSudo(options, signal);
      return typeof probe === "string" ? { program, password: probe === "password" } : probe;
    },
    check: (password, signal) => checkPassword(options, password, signal),
  };
}

/** Milliseconds: a PAM module that asks a server elsewhere may take its time. */
const patience = 60_000;

/** Whether sudo wants a password, found out by having it run the shell that will run the tool, with nothing to do. */
export async function probeSudo(
  options: SudoOptions,
  signal: AbortSignal,
): Promise<"free" | "password" | Refusal> {
  const { code, text } = await ask(options, ["-n", "-k", "--", "/bin/sh", "-c", ":"], "", signal);
  return code === 0 ? "free" : (explain(text) ?? "password");
}

/**
 * Whether the password is right, without running anything. A wrong one would otherwise be noticed only while the tool's own input stands
 * behind it in the same pipe.
 */
export async function checkPassword(
  options: SudoOptions,
  password: Uint8Array,
  signal: AbortSignal,
): Promise<"right" | "wrong" | Refusal> {
  const line = Buffer.concat([password, newline]);
  try {
    const { code, text } = await ask(options, ["-S", "-p", "", "-k", "-v"], line, signal);
    if (code === 0) return "right";
    return explain(text) ?? "wrong";
  } finally {
    line.fill(0);
  }
}

const newline = Uint8Array.of(10);

/** Undefined: nothing but the password is wrong or missing. */
function explain(text: string): Refusal | undefined {
  if (/must have a tty/i.test(text))
    return refused(
      "sudoers has `requiretty`, and tools have no terminal: `Defaults:USER !requiretty` lifts it",
    );
  if (/no new privileges/i.test(text))
    return refused(
      "the server itself runs with no-new-privileges (a container or systemd unit), where sudo cannot work",
    );
  if (/not in the sudoers|may not run sudo|is not allowed/i.test(text))
    return refused(`this user may not use sudo (${firstLine(text)})`);
  if (/password is required|try again|incorrect password|no password was provided/i.test(text))
    return undefined;
  return refused(`sudo cannot be used: ${firstLine(text) || "it said nothing"}`);
}

function refused(reason: string): Refusal {
  return { refused: reason };
}

function firstLine(text: string): string {
  return text
    .replace("[stderr]\n", "")
    .trim()
    .split("\n")[0]!
    .replace(/^sudo: /, "");
}

/** Runs sudo with messages in English, since they are all there is to tell one refusal from the other. */
function ask({ program, tmp }: SudoOptions, args: string[], stdin: string | Uint8Array, signal: AbortSignal) {
  return run({
    argv: [program, ...args],
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    stdin,
    timeout: patience,
    signal,
    spill: join(tmp, "output", "sudo.txt"),
  });
}
