/** What lies in a working folder, or is set in an environment, to get code into ollie's own programs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dist, type Outcome, startServer, type TestServer, until } from "./harness.ts";

// The build may be a part of the first one.
setDefaultTimeout(60_000);

let server: TestServer;
let folder: string;
/** Grows when code of the folder has run. */
let traces: string;

beforeAll(async () => {
  server = await startServer({
    env: {
      BASH_ENV: "/nowhere/a",
      NODE_OPTIONS: "--no-warnings",
      PERL5OPT: "-w",
      LD_BIND_NOW: "1",
      PYTHONSTARTUP: "/nowhere/b",
    },
    scenario: {
      rules: [
        { match: { user: "read" }, do: [{ calls: [{ name: "file_read", args: { path: "text" } }] }] },
        { match: { user: "/^sh (.*)/s" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
        { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
      ],
    },
  });
  folder = server.home.work;
  traces = join(folder, "traces");
  layTraps();
});
afterAll(() => server.stop());

function layTraps(): void {
  const trap = `require("fs").appendFileSync(${JSON.stringify(traces)}, process.argv.join(" ") + "\\n"); module.exports = {};`;
  const file = (name: string, text: string) => writeFileSync(join(folder, name), text);
  file("text", "just a text\n");
  file("trap.js", trap);
  const path = join(folder, "trap.js");
  file("bunfig.toml", `preload = ["${path}"]\n[run]\npreload = ["${path}"]\n`);
  file(".bunfig.toml", `preload = ["${path}"]\n`);
  for (const name of [".env", ".env.local", ".env.production", ".env.development"])
    file(name, `BUN_OPTIONS=--preload ${path}\nOLLIE_TOOL=forged\nTRAPPED=yes\n`);
  const names = ["ollie:tool", "node:fs", "fs", "path", "*"];
  const paths = Object.fromEntries(names.map((name) => [name, ["./trap.js"]]));
  file(
    "tsconfig.json",
    JSON.stringify({ compilerOptions: { baseUrl: ".", paths, jsxImportSource: "./trap" } }),
  );
  file(
    "package.json",
    JSON.stringify({
      name: "olliesrv",
      type: "commonjs",
      imports: { "ollie:tool": "./trap.js" },
      browser: { fs: "./trap.js" },
    }),
  );
  for (const name of ["ollie:tool", "fs", "path", "bun", "diff", "ignore", "ollie-run"]) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    file(`node_modules/${name}/index.js`, trap);
    file(`node_modules/${name}/package.json`, '{"main":"index.js"}');
  }
}

const session = (env = "") => server.create(`cwd=${folder} ${env}`);
const trap = () => join(folder, "trap.js");

test("a working folder full of traps runs no code in a tool that ollie runs itself", async () => {
  expect(await server.ask(await session(), "read")).toContain("just a text");
  expect(existsSync(traces)).toBe(false);
});

test("nor in the programs that are started there", async () => {
  const programs = [
    ["olliesrv", "status"],
    ["olliesrv", "doctor"],
    ["ollie-9p", "ls", "/"],
    ["olliesrv", "--version"],
  ];
  const outcomes: Outcome[] = [];
  for (const [name, ...args] of programs)
    outcomes.push(await server.home.run([join(dist, name!), ...args], { cwd: folder }));
  expect(outcomes.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
  expect(existsSync(traces)).toBe(false);
});

describe("what a session's env has a program load", () => {
  /** The linker says on stderr that it cannot load these: that shows where they have come. */
  test.each([
    ["LD_PRELOAD", "/nowhere/library.so"],
    ["LD_LIBRARY_PATH", "/nowhere"],
    ["LD_AUDIT", "/nowhere/audit.so"],
    ["NODE_OPTIONS", "--require TRAP"],
    ["NODE_PATH", "FOLDER/node_modules"],
    ["BUN_INSPECT_PRELOAD", "TRAP"],
    ["BUN_RUNTIME_TRANSPILER_CACHE_PATH", "FOLDER/cache"],
    ["GLIBC_TUNABLES", "glibc.malloc.check=3"],
  ])("does not come to a tool that ollie runs itself: %s", async (name, value) => {
    const given = value.replace("TRAP", trap()).replace("FOLDER", folder);
    const named = await session(`env.${name}="${given}"`);
    const reply = await server.ask(named, "read");
    expect(reply).toContain("just a text");
    expect(reply).not.toContain("[stderr]");
    expect(existsSync(traces)).toBe(false);
    expect(await server.ask(named, `sh echo "it is $${name}"`)).toContain(`it is ${given}`);
  });

  test.each(["BUN_OPTIONS", "BUN_BE_BUN"])(
    "is refused where it would change ollie's programs: %s",
    async (name) => {
      const { status, stderr } = await server.home.run([join(dist, "ollie-9p"), "write", "session/new"], {
        stdin: `env.${name}=1\n`,
      });
      expect(status).toBe(1);
      expect(stderr).toContain(`${name} is set by ollie itself`);
    },
  );
});

test("nothing of the server's environment comes to a tool that could run code in it, or is secret", async () => {
  const reply = await server.ask(await session(), "sh env");
  const names = reply.split("\n").map((line) => line.split("=")[0]!);
  expect(names).toContain("PATH");
  for (const name of ["BASH_ENV", "NODE_OPTIONS", "PERL5OPT", "LD_BIND_NOW", "PYTHONSTARTUP"])
    expect(names).not.toContain(name);
});

test("a process that has left its session and cleared its environment ends with a server that is killed", async () => {
  const sleep = `3600.${process.pid}`;
  const name = await session();
  await server.write(`s/${name}/prompt`, `sh env -i setsid sleep ${sleep} & env -i sleep ${sleep}`);
  await until("both run", () => processesWith(sleep).length >= 2);
  await server.kill9();
  await until("both are gone", () => processesWith(sleep).length === 0);
  await server.start();
});

function processesWith(word: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, 2).join(" ") === `sleep ${word}`
      );
    } catch {
      return false;
    }
  });
}
