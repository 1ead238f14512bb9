/** The lsp_* tools with real language servers: small projects, each with something that only a server that understands it can know. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { lacks } from "../needs.ts";
import { shippedTools, type Workshop } from "./helper.ts";
import { session } from "./lsp-shop.ts";

// Each starts several processes, on machines that have other things to do.
setDefaultTimeout(120_000);

const bin = join(shippedTools, "../../node_modules/.bin");
const PATH = `${bin}:${process.env.PATH}`;
const missing = (...programs: string[]) =>
  lacks(
    programs.join(" and "),
    programs.every((program) => Bun.which(program, { PATH }) !== null),
  );

function project(files: Record<string, string>): Workshop {
  const shop = session({ PATH });
  for (const [name, text] of Object.entries(files)) shop.write(name, text);
  return shop;
}

describe.skipIf(missing("clangd"))("clangd", () => {
  const files = {
    "compile_flags.txt": "-Wall\n",
    "a.h": "int add(int a, int b);\n",
    "a.c": '#include "a.h"\n/** Adds. */\nint add(int a, int b) { return a + b; }\n',
    "b.c": '#include "a.h"\nint main(void) {\n\t/* é😀👨‍👩‍👧 */ return add(1, 2);\n}\n',
  };

  test("finds its way between files", async () => {
    const shop = project(files);
    expect(await shop.ok("lsp_definition", { path: "b.c", line: 3, column: 19 })).toBe(
      "a.h:1:5: int add(int a, int b);",
    );
    expect(await shop.ok("lsp_hover", { path: "b.c", line: 3, symbol: "add" })).toContain(
      "int add(int a, int b)",
    );
    // The other file has to be open before clangd knows it without a compile_commands.json.
    await shop.ok("lsp_symbols", { path: "a.c" });
    const references = await shop.ok("lsp_references", { path: "b.c", line: 3, symbol: "add" });
    expect(references).toContain("b.c:3:19: /* é😀👨‍👩‍👧 */ return add(1, 2);");
    expect(references).toContain("a.c:3:5: int add(int a, int b) { return a + b; }");
    expect(await shop.ok("lsp_symbols", { query: "add" })).toContain("a.c:3:5: function add");
    expect(await shop.ok("lsp_completion", { path: "b.c", line: 3, after: "return a" })).toContain(
      "add(int a, int b)",
    );
  });

  test("sees a header that has changed, and renames behind characters of several units", async () => {
    const shop = project(files);
    expect(await shop.ok("lsp_diagnostics", { path: "b.c" })).toBe("No problems in b.c");
    shop.write("a.h", "int other(int a, int b);\n");
    expect(await shop.ok("lsp_diagnostics", { path: "b.c" })).toMatch(/^b\.c:3:19: (warning|error): .*'add'/);
    shop.write("a.h", files["a.h"]);
    expect(await shop.ok("lsp_diagnostics", { path: "b.c" })).toBe("No problems in b.c");
    await shop.ok("lsp_rename", { path: "b.c", line: 3, symbol: "add", newName: "plus", apply: true });
    expect(readFileSync(shop.path("b.c"), "utf8")).toContain("\t/* é😀👨‍👩‍👧 */ return plus(1, 2);");
  });
});

describe.skipIf(missing("gopls", "go"))("gopls", () => {
  const files = {
    "go.mod": "module example.com/m\n\ngo 1.19\n",
    "main.go":
      'package main\n\nimport "fmt"\n\n// Greet greets.\nfunc Greet(name string) string {\n\treturn "🎉 hé " + name + suffix()\n}\n\nfunc main() {\n\tfmt.Println(Greet("x"))\n}\n',
    "other.go": 'package main\n\nfunc suffix() string { return "!" }\n',
  };

  test("finds its way between files", async () => {
    const shop = project(files);
    expect(await shop.ok("lsp_hover", { path: "main.go", line: 11, symbol: "Greet" })).toContain(
      "Greet greets.",
    );
    expect(await shop.ok("lsp_definition", { path: "main.go", line: 7, column: 28 })).toBe(
      'other.go:3:6: func suffix() string { return "!" }',
    );
    expect(await shop.ok("lsp_references", { path: "main.go", line: 6, symbol: "Greet" })).toStartWith(
      "2 in 1 file:",
    );
    expect(await shop.ok("lsp_symbols", { path: "main.go" })).toContain("main.go:10:6: function main");
    expect(await shop.ok("lsp_completion", { path: "main.go", line: 11, after: "fmt.Prin" })).toContain(
      "Println",
    );
  });

  test("sees files that change, also those that nobody has opened, and renames in them", async () => {
    const shop = project(files);
    const now = () => shop.ok("lsp_diagnostics", { path: "main.go" });
    expect(await now()).toBe("No problems in main.go");
    shop.write("other.go", "package main\n");
    expect(await now()).toMatch(/^main\.go:7:26: error: .*suffix/);
    shop.write("other.go", files["other.go"]);
    expect(await now()).toBe("No problems in main.go");
    const args = { path: "main.go", line: 7, symbol: "suffix", newName: "ending", apply: true };
    expect(await shop.ok("lsp_rename", args)).toStartWith("2 places in 2 files changed\n--- main.go\n");
    expect(readFileSync(shop.path("other.go"), "utf8")).toContain("func ending() string");
    expect(await now()).toBe("No problems in main.go");
  });
});

describe.skipIf(missing("typescript-language-server", "node"))("typescript-language-server", () => {
  const files = {
    "tsconfig.json": '{ "compilerOptions": { "strict": true, "types": [] } }\n',
    "a.ts": "export function add(a: number, b: number): number {\n  return a + b;\n}\n",
    "b.ts": 'import { add } from "./a";\n\nexport const s = "👨‍👩‍👧é"; export const n = add(1, 2);\n',
  };

  test("finds its way between files", async () => {
    const shop = project(files);
    const place = { path: "b.ts", line: 3, column: 41 };
    expect(await shop.ok("lsp_definition", place)).toBe(
      "a.ts:1:17: export function add(a: number, b: number): number {",
    );
    expect(await shop.ok("lsp_hover", place)).toContain("add(a: number, b: number): number");
    expect(await shop.ok("lsp_references", place)).toStartWith("3 in 2 files:\na.ts:1:17: ");
    expect(await shop.ok("lsp_symbols", { query: "add" })).toContain("function add");
    expect(await shop.ok("lsp_completion", { path: "b.ts", line: 3, after: "= ad" })).toStartWith("add\t");
  });

  test("sees files that change, and renames in all of them", async () => {
    const shop = project(files);
    const now = () => shop.ok("lsp_diagnostics", { path: "b.ts" });
    expect(await now()).toBe("No problems in b.ts");
    shop.write("a.ts", files["a.ts"].replace("a: number", "a: string"));
    expect(await now()).toContain("b.ts:3:45: error: Argument of type 'number' is not assignable");
    shop.write("a.ts", files["a.ts"]);
    expect(await now()).toBe("No problems in b.ts");
    await shop.ok("lsp_rename", { path: "b.ts", line: 3, symbol: "add", newName: "plus", apply: true });
    expect(readFileSync(shop.path("a.ts"), "utf8")).toStartWith("export function plus(");
    expect(readFileSync(shop.path("b.ts"), "utf8")).toBe(files["b.ts"].replaceAll("add", "plus"));
  });
});

test.skipIf(missing("intelephense", "node"))(
  "intelephense finds its way, and says what it cannot do",
  async () => {
    const shop = project({
      "composer.json": "{}\n",
      "a.php": "<?php\n/** Greets. */\nfunction greet(string $name): string {\n    return $name;\n}\n",
      "b.php": "<?php\n\n$x = /* 😀 */ greet('you');\n",
    });
    const place = { path: "b.php", line: 3, column: 14 };
    expect(await shop.ok("lsp_hover", place)).toContain("Greets.");
    expect(await shop.ok("lsp_definition", place)).toContain("a.php:");
    expect(await shop.ok("lsp_references", { path: "a.php", line: 3, symbol: "greet" })).toContain(
      "b.php:3:14: ",
    );
    expect(await shop.ok("lsp_diagnostics", { path: "b.php" })).toBe("No problems in b.php");
    shop.write("b.php", "<?php\n\n$x = greetings('you');\n");
    expect(await shop.ok("lsp_diagnostics", { path: "b.php" })).toContain("b.php:3:6: error: ");
    expect(await shop.no("lsp_rename", { path: "a.php", line: 3, symbol: "greet", newName: "hi" })).toContain(
      "intelephense: this server cannot do that",
    );
  },
);
