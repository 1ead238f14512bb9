import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder, Workshop, writeTool } from "./helper.ts";

function workshop(source: string): Workshop {
  const dir = folder();
  mkdirSync(join(dir, "lib"));
  writeFileSync(join(dir, "lib/more.ts"), "export const more: number = 42;\n");
  writeTool(dir, "t", `#!/usr/bin/env ollie-run\n${source}`, { args: { type: "object" } });
  return new Workshop(dir);
}

describe("a TypeScript tool", () => {
  test("has types, other files and the kit at its disposal, and whose call it is", async () => {
    const shop = workshop(`
      import { call, print, readArgs } from "ollie:tool";
      import { more } from "./lib/more.ts";
      const { who } = await readArgs<{ who: string }>();
      print(\`\${who} \${more} \${call.session} \${call.agent} \${call.cwd === process.cwd()}\`);
    `);
    expect(await shop.ok("t", { who: "me" })).toBe("me 42 s a true");
  });

  test("fails with words", async () => {
    const { ok, text } = await workshop('import { fail } from "ollie:tool"; fail("not like this");').call(
      "t",
      {},
    );
    expect(ok).toBe(false);
    expect(text).toBe("[stderr]\nnot like this\n[exit 1, unsandboxed]");
  });

  test.each([
    ["throws", 'throw new Error("oops");'],
    ["rejects later", 'setTimeout(async () => { throw new Error("oops"); }, 1);'],
  ])("that %s shows the message and no stack", async (_name, source) => {
    const { ok, text } = await workshop(source).call("t", {});
    expect(ok).toBe(false);
    expect(text).toBe("[stderr]\noops\n[exit 1, unsandboxed]");
  });

  test("that does not compile says where", async () => {
    const { ok, text } = await workshop("const = 1;").call("t", {});
    expect(ok).toBe(false);
    expect(text).not.toContain("runner.ts");
  });

  test("is not led astray by the folder it works in", async () => {
    const shop = workshop('import { print } from "ollie:tool"; print(process.env.SNEAKY ?? "clean");');
    shop.write("bunfig.toml", 'preload = ["./evil.ts"]\n');
    shop.write("evil.ts", 'console.log("PRELOADED");\n');
    shop.write(".env", "SNEAKY=1\n");
    expect(await shop.ok("t", {})).toBe("clean");
  });

  test("may print much at once", async () => {
    const shop = workshop('import { print } from "ollie:tool"; print("line\\n".repeat(500_000) + "end");');
    expect(await shop.ok("t", {})).toEndWith("line\nend");
  });
});

describe("the kit", () => {
  test("makes unified diffs, and says so where one would be too long", async () => {
    const shop = workshop(`
      import { print, unifiedDiff } from "ollie:tool";
      print(unifiedDiff("f", "a\\nb\\nc\\n", "a\\nB\\nc\\n"));
      const many = (text: string) => Array.from({ length: 300_000 }, (_, i) => text + i).join("\\n");
      print(unifiedDiff("f", many("x"), many("y")));
      print(unifiedDiff("f", "x".repeat(3_000_000), "y".repeat(3_000_000)));
    `);
    expect(await shop.ok("t", {})).toBe(
      [
        "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c",
        "(a diff too long to show: 300000 lines before, 300000 after)",
        "(a diff too long to show: 1 lines before, 1 after)",
      ].join("\n"),
    );
  });

  test("says when there is no tree to talk to", async () => {
    const shop = workshop('import { nine } from "ollie:tool"; await nine.read("version");');
    shop.ctx.address = () => ({ addr: `unix!${shop.dir}/none` });
    expect(await shop.no("t", {})).toContain("no server answers");
  });
});
