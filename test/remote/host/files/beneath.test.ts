/** No path and no race leads out of the working folder; each test with and without openat2(2). */
import { afterEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { fileMethods } from "../../../../src/remote/host/files/methods.ts";
import { O_PATH, openat2, RESOLVE_BENEATH } from "../../../../src/remote/host/files/native.ts";
import { type Ground, ground } from "./ground.ts";

const grounds: Ground[] = [];
function made(...[hard, kernel]: Parameters<typeof ground>): Ground {
  const one = ground(hard, kernel);
  grounds.push(one);
  return one;
}
afterEach(() => {
  for (const one of grounds.splice(0)) one.close();
});

/** Valid parameters of every method for a path. */
function everyMethod(path: unknown): [string, Record<string, unknown>][] {
  return Object.keys(fileMethods).flatMap((name): [string, Record<string, unknown>][] => {
    if (name === "file.rename")
      return [
        [name, { from: path, to: "fresh" }],
        [name, { from: "src/a.txt", to: path, replace: true }],
      ];
    if (name === "file.write") return [[name, { path, text: "x" }]];
    if (name === "file.cas") return [[name, { path, text: "x", sha256: "0".repeat(64) }]];
    if (name === "file.search") return [[name, { path, text: "OUTSIDE" }]];
    if (name === "file.remove") return [[name, { path, recursive: true }]];
    if (name === "file.mkdir") return [[name, { path, parents: true }]];
    return [[name, { path }]];
  });
}

function untouched({ outside }: Ground): void {
  expect(readdirSync(outside)).toEqual(["secret"]);
  expect(readFileSync(join(outside, "secret"), "utf8")).toBe("OUTSIDE");
}

describe.each([
  ["with openat2", true],
  ["name by name", false],
])("%s", (_, kernel) => {
  test.each([
    "..",
    "../outside/secret",
    "src/../../outside/secret",
    "/etc/passwd",
    "src/..",
    { b64: "Li4vb3V0c2lkZQ==" },
  ])("every method refuses %p", async (path) => {
    const one = made({}, kernel);
    for (const [name, params] of everyMethod(path))
      expect([name, await one.failing(name, params)]).toEqual([name, "file.escape"]);
    untouched(one);
  });

  test.each(["", "a\0b", `${"x".repeat(256)}`, `${"x/".repeat(2100)}x`])(
    "a path that is none is told: %#",
    async (path) => {
      const one = made({}, kernel);
      for (const [name, params] of everyMethod(path))
        expect([name, await one.failing(name, params)]).toEqual([name, "file.name"]);
    },
  );

  test.each(["away/secret", "nearby/a.txt", "away/new"])(
    "every method refuses the link on the way of %s",
    async (path) => {
      const one = made({}, kernel);
      for (const [name, params] of everyMethod(path)) {
        expect([name, await one.failing(name, params)]).toEqual([name, "file.symlink"]);
      }
      untouched(one);
    },
  );

  test.each(["away", "up", "near", "nearby"])(
    "%s itself is seen as a link, and neither read nor written through",
    async (path) => {
      const one = made({}, kernel);
      expect((await one.call("file.stat", { path })).kind).toBe("link");
      for (const name of [
        "file.read",
        "blob.get",
        "file.list",
        "file.walk",
        "file.search",
        "file.snapshot",
        "file.write",
        "file.cas",
      ]) {
        const [params] = everyMethod(path).filter(([method]) => method === name);
        expect([name, await one.failing(...params!)]).toEqual([name, "file.symlink"]);
      }
      untouched(one);
    },
  );

  test("links that stay inside are followed for reading where the policy says so, others never", async () => {
    const one = made({ follow_inside: true }, kernel);
    expect((await one.call("file.read", { path: "near" })).text).toBe("one\ntwo\n");
    expect(
      (await one.call("file.list", { path: "nearby" })).entries.map(({ path }: { path: string }) => path),
    ).toEqual(["a.txt"]);
    expect(await one.failing("file.read", { path: "up" })).toBe("file.escape");
    expect(await one.failing("file.read", { path: "away/secret" })).toBe("file.escape");
    expect(await one.failing("file.write", { path: "near", text: "x" })).toBe("file.symlink");
    expect(await one.failing("file.write", { path: "nearby/b.txt", text: "x" })).toBe("file.symlink");
  });

  test("a link in circles ends, and one through .. that comes back does not count as leaving", async () => {
    const one = made({ follow_inside: true }, kernel);
    symlinkSync("loop", join(one.work, "loop"));
    symlinkSync("../src/a.txt", join(one.work, "src/around"));
    expect(await one.failing("file.read", { path: "loop" })).toBe("file.symlink");
    expect((await one.call("file.read", { path: "src/around" })).text).toBe("one\ntwo\n");
  });

  test("what is denied stays denied under the name of a link", async () => {
    const one = made({ follow_inside: true }, kernel);
    writeFileSync(join(one.work, ".env"), "KEY=1");
    symlinkSync(".env", join(one.work, "innocent"));
    for (const name of ["file.read", "blob.get", "file.stat"])
      expect([name, await one.failing(name, { path: "innocent" })]).toEqual([name, "file.denied"]);
  });

  test("a folder that is swapped for a link again and again never leads outside", async () => {
    const one = made({}, kernel);
    mkdirSync(join(one.work, "d"));
    writeFileSync(join(one.work, "d/secret"), "inside");
    const swap = `const fs = require("node:fs");
      process.chdir(${JSON.stringify(one.work)});
      for (;;) {
        try { fs.renameSync("d", "e"); fs.symlinkSync("../outside", "d"); fs.unlinkSync("d"); fs.renameSync("e", "d"); } catch {}
      }`;
    const swapper = Bun.spawn([process.execPath, "-e", swap], {
      env: { PATH: process.env.PATH! },
      stdio: ["ignore", "ignore", "ignore"],
    });
    try {
      const seen = new Set<string>();
      for (let round = 0; round < 400; round++) {
        const read = await one.call("file.read", { path: "d/secret" }).catch((error) => error);
        seen.add(read.text ?? read.code);
        const wrote = await one.call("file.write", { path: "d/new", text: "x" }).catch((error) => error);
        seen.add(wrote.code ?? "written");
        if (round % 20 === 0) seen.add((await one.failing("file.remove", { path: "d/new" })) ?? "removed");
      }
      expect(seen).not.toContain("OUTSIDE");
      // A lost race is told as what it is.
      expect(
        [...seen].filter(
          (one) => !/^(inside|written|removed|file\.(missing|symlink|kind|conflict))$/.test(one),
        ),
      ).toEqual([]);
    } finally {
      swapper.kill("SIGKILL");
      await swapper.exited;
    }
    untouched(one);
  });
});

test("this kernel's openat2 is what is used, and keeps to its rules", () => {
  const { work } = made();
  const folder = openSync(work, "r");
  const file = openat2(folder, Buffer.from("near"), O_PATH, RESOLVE_BENEATH);
  expect(file).toBeDefined();
  for (const fd of [folder, file!]) closeSync(fd);
  const root = openSync(work, "r");
  expect(openat2(root, Buffer.from("away"), O_PATH, RESOLVE_BENEATH)).toBeUndefined();
  closeSync(root);
});

test("whatever the path, nothing outside is touched or seen", async () => {
  const one = made();
  const piece = fc.constantFrom(
    "..",
    ".",
    "away",
    "up",
    "near",
    "nearby",
    "src",
    "a.txt",
    "secret",
    "new",
    "",
    "outside",
    "~",
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 5 }),
      fc.boolean(),
      fc.nat(12),
      async (parts, absolute, which) => {
        const path = (absolute ? "/" : "") + parts.join("/");
        const calls = everyMethod(path).filter(([name]) => name !== "file.remove" && name !== "file.rename");
        const [name, params] = calls[which % calls.length]!;
        const answer = await one.call(name, params).catch((error) => String(error.message));
        expect(JSON.stringify(answer)).not.toMatch(/"text":"OUTSIDE|T1VUU0lERQ/);
        untouched(one);
      },
    ),
    { numRuns: 300 },
  );
});
