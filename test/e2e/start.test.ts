/** `npm start`: what a newcomer gets to see, on a terminal and without one. */
import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { build, dist, Home, run, succeeded, until } from "./harness.ts";
import { Terminal } from "./terminal.ts";

setDefaultTimeout(120_000);

const top = join(import.meta.dir, "../..");
let home: Home;
beforeAll(build);
beforeEach(() => {
  home = new Home();
  // npm itself, and nothing that is not needed: `sh`, `node` and what they need are where they always are.
  for (const name of ["node", "npm"]) symlinkSync(Bun.which(name)!, join(home.folder, name));
  home.env.PATH = `${home.folder}:/usr/bin:/bin`;
});
afterEach(async () => {
  await home.olliesrv("stop");
  home.remove();
});

const p9write = async (path: string, stdin: string) =>
  succeeded(await home.run([join(dist, "ollie-9p"), "write", path], { stdin }));
const p9 = async (...args: string[]) => (await home.run([join(dist, "ollie-9p"), ...args])).stdout;

describe("npm start without a terminal", () => {
  test("builds, starts a server, shows one turn, says how to go on, and ends with 0; the second time the same goes on", async () => {
    const { status, stdout } = await home.run(["npm", "start"], { cwd: top });
    expect(status).toBe(0);
    expect(stdout).toContain(`olliesrv runs as process `);
    expect(stdout).toMatch(/^\$ ls$/m);
    // A state stands behind what led to it and before what came of it.
    expect(stdout).toMatch(/^\$ ls\n(\[thinking\]\n)?This is ollie's/m);
    expect(stdout).not.toMatch(/^\{"command":"ls"\}\n\[thinking\]/m);
    expect(stdout).toMatch(/^package\.json$/m);
    expect(stdout).toMatch(/^\[idle\]$/m);
    expect(stdout).not.toContain("[[[");
    const { pid } = JSON.parse((await home.olliesrv("status", "--json")).stdout);
    expect(await p9("read", "session/idx")).toStartWith("main\tdefault\tidle\tscript\t");

    // What it says can be pasted into a shell.
    const advice = stdout.slice(stdout.indexOf("  export PATH="));
    const pasted = advice
      .split("\n")
      .filter((line) => line.trim() !== "" && !/o tui|olliesrv stop|ollie-9p ls/.test(line));
    const shell = await home.run(["sh", "-c", pasted.join("\n")]);
    expect(shell).toMatchObject({ status: 0, stderr: "" });
    expect(shell.stdout).toContain("rehearsal");

    const again = await home.run(["npm", "start"], { cwd: top });
    expect(again.status).toBe(0);
    expect(again.stdout).not.toContain("olliesrv runs as process");
    expect(again.stdout).toMatch(/^\[idle\]$/m);
    expect(JSON.parse((await home.olliesrv("status", "--json")).stdout).pid).toBe(pid);
    expect((await p9("read", "session/idx")).trim().split("\n")).toHaveLength(1);
  });

  test("a session that has lost its agent gets one", async () => {
    succeeded(await home.olliesrv("start"));
    await p9write("session/new", "name=main");
    await p9("rm", "-r", "session/main/agent/default");
    const { status, stdout } = await home.run(["npm", "start"], { cwd: top });
    expect(stdout).toMatch(/^\[idle\]$/m);
    expect(status).toBe(0);
  });

  test("a server that cannot start is an error with its reason", async () => {
    home.configure("nonsense\n");
    const { status, stderr } = await home.run(["npm", "start", "--silent"], { cwd: top });
    expect(stderr).toMatch(/^olliesrv: ~\/\.config\/ollie\/env:1: expected KEY=value.*\n$/);
    expect(status).toBe(1);
    home.configure("");
  });
});

test("npm start in a fresh clone sets everything up by itself", async () => {
  const clone = join(home.folder, "clone");
  succeeded(await home.run(["git", "clone", "-q", top, clone]));
  // An empty home, but not an empty cache: what is there already is not fetched again.
  const cache = succeeded(
    await run(["npm", "config", "get", "cache"], process.env as Record<string, string>),
  );
  const child = Bun.spawn(["npm", "start"], {
    cwd: clone,
    env: { ...home.env, npm_config_cache: cache.trim(), npm_config_prefer_offline: "true" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect({ status: await child.exited, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(/^\[idle\]$/m);
  expect(stdout).toContain(`export PATH="${clone}/dist:$PATH"`);
  const built = await run([join(clone, "dist/olliesrv"), "--version"], home.env);
  expect(built.stdout).toMatch(/^olliesrv \d+\.\d+\.\d+ \([0-9a-f]{12}\)\n$/);
});

describe("npm start on a terminal", () => {
  let terminal: Terminal;
  afterEach(() => terminal.close());

  test("with tmux it is o tui", async () => {
    terminal = await Terminal.open(home.env, top);
    await terminal.line("npm start --silent");
    await terminal.shows(/main\/default {2}idle/);
    await terminal.shows(/^main>$/m);
    await terminal.line("$ echo in tmux");
    await terminal.line(".");
    await terminal.shows(/shell answered: in tmux/);
    await terminal.line("/quit");
    await terminal.shows(/^\[exited\]\s+ready>/m);
  });

  test("without tmux it is a prompt and the chat below each other", async () => {
    terminal = await Terminal.open({ ...home.env, PATH: withoutTmux(home) }, top);
    await terminal.line("npm start --silent");
    await terminal.shows(/^main>$/m);
    await terminal.line("$ echo line by line");
    await terminal.line(".");
    await terminal.shows(/shell answered: line by line\n+main>\s*$/);
    expect(await terminal.screen()).toMatch(/main> \$ echo line by line\n {4}> \.\nThis is ollie's/);
    await terminal.line("/rename other");
    await terminal.shows("This agent is called other now.");
    await terminal.line("/nonsense");
    await terminal.shows(/^ollie: Invalid argument.*nonsense/m);
    await terminal.type("-l", "half a pro");
    await p9write(`session/main/agent/other/prompt`, "Reply elsewhere if asked");
    // What comes meanwhile stands above what is being typed.
    await terminal.shows(/^Reply elsewhere if asked\nelsewhere\n(.*\n)*main> half a pro$/m);
    await terminal.type("C-c");
    await terminal.shows(/\(\/quit leaves, \/stop stops the agent\)\n+main>\s*$/);
    await terminal.line("Reply whole if so");
    await terminal.line(".");
    await until("it arrived", async () =>
      (await p9("read", "session/main/agent/other/prompt.prev")).startsWith("Reply whole if so"),
    );
    await terminal.line("/quit");
    await terminal.shows("export PATH=");
    await terminal.shows(/ready>$/m);
    await until("the chat is followed no more", async () =>
      /^ollie_9p_connections 1$/m.test(await p9("read", "metrics")),
    );
  });
});

/** A PATH with what `npm start` needs and without tmux. */
function withoutTmux(place: Home): string {
  const bin = join(place.folder, "bin");
  mkdirSync(bin);
  for (const name of ["sh", "env", "sed", "cat", "git", "readlink", "sleep"])
    symlinkSync(Bun.which(name)!, join(bin, name));
  for (const name of ["node", "npm"]) symlinkSync(join(place.folder, name), join(bin, name));
  return bin;
}
