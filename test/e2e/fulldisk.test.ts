import { beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "./harness.ts";

/** A file system of 16 MiB that only the command sees: it is mounted in a namespace of its own and goes with it. */
const mounted = 'mount -t tmpfs -o size=16m none "$1" && TMPDIR=$1 && export TMPDIR && shift && exec "$@"';

function onSmallDisk(...command: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "ollie-small-"));
  try {
    return Bun.spawnSync(["unshare", "-rm", "sh", "-c", mounted, "sh", folder, ...command]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

beforeAll(build, 120_000);

test("a server can be started on a full disk: everything can be read, and what needs room says so", () => {
  if (!onSmallDisk("true").success) {
    console.warn("not tested: this user may not mount a small file system (unshare -rm)");
    return;
  }
  const { stdout, stderr } = onSmallDisk(process.execPath, join(import.meta.dir, "fulldisk.child.ts"));
  expect(stderr.toString()).toBe("");
  const works = {
    start: [0, "olliesrv runs as process N\n"],
    second: "olliesrv: it runs already, as process N; olliesrv restart starts it anew\n",
    chat: true,
    prompt: [1, "no space left on device"],
  };
  expect(JSON.parse(stdout.toString())).toEqual({
    killed: works,
    stop: 0,
    stopped: works,
    room: [0, ""],
    restart: 0,
    chat: ["before", "again"],
    removed: true,
  });
}, 120_000);
