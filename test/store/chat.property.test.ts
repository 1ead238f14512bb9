import { expect, test } from "bun:test";
import fc from "fast-check";
import { blockTypes } from "../../src/store/blocks.ts";
import { Agents, chatText, parseChat } from "./helper.ts";

/** Text in which markers, newlines and characters of two halves are frequent. */
const text = fc
  .array(
    fc.oneof(fc.constantFrom("[", "[[", "[[[", "\n", "[[[end]]]", "\r", "😀", "\ud83d", " "), fc.string()),
    {
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(""));

/** Pieces of it, cut anywhere, also within a character. */
const pieces = fc.tuple(text, fc.array(fc.nat(20), { maxLength: 6 })).map(([whole, cuts]) => {
  const parts: string[] = [];
  let at = 0;
  for (const size of cuts) {
    parts.push(whole.slice(at, at + size));
    at += size;
  }
  return [...parts, whole.slice(at)];
});

const block = fc.record({
  type: fc.constantFrom(...blockTypes),
  attrs: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ unit: "binary", maxLength: 10 })),
  pieces,
});

/** What a reader gets back of a text: whole lines, and no blank before brackets that began a line. */
function asRead(written: string): string {
  const lines = written === "" || written.endsWith("\n") ? written : `${written}\n`;
  return lines.toWellFormed().replace(/(^|\n) \[\[\[/g, "$1[[[");
}

test("blocks written in any pieces and any overlap are read back whole and in the order they were opened", async () => {
  const agents = new Agents();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(block, { maxLength: 5 }),
      fc.infiniteStream(fc.nat(4)),
      async (blocks, choose) => {
        const { chat } = await agents.create({ name: `${run++}` });
        const handles = blocks.map(({ type, attrs }) => chat.open(type, attrs));
        const left = blocks.map(({ pieces }) => [...pieces]);
        while (left.some((parts) => parts.length > 0)) {
          const i = choose.next().value % blocks.length;
          const part = left[i]!.shift();
          if (part !== undefined) handles[i]!.append(part);
          if (left[i]!.length === 0) handles[i]!.close();
        }
        const read = parseChat(chatText({ chat }));
        expect(read.map(({ type, text }) => ({ type, text }))).toEqual(
          blocks.map(({ type, pieces }) => ({ type, text: asRead(pieces.join("")) })),
        );
        for (const [i, { attrs }] of blocks.entries()) expect(read[i]!.attrs).toMatchObject(attrs);
      },
    ),
    { numRuns: 200 },
  );
});
