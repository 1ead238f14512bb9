import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseCall, splitCommand } from "../../../../src/remote/host/anchor/words.ts";

const hash = "ab".repeat(32);
const nonce = "0123456789abcdef";

test.each([
  ["/usr/bin/anchor check X", ["/usr/bin/anchor", "check", "X"]],
  ["  a   b ", ["a", "b"]],
  ["a 'b c;$(id)' --root", ["a", "b c;$(id)", "--root"]],
  ["a ''", ["a", ""]],
])("words stand between spaces or single quotes: %p", (command, words) => {
  expect(splitCommand(command)).toEqual(words);
});

test.each([
  "a; id",
  "a $(id)",
  "a `id`",
  "a | sh",
  "a > f",
  'a "b"',
  "a 'b",
  "a b'c'",
  "a\\ b",
  "a\nb",
  "a &",
  "a *",
  "exec /bin/sh -c 'x' a!b",
])("what a shell would make something of is refused: %p", (command) => {
  expect(() => splitCommand(command)).toThrow("cannot be read");
});

test("whatever is sent, words are made of it or it is refused, at once", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (command) => {
      try {
        for (const word of splitCommand(command)) expect(word).not.toMatch(/['\0\n]/);
      } catch (error) {
        expect((error as { code?: string }).code).toBe("boot.words");
      }
    }),
  );
});

test("the three steps are read with what belongs to them", () => {
  expect(parseCall(["check", hash, nonce])).toMatchObject({ step: "check", digest: hash, nonce });
  expect(parseCall(["check", hash])).toMatchObject({ step: "check", nonce: "-" });
  expect(parseCall(["install", hash]).upload).toEqual({ codec: "none", signed: 0 });
  expect(parseCall(["launch", hash, "--root", "/r"]).serve).toEqual({ root: "/r" });
  expect(parseCall(["install", hash, nonce, "gzip", "100", "0"]).upload).toEqual({
    codec: "gzip",
    length: 100,
    signed: 0,
  });
  expect(parseCall(["launch", hash, nonce, "--root", "/r", "--policy", "/p"]).serve).toEqual({
    root: "/r",
    policy: "/p",
  });
});

test.each([
  [],
  ["serve", hash, nonce],
  ["check", "../../bin/sh", nonce],
  ["check", hash.toUpperCase(), nonce],
  ["check", hash, "x"],
  ["check", hash, nonce, "more"],
  ["install", hash, nonce, "xz", "1", "0"],
  ["install", hash, nonce, "gzip", "-1", "0"],
  ["install", hash, nonce, "gzip", "1e9", "0"],
  ["install", hash, nonce, "gzip", "9999999999", "0"],
  ["launch", hash, nonce, "--root"],
  ["launch", hash, nonce, "--root", "relative"],
  ["launch", hash, nonce, "--preload", "/x"],
  ["launch", hash, nonce, "--root", "/a", "--root", "/b"],
])("other words are refused: %p", (...words) => {
  expect(() => parseCall(words.filter((word) => word !== undefined))).toThrow(
    "the trust anchor takes check HASH",
  );
});
