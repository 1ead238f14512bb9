import { expect, test } from "bun:test";
import { join } from "node:path";
import { folder } from "./helper.ts";

/** A file system of 4 MiB that only the command sees: it is mounted in a namespace of its own and goes with it. */
const mounted = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"';

function onSmallDisk(path: string, ...command: string[]) {
  return Bun.spawnSync(["unshare", "-rm", "sh", "-c", mounted, "sh", path, ...command]);
}

const child = join(import.meta.dir, "fulldisk.child.ts");

test("a full disk refuses clearly, loses nothing that was accepted, and is got over", () => {
  const path = folder();
  if (!onSmallDisk(path, "true").success) {
    console.warn("not tested: this user may not mount a small file system (unshare -rm)");
    return;
  }
  const { stdout, stderr } = onSmallDisk(path, process.execPath, child, path);
  expect(stderr.toString()).toBe("");
  expect(JSON.parse(stdout.toString())).toEqual({
    journalRefusal: "full",
    journalState: true,
    journalEndsInNewline: true,
    planRefusal: "full",
    updateRefusal: "full",
    createRefusal: "full",
    agentRefusal: "full",
    kept: ["old plan", "/1", ["s"], 0],
    chat: ["full", true],
    turnRefusal: "full",
    noTurn: true,
    chatAfter: [null, true, true],
    chatWhole: true,
    lossyLength: true,
    lossy: "begin\nz\n[N bytes were lost here: the disk did not take them]\n[[[end]]]\n",
    recovered: [null, "interrupted", -1, true],
    ends: 1,
    afterRecovery: ["interrupted", -1],
    blocks: ["assistant half\n", "info Interrupted", "info goes on\n"],
    damaged: ["default", true, "full"],
    mended: [["The journal of this agent wa", "The settings of this session"], 2],
    reportWhole: [],
    leftovers: [],
  });
});
