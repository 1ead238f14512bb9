/** What the programs say where a machine is not as it should be. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lacksRoot } from "../needs.ts";
import { dist, Home, type Outcome, startServer, type TestServer } from "./harness.ts";

setDefaultTimeout(60_000);

let server: TestServer;
let home: Home;
beforeAll(async () => {
  server = await startServer();
  ({ home } = server);
});
afterAll(() => server.stop());

const shell = (line: string, cwd = home.work): Promise<Outcome> => home.run(["/bin/sh", "-c", line], { cwd });
const failed = (stderr: string) => ({ status: 1, stdout: "", stderr });

describe("standard streams", () => {
  test.each([
    ["ollie-9p write session/new <&-", "ollie-9p: stdin is closed\n"],
    ["ollie-9p read version >&-", "ollie-9p: stdout is closed\n"],
    ["o ls >&-", "ollie-9p: stdout is closed\n"],
    ["olliesrv --help >&-", "olliesrv: stdout is closed\n"],
    ["ollie-9p read version >/dev/full", "ollie-9p: stdout cannot be written: no space left on device\n"],
    ["olliesrv status >/dev/full", "olliesrv: stdout cannot be written: no space left on device\n"],
  ])("%s", async (line, stderr) => {
    expect(await shell(line)).toEqual(failed(stderr));
  });

  test("/dev/null is none that is closed, and stderr may be", async () => {
    expect(
      await shell("ollie-9p write session/new </dev/null && ollie-9p read version >/dev/null"),
    ).toMatchObject({
      status: 0,
    });
    expect((await shell("ollie-9p read version 2>&-")).stdout).toContain("protocol: 9P2000");
  });
});

describe("folders", () => {
  const olliesrv = (env: Record<string, string>, ...args: string[]) =>
    home.run([join(dist, "olliesrv"), ...args], { env });

  test("a relative HOME is refused, and nothing is made in it", async () => {
    for (const command of ["start", "status", "init", "stop"])
      expect(await olliesrv({ HOME: "rel" }, command)).toEqual(
        failed('olliesrv: HOME must be an absolute path, not "rel"\n'),
      );
    expect(existsSync(join(home.work, "rel"))).toBe(false);
  });

  test("a home in which nothing can be made", async () => {
    const { status, stderr } = await olliesrv({ HOME: "/proc" }, "start");
    expect(stderr).toStartWith(
      "olliesrv: the state folder /proc/.local/state/ollie cannot be made (OLLIE_STATE_PATH or --state names another): ",
    );
    expect(status).toBe(1);
  });

  test("a runtime folder that is a file", async () => {
    const other = new Home();
    const file = join(other.folder, "file");
    writeFileSync(file, "");
    const env = { XDG_RUNTIME_DIR: file };
    const started = await other.run([join(dist, "olliesrv"), "start"], { env });
    expect(started).toMatchObject({ status: 1, stdout: "" });
    expect(started.stderr).toStartWith(`olliesrv: the folder ${file}/ollie cannot be made: `);
    expect(await other.run([join(dist, "ollie-9p"), "ls"], { env })).toEqual(
      failed(
        `ollie-9p: no server answers at unix!${file}/ollie/9p: there is no such socket, is the server running?\n`,
      ),
    );
    other.remove();
  });

  test("o new in a folder whose name is not UTF-8 names it", async () => {
    const { status, stdout, stderr } = await shell(
      `d=$(printf 'a\\377b'); mkdir "$d"; cd "$d"; o new 2>&1 | LC_ALL=C sed 's/\\xff/?/'`,
    );
    expect(stdout).toBe(
      `ollie-9p: Invalid argument: the text is not UTF-8\no: the name of this folder is not UTF-8: ${home.work}/a?b\n`,
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});

// Only root can make a socket another user's.
test.skipIf(lacksRoot())("another user's server is said to be that", async () => {
  mkdirSync(join(home.folder, "theirs"), { mode: 0o755 });
  const path = join(home.folder, "theirs/9p");
  const theirs = Bun.listen({ unix: path, socket: { open: (socket) => void socket.end(), data() {} } });
  chownSync(path, 65534, 65534);
  expect(await home.run([join(dist, "ollie-9p"), "-a", `unix!${path}`, "ls"])).toEqual(
    failed(
      `ollie-9p: the server at unix!${path} belongs to another user (uid 65534) and serves nobody else\n`,
    ),
  );
  theirs.stop(true);
});
