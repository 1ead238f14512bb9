import { expect, test } from "bun:test";
import { join } from "node:path";
import { lacksSmallDisk, onSmallDisk } from "../needs.ts";

const child = join(import.meta.dir, "fulldisk.child.ts");

test.skipIf(lacksSmallDisk())(
  "a full disk refuses clearly, loses nothing that was accepted, and is got over",
  () => {
    const { stdout, stderr } = onSmallDisk("4m", (root) => [process.execPath, child, root]);
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
  },
);
