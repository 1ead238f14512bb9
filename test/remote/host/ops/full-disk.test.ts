import { expect, test } from "bun:test";
import { join } from "node:path";
import type { OpReport } from "../../../../src/remote/protocol/operation.ts";
import { lacksSmallDisk, onSmallDisk } from "../../../needs.ts";

test.skipIf(lacksSmallDisk())(
  "a full disk stops nothing that runs; how it has ended is known, also to the next daemon; and nothing more is run",
  () => {
    const child = join(import.meta.dir, "full-disk.child.ts");
    const { stdout, stderr } = onSmallDisk("24m", () => [process.execPath, child]);
    expect(stderr.toString()).toBe("");
    const { before, after, full, fullStill, fine } = JSON.parse(stdout.toString());
    expect(before).toMatchObject([
      { status: "exited", code: 3 },
      { status: "exited", code: 0, outcome: { ok: true, how: "done" } },
      { status: "exited", code: 4 },
    ]);
    expect(before[0].output).toStartWith("before\n");
    expect(after.map(({ status, code }: OpReport) => [status, code])).toEqual([
      ["exited", 3],
      ["exited", 0],
      ["exited", 4],
    ]);
    expect(after[1].outcome).toEqual(before[1].outcome);
    expect([full, fullStill]).toEqual(["op.no_space", "op.no_space"]);
    expect(fine).toMatchObject({ status: "exited", code: 0, output: "fine\n" });
  },
  120_000,
);
