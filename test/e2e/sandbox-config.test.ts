/** Sandbox configs, from a file to what a tool can do and what its result says. */
import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lacksSandbox } from "../needs.ts";
import { startServer, succeeded } from "./harness.ts";

setDefaultTimeout(60_000);

/** Every prompt is a command for the shell; the answer is its result. */
const scenario = {
  rules: [
    { match: { user: "/^! (.*)/s" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
    { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
    { do: [{ text: "Heard." }] },
  ],
};

const server = await startServer({ scenario });
const outside = join(server.home.home, "outside");
mkdirSync(outside);
afterAll(() => server.stop());
const none = lacksSandbox();

let session: string;
beforeEach(async () => {
  session = await server.create(`cwd=${server.home.work}`);
});

const shell = (command: string) => server.ask(session, `! ${command}`);

describe.skipIf(none)("a tool in its sandbox", () => {
  test("is told what stopped it, and which rule would let it through", async () => {
    const said = await shell(`touch ${outside}/new`);
    expect(existsSync(join(outside, "new"))).toBe(false);
    // Where the test's home lies in /tmp, the tool does not even see it.
    expect(said).toMatch(
      /the sandbox does not let tools write .*\/outside\/new|\/outside exists, but tools have/,
    );
    expect(said).toContain('filesystem.rw: ["~/outside"] in ~/.config/ollie/sandbox/default.yaml');
  });

  test("gets what a config of the user grants, within 2 s and without a restart", async () => {
    const folder = join(server.home.config, "sandbox");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "wide.yaml"), 'filesystem: { rw: ["~/outside"] }\n');
    session = await server.create(`cwd=${server.home.work} sandbox=wide`);
    expect(await shell(`echo hello > ${outside}/granted && cat ${outside}/granted`)).toContain("hello");
  });

  test("commits with git, and cannot change what git runs", async () => {
    const repository = join(server.home.work, "repository");
    mkdirSync(repository);
    succeeded(await server.home.run(["git", "init", "-q", repository]));
    const config = readFileSync(join(repository, ".git/config"), "utf8");
    session = await server.create(`cwd=${repository}`);
    const author = "-c user.name=a -c user.email=a@example.org";
    const said = await shell(
      `echo x > file; git add . && git ${author} commit -q -m first && git log --format=%s`,
    );
    expect(said).toContain("first");
    const evil = await shell(
      "echo '[core]' >> .git/config; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    );
    expect(readFileSync(join(repository, ".git/config"), "utf8")).toBe(config);
    expect(existsSync(join(repository, ".git/hooks/pre-commit"))).toBe(false);
    expect(evil).toContain("protected, since git runs what it says");
  });
});

describe.skipIf(none)("a project's file", () => {
  test("opens nothing until the user has approved it, and the first result says so", async () => {
    const project = join(server.home.work, "asking");
    mkdirSync(project);
    writeFileSync(join(project, ".ollie-sandbox.yaml"), "filesystem: { rw: [~/outside] }\n");
    session = await server.create(`cwd=${project}`);
    const first = await shell(`echo hello > ${outside}/asked`);
    expect(first).toContain(`olliesrv sandbox approve ${project}`);
    expect(existsSync(join(outside, "asked"))).toBe(false);
    expect(await shell("true")).not.toContain("sandbox approve");
    const shown = succeeded(await server.home.olliesrv("sandbox", "approve", project));
    expect(shown).toContain("filesystem.rw: ~/outside");
    await shell(`echo hello > ${outside}/asked`);
    expect(readFileSync(join(outside, "asked"), "utf8")).toBe("hello\n");
  });
});

describe("a sandbox config that does not exist or makes no sense", () => {
  test("is refused where it is named", async () => {
    const made = await server.o("new", "sandbox=wbe");
    expect(made.status).not.toBe(0);
    expect(made.stderr).toContain("no sandbox config wbe: there are default");
    const write = server.write(`session/${session}/cfg`, "sandbox=wbe\n");
    await expect(write).rejects.toThrow("no sandbox config wbe");
    expect(await server.read(`session/${session}/cfg`)).toContain("sandbox=\n");
  });

  test("is named by doctor", async () => {
    const folder = join(server.home.config, "sandbox");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "broken.yaml"), "filesystem: { wr: [/x] }\n");
    const { stdout } = await server.home.olliesrv("doctor");
    expect(stdout).toMatch(/^fail {2}sandbox .*broken\.yaml: unknown key filesystem\.wr/m);
  });

  test("olliesrv sandbox says so, for programs as JSON", async () => {
    const wrong = await server.home.olliesrv("sandbox", "open");
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).toContain("one of show, approve, revoke is right");
    const missing = await server.home.olliesrv("sandbox", "approve", outside);
    expect(missing.status).toBe(1);
    expect(missing.stderr).toContain("there is no .ollie-sandbox.yaml");
    const shown = JSON.parse(succeeded(await server.home.olliesrv("sandbox", "show", "--json")));
    expect(shown.folder).toBe(server.home.work);
    expect(shown.policy.filesystem.rwx).toContain(server.home.work);
    expect(shown.project).toBeNull();
  });
});
