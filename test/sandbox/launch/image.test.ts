/** Images as files and as programs: their layout, their machine code, and what each kind of step comes to. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildImage, failurePrefix } from "../../../src/sandbox/launch/image.ts";
import { launchFailure } from "../../../src/sandbox/launch/launcher.ts";
import {
  attempt,
  becomeProgram,
  equals,
  must,
  refused,
  reveal,
  type Step,
} from "../../../src/sandbox/launch/step.ts";
import { AT_FDCWD, ENOENT, EPERM, type Machine } from "../../../src/sandbox/launch/syscalls.ts";
import { lacksPrograms } from "../../needs.ts";
import { end, folder, machine, returned } from "./helper.ts";

const EEXIST = 17;
const EBADF = 9;

const place = folder();
const readers: Record<Machine, { disassembler: string; emulator: string[] }> = {
  x64: { disassembler: "x86_64-linux-gnu-objdump", emulator: ["qemu-x86_64-static"] },
  arm64: { disassembler: "aarch64-linux-gnu-objdump", emulator: ["qemu-aarch64-static"] },
};
/** An image of this machine runs by itself. */
const emulator = (kind: Machine) => (kind === machine ? [] : readers[kind].emulator);

function image(steps: readonly Step[], kind: Machine = machine): string {
  const path = join(place, `image-${Math.random()}`);
  writeFileSync(path, buildImage(steps, kind), { mode: 0o700 });
  return path;
}

function tool(...argv: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(argv);
  expect(stderr.toString()).toBe("");
  return stdout.toString();
}

describe.each(["x64", "arm64"] as const)("%s", (kind) => {
  test.skipIf(lacksPrograms("readelf"))("the file is one that tools understand", () => {
    const path = image([must("do it", "chdir", "/a/b"), end], kind);
    const headers = tool("readelf", "-W", "-h", "-l", path);
    expect(headers).toContain(kind === "x64" ? "Advanced Micro Devices X86-64" : "AArch64");
    expect(headers).toMatch(/Type: +EXEC/);
    expect(headers).toMatch(/LOAD +0x0+ 0x0+400000 0x0+400000 (0x[0-9a-f]+) \1 R E 0x1000/);
    expect(headers).toMatch(/GNU_STACK .* RW +/);
  });

  const { disassembler } = readers[kind];
  test.skipIf(lacksPrograms(disassembler))(
    "the machine code is what the listing beside it says",
    async () => {
      const source = await Bun.file(join(import.meta.dir, "../../../src/sandbox/launch/image.ts")).text();
      const listing = new RegExp(`^ {2}${kind}: \`\\n([^\`]+)\``, "m").exec(source)![1]!;
      const lines = [...listing.matchAll(/^ +([0-9a-f]+) +(?:[a-z]+: )?(?:([a-z.]+)\b)?/gm)];
      const said = lines.map(([, , mnemonic]) => mnemonic).filter((name) => name !== undefined);
      const code = Uint8Array.fromHex(lines.map(([, hex]) => hex).join(""));
      const raw = join(place, `code-${kind}`);
      writeFileSync(raw, code);
      const target = kind === "x64" ? ["-m", "i386:x86-64"] : ["-m", "aarch64"];
      const printed = tool(disassembler, "-D", "-b", "binary", ...target, "--no-show-raw-insn", raw);
      const found = [...printed.matchAll(/^ +[0-9a-f]+:\t([a-z.]+)/gm)].map(([, mnemonic]) => mnemonic!);
      const plain = (name: string) => name.replace(/^movabs$/, "mov").replace(/^(cmov|j)z$/, "$1e");
      expect(said.length).toBeGreaterThan(30);
      expect(found.slice(0, said.length).map(plain)).toEqual(said);
    },
  );

  describe("as a program", () => {
    const run = (steps: readonly Step[], argv: string[] = [], env: Record<string, string> = {}) => {
      const command = [...emulator(kind), image(steps, kind), ...argv];
      const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd: place, env, stdin: "ignore" });
      return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
    };
    const testIf = test.skipIf(lacksPrograms(...emulator(kind)));
    const say = (text: string) => must(`say ${text}`, "write", 1, text, text.length);
    const fails = attempt("close nothing", "close", 999);

    testIf("steps follow each other, with all six arguments", () => {
      const name = `folder-${kind}`;
      const made = run([say("a"), must("make", "mkdirat", AT_FDCWD, name, 0o700), say("b"), end]);
      expect(made).toEqual({ code: 0, stdout: "ab", stderr: "" });
      expect(existsSync(join(place, name))).toBe(true);
    });

    testIf("must: the first that fails ends it, with its errno and words", () => {
      mkdirSync(join(place, `there-${kind}`));
      const again = must("make it again", "mkdirat", AT_FDCWD, `there-${kind}`, 0o700);
      expect(run([again, say("never"), end])).toEqual({
        code: EEXIST,
        stdout: "",
        stderr: `${failurePrefix}make it again\n`,
      });
    });

    testIf("a status of its own takes the errno's place", () => {
      const ended = run([{ ...must("close nothing", "close", 999), status: 126 }, end]);
      expect(ended).toEqual({ code: 126, stdout: "", stderr: `${failurePrefix}close nothing\n` });
    });

    testIf("attempt: goes on", () => {
      expect(run([fails, say("on"), end])).toEqual({ code: 0, stdout: "on", stderr: "" });
    });

    testIf("refused: this refusal, and nothing else", () => {
      expect(run([refused(EBADF, "be refused", "close", 999), end]).code).toBe(0);
      expect(run([refused(EPERM, "be refused", "close", 999), end]).code).toBe(EBADF);
      const { stderr } = run([refused(EBADF, "be refused", "chdir", "/"), end]);
      expect(stderr).toBe(`${failurePrefix}be refused\n`);
    });

    testIf("equals: this number", () => {
      expect(run([equals(1, "write one byte", "write", 1, "x", 1), end]).code).toBe(0);
      expect(run([equals(2, "write two bytes", "write", 1, "x", 1), end]).stderr).toContain("two bytes");
    });

    testIf("reveal: ends with what came back", () => {
      expect(run([reveal("tell", "close", 999)]).code).toBe(EBADF);
      expect(run([reveal("tell", "write", 1, "abc", 3)]).code).toBe(returned(3));
    });

    testIf("exec: the words behind the image and the whole environment", () => {
      const inner = image([say("inner"), end], kind);
      if (emulator(kind).length === 0) {
        const ended = run([becomeProgram], ["/bin/sh", "-c", 'echo "$0 $1 $A"', "x y", "z"], { A: "b" });
        expect(ended).toEqual({ code: 0, stdout: "x y z b\n", stderr: "" });
        expect(run([becomeProgram], [inner])).toEqual({ code: 0, stdout: "inner", stderr: "" });
      } else if (existsSync(`/proc/sys/fs/binfmt_misc/qemu-aarch64`))
        expect(run([becomeProgram], [inner])).toEqual({ code: 0, stdout: "inner", stderr: "" });
      else {
        // The emulator hands execve(2) on to a kernel that knows no such programs: one of this machine then.
        expect(run([becomeProgram], ["/bin/echo", "x"])).toEqual({ code: 0, stdout: "x\n", stderr: "" });
      }
    });

    testIf("exec: what is not there, and no words at all", () => {
      expect(run([becomeProgram], ["/nothing/here"])).toMatchObject({
        code: ENOENT,
        stderr: `${failurePrefix}run the program\n`,
      });
      expect(run([becomeProgram]).code).toBeGreaterThan(0);
    });
  });
});

test("the same steps give the same bytes", () => {
  const steps = [must("do it", "chdir", "/"), end];
  expect(buildImage(steps, machine)).toEqual(buildImage([...steps], machine));
});

describe("what a failed launch is told as", () => {
  const stderr = (step: Step) => `${failurePrefix}${step.label}\n`;

  test("the program could not be executed", () => {
    const fault = launchFailure({ code: 13, stderr: stderr(becomeProgram) });
    expect(fault).toMatchObject({
      kind: "denied",
      message: "its program may not be executed in the sandbox (EACCES)",
    });
  });

  test("a step before it", () => {
    const fault = launchFailure({
      code: 2,
      stderr: stderr(must("return to the working folder", "chdir", "/x")),
    });
    expect(fault).toMatchObject({
      kind: "unavailable",
      message: "the sandbox could not be set up: cannot return to the working folder (ENOENT)",
    });
  });

  test("a program that ran is none", () => {
    expect(launchFailure({ code: 1, stderr: "something else" })).toBeUndefined();
    expect(launchFailure({ stderr: stderr(becomeProgram) })).toBeUndefined();
  });
});
