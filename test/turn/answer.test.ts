/** An answer that breaks off and is asked for again: what chat shows in the end. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { ChatLog } from "../../src/store/chat.ts";
import { AnswerWriter } from "../../src/turn/answer.ts";
import { Turn } from "../../src/turn/turn.ts";

type Piece = [kind: "assistant" | "reasoning", text: string];

/** Plays tries of one request, of which all but the last break off; returns the blocks that chat shows. */
function play(...tries: Piece[][]): Piece[] {
  const blocks: Piece[] = [];
  const chat = {
    open(kind: Piece[0]) {
      const block: Piece = [kind, ""];
      blocks.push(block);
      return { append: (text: string) => (block[1] += text), close: () => {} };
    },
  } as unknown as ChatLog;
  const turn = new Turn();
  turn.beginStep(undefined);
  for (const pieces of tries) {
    turn.answer = new AnswerWriter(chat, () => {}, turn.shown);
    for (const [kind, text] of pieces) turn.answer.write(kind, text);
    turn.keepShown();
  }
  return blocks;
}

const text = (...pieces: string[]): Piece[] => pieces.map((piece) => ["assistant", piece]);

describe("an answer that is asked for again", () => {
  test("goes on where it broke off, however it is cut into pieces", () => {
    expect(play(text("Hello wor"), text("Hello", " world, all", " of it"))).toEqual([
      ["assistant", "Hello wor"],
      ["assistant", "ld, all of it"],
    ]);
  });

  test("that breaks off earlier the second time shows nothing twice", () => {
    expect(play(text("Hello wor"), text("Hell"), text("Hello w"), text("Hello world"))).toEqual([
      ["assistant", "Hello wor"],
      ["assistant", "ld"],
    ]);
  });

  test("that is another one is shown whole, and goes on from there", () => {
    expect(play(text("Hello there"), text("Good"), text("Good morning"))).toEqual([
      ["assistant", "Hello there"],
      ["assistant", "Good"],
      ["assistant", " morning"],
    ]);
  });

  test("keeps thoughts and text apart", () => {
    expect(
      play(
        [
          ["reasoning", "hm, "],
          ["assistant", "Yes"],
        ],
        [["reasoning", "h"]],
        [
          ["reasoning", "hm, well"],
          ["assistant", "Yes"],
          ["assistant", ", so"],
        ],
      ),
    ).toEqual([
      ["reasoning", "hm, "],
      ["assistant", "Yes"],
      ["reasoning", "well"],
      ["assistant", ", so"],
    ]);
  });

  test("of the same words is shown once, wherever it breaks off", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 60 }),
        fc.array(fc.nat(60), { maxLength: 4 }),
        fc.integer({ min: 1, max: 7 }),
        (whole, cuts, size) => {
          const tries = [...cuts.map((cut) => whole.slice(0, cut)), whole].map((part) => {
            const pieces: string[] = [];
            for (let at = 0; at < part.length; at += size) pieces.push(part.slice(at, at + size));
            return text(...pieces);
          });
          expect(
            play(...tries)
              .map(([, shown]) => shown)
              .join(""),
          ).toBe(whole);
        },
      ),
    );
  });
});
