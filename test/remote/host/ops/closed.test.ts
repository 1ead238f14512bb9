/** What no rule of a client opens on a host: other sessions, what programs and tools lie in, the way to the daemon. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Operations } from "../../../../src/remote/host/ops/engine.ts";
import { call, Host, request, run, sh } from "./ground.ts";

let host: Host;
let operations: Operations;

beforeEach(async () => {
  host = new Host();
  host.tool("hello", "echo hello");
  host.file("root/sessions/other/session.json", "secret");
  host.file(join(host.folder, "session.json"), "secret");
  host.file("root/stamps.json", "secret");
  host.file("run/ollie-remote/one.sock", "secret");
  host.file("run/ollie-remote/other.sock", "secret");
  host.file("base/bin/ollie-remote-1", "program");
  host.file("beside/file", "open");
  host.settings = {
    ...host.settings,
    sandboxes: { default: `filesystem: { rwx: ["${host.top}", "${host.top}/root", "${host.top}/base"] }\n` },
  };
});

afterEach(async () => {
  await operations.close();
  host.remove();
});

test("a rule for all that lies above them leaves them closed", async () => {
  operations = await host.open();
  const files = [
    "root/sessions/other/session.json",
    "root/sessions/one/session.json",
    "root/stamps.json",
    "run/ollie-remote/one.sock",
    "run/ollie-remote/other.sock",
  ];
  for (const file of files) {
    const report = await run(operations, request([sh(`cat ${host.top}/${file}`)]));
    expect(report.code, file).not.toBe(0);
    expect(report.output).not.toContain("secret");
  }
  const write = await run(operations, request([sh(`echo bad > ${host.top}/base/bin/ollie-remote-1`)]));
  expect(write.code).not.toBe(0);
  expect(readFileSync(join(host.top, "base/bin/ollie-remote-1"), "utf8")).toBe("program");
  // While all else is as the rule says, and tools run.
  expect(await run(operations, request([sh(`cat ${host.top}/beside/file`)]))).toMatchObject({
    output: "open",
  });
  expect((await run(operations, request([call("hello")]))).outcome!.text).toBe("hello");
});

test("a working folder of the session's own lies in a closed place, and can be worked in", async () => {
  mkdirSync(join(host.folder, "workspace"));
  host.cwd = join(host.folder, "workspace");
  operations = await host.open();
  expect(
    await run(operations, request([sh("echo text > file; mkdir folder; cat file; ls; cat ../session.json")])),
  ).toMatchObject({
    output: expect.stringMatching(/^text\nfile\nfolder\n\[stderr\]\n.*session.json/),
    code: 1,
  });
  expect((await run(operations, request([call("hello")]))).outcome!.text).toBe("hello");
  expect(existsSync(join(host.cwd, "file"))).toBe(true);
});

test("what would open a place is said of the user's config, not of the copy here", async () => {
  host.tool("spoil", `echo bad > ${host.top}/outside`);
  host.settings = { ...host.settings, sandboxes: { default: `filesystem: { ro: ["${host.top}"] }\n` } };
  operations = await host.open();
  const { text } = (await run(operations, request([call("spoil")]))).outcome!;
  expect(text).toContain("in sandbox/default.yaml of ollie's config folder on the user's own machine would");
  expect(text).not.toContain(host.folder);
});
