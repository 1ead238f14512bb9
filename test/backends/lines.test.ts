/** Lines and server-sent events do not depend on where the network cuts them. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { lines, serverEvents } from "../../src/backends/lines.ts";

async function* cut(text: string, at: (i: number) => boolean): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let from = 0;
  for (let i = 1; i <= bytes.length; i++) {
    if (i < bytes.length && !at(i)) continue;
    yield bytes.subarray(from, i);
    from = i;
  }
}

const read = async <T>(source: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(source);
const everywhere = () => true;

describe("lines", () => {
  test.each([
    ["a\nb\r\nc\rd", ["a", "b", "c", "d"]],
    ["a\r\n\r\nb\n\n", ["a", "", "b", ""]],
    ["a\r\rb\r", ["a", "", "b"]],
    ["你好\n👍🏽\n", ["你好", "👍🏽"]],
    ["\uFEFFa\n", ["a"]],
    ["", []],
  ])("%j", async (text, expected) => {
    expect(await read(lines(cut(text, everywhere)))).toEqual(expected);
    expect(await read(lines(cut(text, () => false)))).toEqual(expected);
  });

  test("are the same however the bytes are cut", async () => {
    const piece = fc.constantFrom("a", "é", "你", "👍", "\n", "\r\n", "\r", " ", ":", "data:");
    const run = fc.asyncProperty(fc.array(piece), fc.infiniteStream(fc.boolean()), async (pieces, coins) => {
      const text = pieces.join("");
      const whole = await read(lines(cut(text, () => false)));
      const parts = await read(lines(cut(text, () => coins.next().value)));
      expect(parts).toEqual(whole);
    });
    await fc.assert(run);
  });
});

test("server-sent events", async () => {
  const text =
    ': hi\nevent: error\ndata: {"a":\ndata:1}\nid: 7\nretry\n\n\n:\n\ndata\n\nevent: x\n\ndata:  two\n';
  expect(await read(serverEvents(cut(text, everywhere)))).toEqual([
    { name: "error", data: '{"a":\n1}' },
    { name: "", data: "" },
    { name: "", data: " two" },
  ]);
});
