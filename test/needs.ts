/** What tests need of a host that not every host has. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Launcher } from "../src/sandbox/launch/launcher.ts";

const said = new Set<string>();

/**
 * For `skipIf`: true where it is not there, and then the run says so. Never in CI, where .ci/run has installed it: there a test that
 * cannot do its work fails.
 * @param need in words
 */
export function lacks(need: string, there: boolean): boolean {
  if (there || process.env.CI) return false;
  if (!said.has(need)) console.warn(`some tests are skipped: they need ${need}`);
  said.add(need);
  return true;
}

/** Programs on the PATH. */
export function lacksPrograms(...names: string[]): boolean {
  const missing = names.filter((name) => Bun.which(name) === null);
  return lacks(missing.join(" and "), missing.length === 0);
}

export function lacksRoot(): boolean {
  return lacks("to run as root", process.geteuid!() === 0);
}

/** A kernel that can confine programs. */
export function lacksSandbox(): boolean {
  const launcher = new Launcher([mkdtempSync(join(tmpdir(), "ollie-"))]);
  launcher.close();
  return lacks("a kernel with Landlock", launcher.confinement.state !== "off");
}

/** `$1` is mounted over by a file system of the size `$2`, which only the rest of the words sees, and goes with it. */
const mounted = 'mount -t tmpfs -o "size=$2" none "$1" && TMPDIR=$1 && export TMPDIR && shift 2 && exec "$@"';

/**
 * Runs a command that has a small file system for its temporary files, TMPDIR.
 * @param size as mount(8) has it: `4m`
 * @param command gets the path of its root
 */
export function onSmallDisk(size: string, command: (root: string) => string[]) {
  const root = mkdtempSync(join(tmpdir(), "ollie-small-"));
  try {
    return Bun.spawnSync(["unshare", "-rm", "sh", "-c", mounted, "sh", root, size, ...command(root)]);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

export function lacksSmallDisk(): boolean {
  return lacks("to be allowed to mount (unshare -rm)", onSmallDisk("1m", () => ["true"]).success);
}
