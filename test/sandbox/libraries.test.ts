/** Which files a program cannot be loaded without: found as the loader finds them. */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readElf } from "../../src/sandbox/elf.ts";
import { neededFiles } from "../../src/sandbox/libraries.ts";
import { lacksPrograms } from "../needs.ts";

let place: string;
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "ollie-libraries-")));
});

interface Made {
  needed?: string[];
  rpath?: string;
  runpath?: string;
  interpreter?: string;
}

/** A file with the headers of an x86-64 program and nothing to execute. */
function make(name: string, { needed = [], rpath, runpath, interpreter }: Made = {}): string {
  let table: Buffer = Buffer.alloc(1);
  const text = (value: string) => {
    const at = table.length;
    table = Buffer.concat([table, Buffer.from(`${value}\0`)]);
    return at;
  };
  const entries: [tag: number, value: number][] = needed.map((library) => [1, text(library)]);
  if (rpath !== undefined) entries.push([15, text(rpath)]);
  if (runpath !== undefined) entries.push([29, text(runpath)]);
  const loader = interpreter === undefined ? undefined : text(interpreter);
  const [base, headers] = [0x10000, 64 + 3 * 56];
  const stringsAt = headers + (entries.length + 2) * 16;
  entries.push([5, base + stringsAt], [0, 0]);
  const file = Buffer.alloc(stringsAt + table.length);
  file.writeUInt32BE(0x7f454c46, 0);
  file.writeUInt32BE(0x02010100, 4);
  file.writeUInt16LE(62, 18);
  file.writeBigUInt64LE(64n, 32);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(loader === undefined ? 2 : 3, 56);
  const segment = (index: number, type: number, offset: number, size: number) => {
    const at = 64 + index * 56;
    file.writeUInt32LE(type, at);
    file.writeBigUInt64LE(BigInt(offset), at + 8);
    file.writeBigUInt64LE(BigInt(base + offset), at + 16);
    file.writeBigUInt64LE(BigInt(size), at + 32);
  };
  segment(0, 1, 0, file.length);
  segment(1, 2, headers, entries.length * 16);
  if (loader !== undefined) segment(2, 3, stringsAt + loader, 1);
  entries.forEach(([tag, value], index) => {
    file.writeBigUInt64LE(BigInt(tag), headers + index * 16);
    file.writeBigUInt64LE(BigInt(value), headers + index * 16 + 8);
  });
  table.copy(file, stringsAt);
  const path = join(place, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, file, { mode: 0o755 });
  return path;
}

const found = (program: string, libraryPath?: string[]) => neededFiles(program, libraryPath).files.sort();

test("an ELF file says what it needs", () => {
  const path = make("program", { needed: ["a.so", "b.so"], runpath: "/x:$ORIGIN/y", interpreter: "/ld.so" });
  expect(readElf(path)).toEqual({
    machine: 62,
    interpreter: "/ld.so",
    needed: ["a.so", "b.so"],
    rpath: [],
    runpath: ["/x", "$ORIGIN/y"],
  });
});

test("other files and broken ones are none", () => {
  const cut = join(place, "cut");
  const whole = make("whole", { needed: ["a.so"] });
  for (const content of ["", "#!/bin/sh\n", "\x7fELF", "\x7fELF\x01\x01\x01".padEnd(100, "\0")]) {
    writeFileSync(cut, content, "latin1");
    expect(readElf(cut)).toBeUndefined();
  }
  writeFileSync(cut, new Uint8Array(0));
  const bytes = readFileSync(whole);
  for (let length = 64; length < bytes.length; length += 7) {
    writeFileSync(cut, bytes.subarray(0, length));
    expect(() => readElf(cut)).not.toThrow();
  }
});

describe("libraries are looked for", () => {
  test("in the folders of RUNPATH, relative to the file, and what those need in turn", () => {
    const inner = make("lib/deep/inner.so");
    const outer = make("lib/outer.so", { needed: ["inner.so"], runpath: "$" + "{ORIGIN}/deep" });
    const program = make("bin/program", { needed: ["outer.so"], runpath: "$ORIGIN/../lib" });
    expect(found(program)).toEqual([inner, outer].sort());
  });

  test("RPATH holds for what libraries need, RUNPATH does not", () => {
    const inner = make("lib/inner.so");
    const outer = make("lib/outer.so", { needed: ["inner.so"] });
    const old = make("old", { needed: ["outer.so"], rpath: "$ORIGIN/lib" });
    expect(found(old)).toEqual([inner, outer].sort());
    const newer = make("newer", { needed: ["outer.so"], runpath: "$ORIGIN/lib" });
    expect(() => found(newer)).toThrow(`the library inner.so, which ${outer} needs, is not found`);
  });

  test("in LD_LIBRARY_PATH, before RUNPATH", () => {
    make("second/a.so");
    const first = make("first/a.so");
    const program = make("program", { needed: ["a.so"], runpath: "$ORIGIN/second" });
    expect(found(program, [join(place, "first")])).toEqual([first]);
  });

  test("where a name is a path, and where a link leads", () => {
    const real = make("lib/a.so.1.2");
    symlinkSync(real, join(place, "lib/a.so"));
    expect(found(make("program", { needed: [join(place, "lib/a.so")] }))).toEqual([real]);
  });

  test("none twice, and no circle without an end", () => {
    const a = make("a.so", { needed: ["b.so"], runpath: "$ORIGIN" });
    const b = make("b.so", { needed: ["a.so"], runpath: "$ORIGIN" });
    expect(found(make("program", { needed: ["a.so", "b.so"], runpath: "$ORIGIN" }))).toEqual([a, b]);
  });

  test("those of another processor are passed over", () => {
    const wrong = make("wrong/a.so");
    const bytes = readFileSync(wrong);
    bytes.writeUInt16LE(183, 18);
    writeFileSync(wrong, bytes);
    const right = make("right/a.so");
    const program = make("program", { needed: ["a.so"], runpath: "$ORIGIN/wrong:$ORIGIN/right" });
    expect(found(program)).toEqual([right]);
  });
});

describe("a script needs", () => {
  test("its interpreter and what that needs", () => {
    const library = make("lib.so");
    const interpreter = make("interpreter", { needed: ["lib.so"], runpath: "$ORIGIN" });
    const script = join(place, "script");
    writeFileSync(script, `#! ${interpreter} -x\n`);
    expect(found(script)).toEqual([interpreter, library].sort());
  });

  test("no more than some interpreters", () => {
    const script = join(place, "script");
    writeFileSync(script, `#!${script}\n`);
    expect(() => found(script)).toThrow("too many interpreters");
  });
});

test("what is neither is told", () => {
  const file = join(place, "file");
  writeFileSync(file, "echo no shebang\n");
  expect(() => found(file)).toThrow(`${file} is neither a script nor a 64-bit ELF program`);
});

const programs = ["/bin/sh", "/usr/bin/git", "/usr/bin/perl", "/usr/bin/python3", "/usr/bin/curl"].filter(
  (path) => Bun.file(path).size > 0,
);
test.skipIf(lacksPrograms("ldd")).each(programs)("as the loader itself does: %s", (program) => {
  const said = Bun.spawnSync(["ldd", program]).stdout.toString();
  const paths = [...said.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => realpathSync(path!));
  expect(paths.length).toBeGreaterThan(0);
  expect(found(program)).toEqual([...new Set(paths)].sort());
});
