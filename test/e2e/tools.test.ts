/** The shipped tools as agents have them: in the compiled server, in their sandbox, called by a scripted model. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { codeBlocks } from "../docs/markdown.ts";
import { lacks, lacksPrograms } from "../needs.ts";
import { startServer, type TestServer, until } from "./harness.ts";

const scenario = {
  rules: [
    { match: { user: "/^call (\\S+) (.*)/s" }, do: [{ calls: [{ name: "$1", args: "$2" }] }] },
    { match: { user: "/^Reply (\\w+) if/" }, do: [{ text: "$1" }] },
    { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
  ],
};

const lacksScreen = lacksPrograms("Xvfb", "scrot");

let server: TestServer;
let screen: Bun.Subprocess<"ignore", "pipe", "ignore"> | undefined;
let confined = false;
beforeAll(async () => {
  const env: Record<string, string> = {};
  if (!lacksScreen) {
    screen = Bun.spawn(["Xvfb", "-displayfd", "1", "-screen", "0", "320x200x24", "-nolisten", "tcp"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    const { value } = await screen.stdout.getReader().read();
    env.DISPLAY = `:${Buffer.from(value!).toString().trim()}`;
  }
  server = await startServer({ scenario, env });
  confined = /sandbox: (?:enforced|partial)/.test(await server.read("version"));
  for (const name of ["one", "two"]) {
    await server.create(`name=${name} cwd=${server.home.work}`);
    const names = (await server.read("tools")).split("\n").flatMap((line) => line.split("\t")[0] || []);
    await server.write(`s/${name}/agent/default/tools`, names.join("\n"));
  }
});
afterAll(async () => {
  await server.stop();
  screen?.kill();
});

const call = (tool: string, args: object, session = "one") =>
  server.ask(session, `call ${tool} ${JSON.stringify(args)}`);

test("what one session remembers another finds, in a file of the user's", async () => {
  const path = join(server.home.config, "memory/build.md");
  const said = await call("memory_remember", { topic: "Build", text: "The linker is mold." });
  expect(said).toContain(`Remembered in ${path}`);
  expect(readFileSync(path, "utf8")).toMatch(/^# Build\n\n- \d{4}-\d\d-\d\d: The linker is mold\.\n$/);
  expect(await call("memory_recall", { query: "linker" }, "two")).toContain("The linker is mold.");
  expect(readdirSync(join(server.home.config, "memory"))).toEqual(["build.md"]);
});

test("files are written, read and edited, but not outside of the sandbox", async () => {
  expect(await call("file_write", { path: "new/a.txt", content: "one\n" })).toContain("4 bytes written");
  expect(await call("file_read", { path: "new/a.txt" })).toContain("1\tone");
  expect(await call("file_edit", { path: "new/a.txt", old: "one", new: "two" })).toContain("+two");
  expect(await call("file_grep", { pattern: "tw." })).toContain("1: two");
  if (!confined) return;
  const outside = join(server.home.home, "outside.txt");
  expect(await call("file_write", { path: outside, content: "x" })).toContain(
    `the sandbox does not let tools write ${outside}`,
  );
  expect(existsSync(outside)).toBe(false);
});

test("the plan is kept", async () => {
  expect(await call("task_add", { tasks: ["first", "second"] })).toContain("2. [ ] second");
  expect(await call("task_check", { task: "first" })).toContain("1. [x] first");
  expect(await server.read("s/one/plan")).toBe("- [x] first\n- [ ] second\n");
  expect(await call("task_clear", {})).toContain("The plan has no tasks.");
});

test("tools are loaded and explained", async () => {
  await server.write("s/two/agent/default/tools", "-task_clear");
  expect(await call("tool_load", { names: ["task_clear"] }, "two")).toContain("Loaded: task_clear");
  expect(await server.read("s/two/agent/default/tools")).toContain("task_clear");
  expect(await call("tool_help", { name: "web_fetch" })).toContain("Follows up to 10 redirects");
});

test("a page is fetched, and a file saved where the next call finds it", async () => {
  const web = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) =>
      url.endsWith(".bin")
        ? new Response(new Uint8Array([1, 0, 2]), { headers: { "content-type": "application/x-thing" } })
        : new Response("<title>T</title><p>Hello", { headers: { "content-type": "text/html" } }),
  });
  try {
    expect(await call("web_fetch", { url: `http://127.0.0.1:${web.port}/` })).toContain("# T\n\nHello");
    const saved = await call("web_fetch", { url: `http://127.0.0.1:${web.port}/x.bin` });
    const [, file] = /Saved as (\S+)/.exec(saved)!;
    expect(await call("shell", { command: `od -An -tu1 ${file}` })).toMatch(/1 +0 +2/);
  } finally {
    await web.stop(true);
  }
});

test.skipIf(lacksScreen)("what reaches for the user's desktop needs somebody who allows it", async () => {
  expect(await call("gui_screenshot", {})).toStartWith(
    "gui_screenshot was not run: it needs the user's permission",
  );
});

// spectacle, where there is one, goes before scrot and needs a desktop of KDE's.
test.skipIf(lacksScreen || lacks("a host without spectacle", Bun.which("spectacle") === null))(
  "a picture of the screen is taken once the user allows it",
  async () => {
    const asked = server.read("elevate/wait");
    // Who waits there counts as somebody who can answer; until then the call is denied at once.
    const allowed = asked.then((line) => server.write("elevate/ctl", `allow ${line.split("\t")[0]} once`));
    let said = "";
    await until("the call", async () => {
      said = await call("gui_screenshot", {});
      return !said.includes("was not run");
    });
    await allowed;
    const [, path] = /^(\S+): 320 x 200 pixels, \d+ bytes, PNG$/m.exec(said)!;
    expect(said).toContain("elevated: allowed by the user");
    expect(await call("shell", { command: `od -An -c -j 1 -N 3 ${path}` })).toMatch(/P +N +G/);
  },
);

test("the skill session-management is there, and its commands do what it says", async () => {
  expect(await server.read("skills")).toStartWith("session-management\tHow to work with ollie's own files");
  const shown = await call("skill_load", { name: "session-management" });
  expect(shown).toContain("# Skill session-management");
  const blocks = codeBlocks(shown).filter(({ info }) => info === "sh");
  expect(blocks.length).toBe(6);
  await server.write("s/one/env", `PATH=${server.home.env.PATH}`);
  const said: string[] = [];
  for (const { text } of blocks) said.push(await call("shell", { command: `set -e\n${text}`, timeout: 60 }));
  const [own, plan, helper, several, child] = said as [string, string, string, string, string];
  for (const text of said) expect(text).not.toMatch(/\[exit|\[stderr\]/);
  expect(own).toContain("calling: shell");
  expect(own).toMatch(/^one\tdefault\t/m);
  expect(own).not.toMatch(/^two\t/m);
  expect(plan).not.toContain("denied");
  expect(await server.read("s/one/plan")).toContain("- [ ] find the failing test");
  expect(helper).toContain("yes");
  expect(several).toMatch(/red.*blue/s);
  expect(child).toContain("done");
  expect(await server.read("session/idx")).not.toContain("one__review");
});
