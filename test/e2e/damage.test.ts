/** What a user gets to see of a state folder that is damaged: everything that can still be opened, and a word on the rest. */
import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, dist, Home } from "./harness.ts";

setDefaultTimeout(60_000);

let home: Home;
beforeAll(build);
beforeEach(async () => {
  home = new Home();
  await home.olliesrv("start");
  for (const name of ["a", "b"]) await home.run([join(dist, "o"), "new", `name=${name}`]);
  await home.olliesrv("stop");
});
afterEach(async () => {
  await home.olliesrv("stop");
  home.remove();
});

const p9 = (...args: string[]) => home.run([join(dist, "ollie-9p"), ...args]);
const settings = () => join(home.state, "sessions/b/session.json");

test("a session whose settings are damaged is there, and start, chat and log say what was lost", async () => {
  writeFileSync(settings(), "{");
  const start = await home.olliesrv("start");
  expect(start.status).toBe(0);
  expect(start.stderr).toMatch(/^olliesrv: .*\/sessions\/b\/session\.json: it is not JSON.*\n$/);
  expect((await p9("ls", "session")).stdout).toMatch(/^b$/m);
  const chat = (await p9("read", "s/b/chat")).stdout;
  expect(chat).toMatch(
    /^\[\[\[info time=\S+\]\]\]\nThe settings of this session were damaged.*session\.json\.damaged-/,
  );
  await p9("rm", "-r", "session/b");
  expect((await p9("ls", "session")).stdout).not.toMatch(/^b$/m);
  await home.olliesrv("stop");
  expect((await home.olliesrv("start")).stderr).toBe("");
});

test("a home that cannot be written costs no agents, and start and doctor say what is used", async () => {
  home.env.OLLIE_STATE_PATH = join(home.folder, "state");
  // Nobody can make a folder there, not even root. (Nor in /proc, but there folders also come and go.)
  home.env.HOME = "/sys";
  const start = await home.olliesrv("start");
  expect(start.status).toBe(0);
  expect(start.stderr).toMatch(/^olliesrv: .*agents, prompts and tools are those in .*\/state\/shipped\n$/);
  const ask = await home.run([join(dist, "o"), "ask", "$ echo works"]);
  expect(ask).toMatchObject({ status: 0, stdout: expect.stringContaining("works") });
  expect((await home.olliesrv("doctor")).stdout).toMatch(
    /^warn {2}config +.* could not be written\n +→ .*\/shipped$/m,
  );
});

test("a session that this version cannot open is named by start, status and doctor, and left alone", async () => {
  const newer = readFileSync(settings(), "utf8").replace('"v": 1', '"v": 2');
  writeFileSync(settings(), newer);
  const sentence = /session b could not be opened: .*another version of ollie/;
  const start = await home.olliesrv("start");
  expect(start.status).toBe(0);
  expect(start.stderr).toMatch(sentence);
  expect((await home.olliesrv("status")).stdout).toMatch(sentence);
  expect(JSON.parse((await home.olliesrv("status", "--json")).stdout).damage).toEqual([
    expect.stringMatching(sentence),
  ]);
  expect((await home.olliesrv("doctor")).stdout).toMatch(
    new RegExp(`^warn {2}start +${sentence.source}`, "m"),
  );
  expect((await p9("ls", "session")).stdout).toMatch(/^a$/m);
  expect(readFileSync(settings(), "utf8")).toBe(newer);
});
