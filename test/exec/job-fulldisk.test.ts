import { expect, test } from "bun:test";
import { join } from "node:path";
import { folder } from "./helper.ts";

/** A file system of 16 MiB that only the command sees: it is mounted in a namespace of its own and goes with it. */
const mounted = 'mount -t tmpfs -o size=16m none "$1" && TMPDIR=$1 && export TMPDIR && shift && exec "$@"';

function onSmallDisk(...command: string[]) {
  return Bun.spawnSync(["unshare", "-rm", "sh", "-c", mounted, "sh", folder(), ...command]);
}

test("a full disk neither stops nor holds up a job; what it lacks is told, and how it ended is known", () => {
  if (!onSmallDisk("true").success) {
    console.warn("not tested: this user may not mount a small file system (unshare -rm)");
    return;
  }
  const child = join(import.meta.dir, "job-fulldisk.child.ts");
  const { stdout, stderr } = onSmallDisk(process.execPath, child, folder());
  expect(stderr.toString()).toBe("");
  expect(JSON.parse(stdout.toString())).toMatchObject({
    how: "exited",
    code: 0,
    bytes: 2000 * (7 + 8 + 6 + 5),
    lost: true,
    whole: true,
    order: ["before", "after"],
    notice: true,
  });
}, 120_000);
