import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Outcome, run } from "../e2e/harness.ts";

/** A program with one command of each kind, run from its source. */
const program = (...args: string[]): Promise<Outcome> =>
  run([process.execPath, join(import.meta.dir, "program.child.ts"), ...args], { PATH: process.env.PATH! });

describe("a program", () => {
  test("gives options and words to the command, wherever they stand", async () => {
    const { status, stdout } = await program(
      "--global=g",
      "show",
      "a",
      "--flag",
      "b",
      "-v",
      "1",
      "--value=2",
      "--",
      "-c",
    );
    expect(JSON.parse(stdout)).toEqual({
      values: { flag: true, value: ["1", "2"] },
      words: ["a", "b", "-c"],
      globals: { global: "g" },
    });
    expect(status).toBe(0);
  });

  test.each([
    [
      ["wrap", "--flag", "-v", "1", "a", "--flog", "-v"],
      ["a", "--flog", "-v"],
    ],
    [
      ["wrap", "--value=1", "a", "--help", "--"],
      ["a", "--help", "--"],
    ],
    [
      ["wrap", "--flag", "--", "--flag", "b"],
      ["--flag", "b"],
    ],
  ])(
    "of a command that starts another one, %j leaves to that one what follows its name",
    async (args, words) => {
      expect(JSON.parse((await program(...args)).stdout).words).toEqual(words);
    },
  );

  test.each([
    [["wrap", "--value"], "option '-v, --value <value>' argument missing"],
    [[], "which command?"],
    [["nonsense"], "no command nonsense"],
    [["toString"], "no command toString"],
    [["--glob", "show"], "unknown option '--glob'"],
    [["show", "a", "--flog"], "unknown option '--flog'"],
    [["show", "a", "--flag=1"], "option '--flag' does not take an argument"],
    [["show", "a", "--value"], "option '-v, --value <value>' argument missing"],
    [["show"], "expected child show A [B …]"],
    [["show", "1", "2", "3", "4"], "expected child show A [B …]"],
  ])("%j is wrong use: status 2, one line that says why and where help is", async (args, why) => {
    const { status, stdout, stderr } = await program(...args);
    expect(stderr).toStartWith(`child: ${why}`);
    expect(stderr).toMatch(/^.* \(see child( show| wrap)? --help\)\n$/);
    expect(stdout).toBe("");
    expect(status).toBe(2);
  });

  test("a failure is one line on stderr without a stack, and status 1", async () => {
    const { status, stdout, stderr } = await program("fail");
    expect(stderr).toBe("child: two lines; of an error\n");
    expect(stdout).toBe("");
    expect(status).toBe(1);
  });

  test("a command may have a status of its own", async () => {
    expect((await program("status")).status).toBe(7);
  });

  test.each(["--help", "-h", "help", "show --help", "show -h --nonsense"])(
    "%s shows help on stdout",
    async (line) => {
      const { status, stdout, stderr } = await program(...line.split(" "));
      expect(stdout).toStartWith("usage: child ");
      expect(stdout).toContain("--version");
      expect(stderr).toBe("");
      expect(status).toBe(0);
    },
  );

  test("the version is shown by the program and by each command", async () => {
    const { stdout } = await program("--version");
    expect(stdout).toMatch(/^child \d+\.\d+\.\d+ \(.+\)\n$/);
    expect((await program("show", "--version")).stdout).toBe(stdout);
  });
});
