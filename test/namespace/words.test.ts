import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseEnv, parseKeys, parseWords } from "../../src/namespace/words.ts";

const keys = (text: string) => Object.fromEntries(parseKeys(text));
const env = (text: string) => Object.fromEntries(parseEnv(text));

describe("key=value words", () => {
  test("are separated by blanks and newlines", () => {
    expect(keys("name=x  cwd=/a\n\tmodel=m\n")).toEqual({ name: "x", cwd: "/a", model: "m" });
  });

  test("hold blanks in quotes and after a backslash", () => {
    expect(keys(`cwd="/a b"`)).toEqual({ cwd: "/a b" });
    expect(keys(`cwd='/a b'`)).toEqual({ cwd: "/a b" });
    expect(keys(String.raw`cwd=/a\ b`)).toEqual({ cwd: "/a b" });
    expect(keys(`cwd=/a/"b c"/'d e'`)).toEqual({ cwd: "/a/b c/d e" });
  });

  test("hold quotes, backslashes and newlines", () => {
    expect(keys(String.raw`stop="a\"b\\c\nd"`)).toEqual({ stop: 'a"b\\c\nd' });
    expect(keys(`stop='say "hi"'`)).toEqual({ stop: 'say "hi"' });
    expect(keys('stop="two\nlines"')).toEqual({ stop: "two\nlines" });
  });

  test("may be empty, and hold further equal signs", () => {
    expect(keys("name= model=a=b")).toEqual({ name: "", model: "a=b" });
  });

  test("of which the later one wins", () => {
    expect(keys("model=a model=b")).toEqual({ model: "b" });
  });

  test("are followed by comments", () => {
    expect(keys("# all\nname=x # the name\nmodel=a#b\n")).toEqual({ name: "x", model: "a#b" });
  });

  test("that are none are named", () => {
    expect(() => keys("cwd=/a b")).toThrow('"b" is not key=value');
    expect(() => keys("=x")).toThrow('"=x" is not key=value');
    expect(() => keys(`cwd="/a`)).toThrow('no closing quote for "/a');
  });

  test("give back any value that was quoted", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (value) => {
        const quoted = `"${value.replace(/["\\]/g, "\\$&")}"`;
        expect(keys(`key=${quoted} x=y`)).toEqual({ key: value, x: "y" });
      }),
    );
  });

  test("never break the parser", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(Array.isArray(parseWords(text.replaceAll(/["']/g, "")))).toBe(true);
      }),
    );
  });
});

describe("environment lines", () => {
  test("have the rest of the line for a value", () => {
    expect(env("A=x y\nB= z=1 # kept\n")).toEqual({ A: "x y", B: " z=1 # kept" });
  });

  test("may quote it", () => {
    expect(env(`A="x  y"\nB='two\nlines'\n`)).toEqual({ A: "x  y", B: "two\nlines" });
  });

  test("may be empty, comments or blank", () => {
    expect(env("# one\n\nA=\n")).toEqual({ A: "" });
  });

  test("that are none are named", () => {
    expect(() => env("A=1\nnonsense\nB=2")).toThrow('"nonsense" is not KEY=VALUE');
    expect(() => env("A-B=1")).toThrow('"A-B=1" is not KEY=VALUE');
    expect(() => env(`A="x" y`)).toThrow('" y" follows a closing quote');
  });
});
