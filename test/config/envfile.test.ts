// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is the env file's own syntax
import { describe, expect, test } from "bun:test";
import { parseEnvFile } from "../../src/config/envfile.ts";

const environment = { HOME: "/home/ann", XDG_RUNTIME_DIR: "/run/user/7", EMPTY: "" };
const read = (text: string) => Object.fromEntries(parseEnvFile(text, "env", environment));

describe("env file", () => {
  test.each([
    ["A=plain", "plain"],
    ["A=with blanks inside  ", "with blanks inside"],
    ["A=value  # comment", "value"],
    ["A=              # only a comment", ""],
    ["A=", ""],
    ["A=no#comment", "no#comment"],
    ["A='single $x ${HOME} \\ # kept'", "single $x ${HOME} \\ # kept"],
    ['A="double # kept" # comment', "double # kept"],
    ['A="a\\"b\\\\c\\$d\\n"', 'a"b\\c$d\\n'],
    ["A=' keeps blanks '", " keeps blanks "],
    ["A=a\"b c\"'d'e", "ab cde"],
    ["A=~/tools", "/home/ann/tools"],
    ["A=~", "/home/ann"],
    ["A=/x:~/y", "/x:/home/ann/y"],
    ["A=a~b", "a~b"],
    ["A=~ann/x", "~ann/x"],
    ['A="~/x"', "~/x"],
    ["A=${XDG_RUNTIME_DIR}/ollie/elevate.sock", "/run/user/7/ollie/elevate.sock"],
    ['A="${XDG_RUNTIME_DIR}/x"', "/run/user/7/x"],
    ["A=${NOTHING}", ""],
    ["A=${NOTHING:-b}", "b"],
    ["A=${EMPTY:-b}", "b"],
    ["A=${HOME:-b}", "/home/ann"],
    ["A=${NOTHING:-~/x}", "/home/ann/x"],
    ["A=${NOTHING:-${NOTHING:-deep}}", "deep"],
    ["A=sk-$ecret$", "sk-$ecret$"],
    ["export A=b", "b"],
    ["  A = b", "b"],
    ["A=b\r", "b"],
    ["\uFEFFA=b", "b"],
    ["A=ü → ß", "ü → ß"],
  ])("%j", (line, value) => {
    expect(read(line)).toEqual({ A: value });
  });

  test("comments and empty lines are nothing, a later line wins, and sees those above", () => {
    expect(read("# A=1\n\nA=1\n  # x\nA=2\nB=${A}0\n")).toEqual({ A: "2", B: "20" });
  });

  test("the environment goes before a line of the file when a variable is looked up", () => {
    expect(read("HOME=/other\nB=${HOME}")).toEqual({ HOME: "/other", B: "/home/ann" });
  });

  test.each([
    ["A=1\nnonsense\n", "env:2: expected KEY=value, found “nonsense”"],
    ["sk-or-v1-0123456789abcdef", "env:1: expected KEY=value, found “sk-or-v1-012…”"],
    ["1A=b", "env:1: expected KEY=value, found “1A=b”"],
    ["\nA='open", "env:2: a ' is not closed on its line"],
    ['A="open', 'env:1: a " is not closed on its line'],
    ["A=${B", 'env:1: after "${" expected NAME} or NAME:-default}'],
    ["A=${B:-c", 'env:1: a "${" is not closed on its line'],
    ["A=${B-c}", 'env:1: after "${" expected NAME} or NAME:-default}'],
  ])("%j is refused with its place", (text, message) => {
    expect(() => read(text)).toThrow(message);
  });
});
