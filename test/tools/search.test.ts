import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { Workshop } from "./helper.ts";

/** A small project with everything that a search has to think of. */
function project(): Workshop {
  const shop = new Workshop();
  mkdirSync(shop.path(".git/info"), { recursive: true });
  shop.write(".git/config", "needle\n");
  shop.write(".git/info/exclude", "excluded.ts\n");
  shop.write(".gitignore", "node_modules/\n*.log\n!keep.log\n/only-root.ts\n");
  shop.write("src/.gitignore", "generated.ts\n");
  for (const path of [
    "a.ts",
    "only-root.ts",
    "excluded.ts",
    "src/b.ts",
    "src/only-root.ts",
    "src/generated.ts",
    "src/deep/c.tsx",
    "node_modules/m/index.ts",
    "x.log",
    "keep.log",
    ".hidden.ts",
  ]) {
    shop.write(path, `first\nneedle in ${path}\nlast\n`);
  }
  symlinkSync(".", shop.path("src/cycle"));
  return shop;
}

const shop = project();
const lines = (text: string) => text.split("\n").sort();

describe("file_glob", () => {
  test("finds names in any folder, without what git ignores, and follows no cycle", async () => {
    expect(lines(await shop.ok("file_glob", { pattern: "*.ts" }))).toEqual([
      ".hidden.ts",
      "a.ts",
      "src/b.ts",
      "src/only-root.ts",
    ]);
    expect(lines(await shop.ok("file_glob", { pattern: "*.log" }))).toEqual(["keep.log"]);
  });

  test("takes paths, braces and a folder to look in", async () => {
    expect(lines(await shop.ok("file_glob", { pattern: "src/**/*.{ts,tsx}" }))).toEqual([
      "src/b.ts",
      "src/deep/c.tsx",
      "src/only-root.ts",
    ]);
    expect(await shop.ok("file_glob", { pattern: "*.tsx", path: "src/deep" })).toBe("src/deep/c.tsx");
    expect(await shop.ok("file_glob", { pattern: `${shop.cwd}/src/*.ts` })).toContain("src/b.ts");
    expect(await shop.ok("file_glob", { pattern: "./a.ts" })).toBe("a.ts");
  });

  test("looks into an ignored folder when that is named", async () => {
    expect(await shop.ok("file_glob", { pattern: "*.ts", path: "node_modules" })).toBe(
      "node_modules/m/index.ts",
    );
  });

  test("lists the newest first, and not endlessly", async () => {
    const many = new Workshop();
    for (let i = 0; i < 250; i++) utimesSync(many.write(`f${i}`, ""), 1000 + i, 1000 + i);
    const found = (await many.ok("file_glob", { pattern: "f*" })).split("\n");
    expect(found.slice(0, 2)).toEqual(["f249", "f248"]);
    expect(found.length).toBe(201);
    expect(found.at(-1)).toBe("[50 more; a narrower pattern or path shows them]");
  });

  test("says that there is nothing, or no folder", async () => {
    expect(await shop.ok("file_glob", { pattern: "*.rs" })).toBe("No file matches *.rs in .");
    expect(await shop.no("file_glob", { pattern: "*", path: "none" })).toContain("none is not a folder");
  });
});

describe("file_grep", () => {
  test("shows files and matching lines, without what git ignores", async () => {
    expect(await shop.ok("file_grep", { pattern: "need.e", glob: "*.ts" })).toBe(
      [".hidden.ts", "a.ts", "src/b.ts", "src/only-root.ts"]
        .map((path) => `${path}\n     2: needle in ${path}`)
        .join("\n"),
    );
    expect(await shop.ok("file_grep", { pattern: "needle" })).not.toMatch(
      /node_modules|\.git\/|generated|x\.log|excluded/,
    );
  });

  test("searches one file, with lines around and in any case", async () => {
    expect(
      await shop.ok("file_grep", { pattern: "NEEDLE", path: "a.ts", ignoreCase: true, context: 1 }),
    ).toBe("a.ts\n     1- first\n     2: needle in a.ts\n     3- last");
    expect(await shop.ok("file_grep", { pattern: "(?i)NEEDLE", path: "a.ts" })).toContain("2: needle");
    shop.write("apart.txt", "hit\n2\n3\n4\n5\nhit\nhit\n8\n");
    expect(await shop.ok("file_grep", { pattern: "^hit$", path: "apart.txt", context: 1 })).toBe(
      "apart.txt\n     1: hit\n     2- 2\n  --\n     5- 5\n     6: hit\n     7: hit\n     8- 8",
    );
  });

  test("shows of a long line the part that matters", async () => {
    shop.write("bundle.min.js", `${"x".repeat(2_000_000)}target${"y".repeat(2_000_000)}\n`);
    const found = await shop.ok("file_grep", { pattern: "target", path: "bundle.min.js" });
    expect(found).toContain("xtargety");
    expect(found).toContain("[column 1999901 of 4000006]");
    expect(found.length).toBeLessThan(500);
  });

  test("stops in time", async () => {
    shop.write("many.txt", "hit\n".repeat(10_000));
    const found = await shop.ok("file_grep", { pattern: "hit", path: "many.txt" });
    expect(found).toEndWith(
      "[stopped after 200 matching lines; a narrower pattern, path or glob shows the others]",
    );
    shop.write("wide.txt", `${"hit ".repeat(70)}\n`.repeat(150));
    const wide = await shop.ok("file_grep", { pattern: "hit", path: "wide.txt" });
    expect(wide).toContain("[stopped after");
    expect(wide).not.toContain("left out");
  });

  test("does not get lost in a pattern that can match in too many ways", async () => {
    shop.write("prose.txt", `${"a".repeat(200)}!\nneedle\n`);
    const refusal = await shop.no("file_grep", { pattern: "(a|aa)+$", path: "prose.txt" });
    expect(refusal).toContain('"pattern" takes too long');
  });

  test("searches very long lines in parts, without finding what only their borders make of it", async () => {
    const find = (pattern: string) => shop.ok("file_grep", { pattern, path: "one-line.json" });
    shop.write("one-line.json", `${"word ".repeat(100_000)}key = value;${" word".repeat(100_000)}`);
    expect(await find("key *= *\\w+;")).toContain("key = value;");
    expect(await find("key *= *\\w+;")).toContain("[very long lines were searched in parts;");
    expect(await find("^ +")).toStartWith("Nothing matches");
    expect(await find("wo+$")).toStartWith("Nothing matches");
    expect(await find("value")).not.toContain("in parts");
  });

  test("passes over binaries and says that nothing matches, or that the pattern is none", async () => {
    shop.write("bin", "\0needle\0");
    expect(await shop.ok("file_grep", { pattern: "needle", path: "bin" })).toBe(
      "Nothing matches needle in bin",
    );
    expect(await shop.no("file_grep", { pattern: "(" })).toContain("no regular expression");
    expect(await shop.no("file_grep", { pattern: "x", path: "none" })).toContain("none does not exist");
  });
});
