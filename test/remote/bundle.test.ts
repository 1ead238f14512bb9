/** What is brought to other hosts holds what runs tools, and nothing of what thinks. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { nativeParts } from "../../src/build/compile.ts";

const top = join(import.meta.dir, "../..");

/** The files of ours that a program is made of. */
async function parts(program: string, defines: Record<string, string>): Promise<string[]> {
  const result = await Bun.build({
    entrypoints: [join(top, `src/${program}.ts`)],
    root: top,
    target: "bun",
    splitting: true,
    // As src/build/compile.ts does: what cannot be reached is left out.
    minify: true,
    define: defines,
    external: nativeParts,
    metafile: true,
  });
  const inputs = Object.values(result.metafile!.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  return [...new Set(inputs)]
    .map((file) => join("/", file).slice(1))
    .map((file) => file.replace(/^(?:\.\.\/)+/, ""));
}

const thinking =
  /(?:^|\/)(?:src\/(?:session|turn|backends|namespace|ninep|store|elevate|ssh|cli\/server|cli\/client|remote\/client|remote\/bootstrap)|actors)\//;

test("ollie-remote has no agents, backends, sessions, prompts, 9P or SSH in it", async () => {
  const files = await parts("ollie-remote", { OLLIE_ON_HOST: "true" });
  expect(files.some((file) => file.endsWith("src/remote/host/daemon.ts"))).toBe(true);
  expect(files.some((file) => file.endsWith("src/tools/dispatch.ts"))).toBe(true);
  expect(files.filter((file) => thinking.test(file))).toEqual([]);
  expect(files.filter((file) => /node_modules\/(?:xstate|ssh2|pino|ollama|@ai-sdk)/.test(file))).toEqual([]);
});

test("olliesrv has them: the test above can see", async () => {
  const files = await parts("olliesrv", {});
  expect(files.some((file) => thinking.test(file))).toBe(true);
});
