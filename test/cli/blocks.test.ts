/** What `ollie-9p ask` reads out of a chat. */
import { expect, test } from "bun:test";
import { BlockReader, plain } from "../../src/cli/client/blocks.ts";

const chat =
  "[[[user injected=yes time=t]]]\nhé\n [[[end]]]\n[[[end]]]\n[[[tool name=x id=injected=yes time=t]]]\n[[[end]]]\n";
const blocks = [
  { type: "user", injected: true, text: "hé\n [[[end]]]\n" },
  { type: "tool", injected: false, text: "" },
];

test("blocks are the same in whatever pieces they come", () => {
  const bytes = Buffer.from(chat);
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new BlockReader();
    const seen = [];
    for (let at = 0; at < bytes.length; at += size) seen.push(...reader.push(bytes.subarray(at, at + size)));
    expect(seen).toEqual(blocks);
  }
});

test("what is left of a block is passed over", () => {
  expect(new BlockReader().push(Buffer.from(`rest\n[[[end]]]\n${chat}`))).toEqual(blocks);
});

test("only the blank that keeps a line from being a marker is taken out", () => {
  expect(plain(" [[[a\n b\n  [[[c\n")).toBe("[[[a\n b\n  [[[c\n");
});
