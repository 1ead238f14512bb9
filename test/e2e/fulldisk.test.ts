import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { lacksSmallDisk, onSmallDisk } from "../needs.ts";
import { build } from "./harness.ts";

const child = join(import.meta.dir, "fulldisk.child.ts");

beforeAll(build, 120_000);

test.skipIf(lacksSmallDisk())(
  "a server can be started on a full disk: everything can be read, and what needs room says so",
  () => {
    const { stdout, stderr } = onSmallDisk("16m", () => [process.execPath, child]);
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
  },
  120_000,
);
