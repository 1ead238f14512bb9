import { expect, test } from "bun:test";
import { join } from "node:path";
import { lacksSmallDisk, onSmallDisk } from "../needs.ts";

const child = join(import.meta.dir, "fulldisk.child.ts");

const usual = { submitted: "accepted", waits: 0, reply: "As before.", whole: true, history: true };
const full = "journal.jsonl cannot grow: full";
const both = { ...usual, users: ["first", "second"] };

/** By the kind of the record for which there is no room any more. */
const outcomes: Record<string, object> = {
  // Refused to whoever wrote it, and then not run.
  prompt: { ...usual, submitted: "full", errors: [], users: ["second"], results: [] },
  // Accepted: it waits until there is room.
  turn: { ...both, waits: 1, errors: [`${full}; what waits stays in the queue`], results: [] },
  // What cannot be kept must not be acted upon.
  usage: { ...both, errors: [full], results: [] },
  assistant: { ...both, errors: [full], results: [] },
  call: {
    ...both,
    errors: [`the result of ok is not on disk: ${full}`],
    results: ["The call could not be run"],
  },
  // What has been done is kept in memory until there is room.
  result: { ...both, errors: [`the result of ok is not on disk: ${full}`], results: ["fine"] },
  end: { ...both, errors: [], results: ["fine"] },
};

test.skipIf(lacksSmallDisk()).each(Object.keys(outcomes))(
  "a disk that is full when a %s is to be written loses no agent and tells what happened",
  (kind) => {
    const { stdout, stderr } = onSmallDisk("4m", () => [process.execPath, child, kind]);
    expect(stderr.toString()).toBe("");
    expect(JSON.parse(stdout.toString())).toEqual({ ...outcomes[kind], restart: [true, true, 0, "idle"] });
  },
  20_000,
);
