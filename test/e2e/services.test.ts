/** Programs that run beside the calls, in the compiled server and its sandbox: what they may, and when they end. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runs } from "../exec/helper.ts";
import { lacksPrograms } from "../needs.ts";
import { startServer, type TestServer, until } from "./harness.ts";

setDefaultTimeout(60_000);

const scenario = {
  rules: [
    { match: { user: "/^call (\\S+) (.*)/s" }, do: [{ calls: [{ name: "$1", args: "$2" }] }] },
    { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
  ],
};

/** Writes files, or answers with its pid. */
const keeper = `#!/usr/bin/env ollie-run
import { writeFileSync } from "node:fs";
import { service } from "ollie:tool";
await service.serve(async ({ write }: { write?: string }) => {
  if (write === undefined) return process.pid;
  writeFileSync(write.replace("TMP", process.env.TMPDIR!), "x");
  return "written";
});
`;
const tool = `#!/usr/bin/env ollie-run
import { print, readArgs, service } from "ollie:tool";
import { lacksPrograms } from "../needs.ts";
print(String(await service.ask(await readArgs())));
`;

let server: TestServer;
afterEach(() => server.stop());

async function start(env: Record<string, string> = {}): Promise<void> {
  server = await startServer({ scenario, env });
  const tools = join(server.home.config, "tools");
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "keeper.ts"), keeper, { mode: 0o755 });
  writeFileSync(join(tools, "kept.ts"), tool, { mode: 0o755 });
  const args = { type: "object", properties: { write: { type: "string" } } };
  const meta = { description: "Kept", cmd: "kept.ts", args, service: { cmd: "keeper.ts" } };
  writeFileSync(join(tools, "kept.meta"), JSON.stringify(meta));
}

/** A session that has the tool. */
async function session(...tools: string[]): Promise<string> {
  const name = await server.create();
  await server.write(`s/${name}/tools`, ["kept", ...tools].join("\n"));
  return name;
}

const ask = (session: string, args: object, tool = "kept") =>
  server.ask(session, `call ${tool} ${JSON.stringify(args)}`);
const pidOf = async (session: string) => Number.parseInt(await ask(session, {}), 10);

test("each session has its own, which ends with it, and the last one with the server", async () => {
  await start();
  const [one, two] = [await session(), await session()];
  const pids = [await pidOf(one), await pidOf(two)];
  expect(await pidOf(one)).toBe(pids[0]!);
  expect(new Set(pids).size).toBe(2);
  expect(pids.filter(runs)).toEqual(pids);
  expect((await server.p9("rm", "-r", `session/${one}`)).status).toBe(0);
  await until("the first is gone", () => !runs(pids[0]!));
  expect(runs(pids[1]!)).toBe(true);
  await server.restart();
  expect(runs(pids[1]!)).toBe(false);
  expect(await pidOf(two)).not.toBe(pids[1]!);
});

test("none outlives a server that is killed", async () => {
  await start();
  const pid = await pidOf(await session());
  await server.kill9();
  await until("it is gone", () => !runs(pid));
  await server.start();
});

test.each([
  ["the whole sandbox", ""],
  ["one without namespaces", "namespaces"],
])("in %s it writes to its own folders, and to nothing of the project", async (_what, without) => {
  await start(without ? { OLLIE_SANDBOX_WITHOUT: without } : {});
  const name = await session();
  const { work } = server.home;
  Bun.spawnSync(["git", "init", "-q", work]);
  for (const path of ["new", ".git/hooks/pre-commit", ".git/config", "sub/.git"])
    expect(await ask(name, { write: join(work, path) })).toMatch(/EACCES|EROFS|EPERM|ENOENT/);
  expect(existsSync(join(work, "new"))).toBe(false);
  expect(existsSync(join(work, ".git/hooks/pre-commit"))).toBe(false);
  expect(await ask(name, { write: "TMP/new" })).toStartWith("written");
  expect(await ask(name, { write: join(server.home.config, "tools/kept.meta") })).toMatch(
    /EACCES|EROFS|ENOENT/,
  );
});

test.skipIf(lacksPrograms("clangd"))(
  "the shipped lsp tools do their work in it, and the rename is the call's",
  async () => {
    await start();
    const name = await session("lsp_hover", "lsp_rename", "lsp_diagnostics");
    const { work } = server.home;
    writeFileSync(join(work, "compile_flags.txt"), "");
    writeFileSync(join(work, "a.c"), "int add(int a);\nint f(void) { return add(1); }\n");
    const place = { path: "a.c", line: 2, symbol: "add" };
    expect(await ask(name, place, "lsp_hover")).toContain("int add(int a)");
    expect(await ask(name, { ...place, newName: "plus", apply: true }, "lsp_rename")).toStartWith(
      "2 places in 1 file",
    );
    expect(await ask(name, { path: "a.c" }, "lsp_diagnostics")).toStartWith("No problems in a.c");
    expect(await Bun.file(join(work, "a.c")).text()).toContain("return plus(1)");
  },
);
