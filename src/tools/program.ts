/** What is executed for a tool: the file itself, or for a TypeScript tool this very binary. */
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { compiled, ownCommand, ownProgram } from "../exec/own.ts";
import { Fault, toFault } from "../fault.ts";

/**
 * argv of a tool.
 * @throws Fault if the file is no program, or names an interpreter that does not exist: the shell's words for that are misleading
 */
export function programOf(path: string): string[] {
  const start = firstBytes(path);
  const interpreter = /^#!\s*(\S+)\s*([^\n]*)/.exec(start);
  if (!interpreter) {
    if (start.startsWith("\x7fELF")) return [path];
    throw new Fault(
      "invalid",
      `${path} is neither a program nor a script: its first line should be like #!/bin/sh`,
    );
  }
  const [line, name, rest] = interpreter;
  if (line.endsWith("\r"))
    throw new Fault("invalid", `${path} has Windows line ends (CRLF), which no interpreter line may have`);
  if (/(?:^|\/)ollie-run$/.test(name!) || /^ollie-run\b/.test(rest!)) return runner(path);
  if (!existsSync(name!))
    throw new Fault("missing", `${path} names ${name} in its first line, which does not exist`);
  return [path];
}

/** The binary runs the file in a process of its own; from a checkout, Bun does, kept from the cwd's bunfig.toml and .env. */
function runner(path: string): string[] {
  return compiled
    ? [...ownCommand(), "ollie-run", path]
    : [ownProgram(), "--config=/dev/null", "--no-env-file", join(import.meta.dir, "ollie-run.ts"), path];
}

function firstBytes(path: string): string {
  const bytes = new Uint8Array(256);
  try {
    const fd = openSync(path, "r");
    try {
      return Buffer.from(bytes.subarray(0, readSync(fd, bytes))).toString("latin1");
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw toFault(error, "the tool's program cannot be read");
  }
}
