import { expect, test } from "bun:test";
import { join } from "node:path";
import { lacksSmallDisk, onSmallDisk } from "../needs.ts";
import { folder } from "./helper.ts";

test.skipIf(lacksSmallDisk())(
  "a full disk neither stops nor holds up a job; what it lacks is told, and how it ended is known",
  () => {
    const child = join(import.meta.dir, "job-fulldisk.child.ts");
    const { stdout, stderr } = onSmallDisk("16m", () => [process.execPath, child, folder()]);
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
  },
  120_000,
);
