/** Launching in place: this very process becomes the confined program, and nothing stays behind. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execve } from "../../exec/libc.ts";
import { Fault } from "../../fault.ts";
import { buildImage } from "./image.ts";
import { attempt, type Step } from "./step.ts";
import { AT_FDCWD, type Machine } from "./syscalls.ts";

const AT_REMOVEDIR = 0x200;

/**
 * Does not return. The image removes itself as its first step.
 * @param argv of the program: a path, then its arguments
 * @param env `NAME=VALUE` each
 * @throws Fault if no folder is found from which programs can be executed
 */
export function become(
  steps: readonly Step[],
  machine: Machine,
  argv: readonly string[],
  env: readonly string[],
): never {
  const tried: string[] = [];
  for (const parent of [process.env.XDG_RUNTIME_DIR, "/dev/shm", tmpdir()]) {
    if (!parent || tried.includes(parent)) continue;
    tried.push(parent);
    let folder: string | undefined;
    try {
      folder = mkdtempSync(join(parent, "ollie-"));
      const path = join(folder, "launch");
      const image = buildImage([...removalOf(path, folder), ...steps], machine);
      writeFileSync(path, image, { mode: 0o500 });
      execve(path, [path, ...argv], env);
    } catch {
      // The next folder may be better.
    }
    // A file system that is mounted noexec, or arguments that are too long.
    if (folder) rmSync(folder, { recursive: true, force: true });
  }
  throw new Fault(
    "unavailable",
    `no program can be started from ${tried.join(", ")}: TMPDIR must name a folder for files that can be executed, and arguments must not be too long`,
  );
}

function removalOf(path: string, folder: string): Step[] {
  return [
    attempt("remove the image", "unlinkat", AT_FDCWD, path, 0),
    attempt("remove its folder", "unlinkat", AT_FDCWD, folder, AT_REMOVEDIR),
  ];
}
