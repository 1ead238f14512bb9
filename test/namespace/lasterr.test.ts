import { afterEach, beforeEach, expect, test } from "bun:test";
import { agentPath, refusal, type Served, serve } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const line = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\S+): (.*)\n$/;

test("is empty while nothing was refused", async () => {
  expect(await served.client.readText("lasterr")).toBe("");
  expect(await served.client.readText("session/a/lasterr")).toBe("");
});

test("has the whole sentence, with time and path, where the error was cut", async () => {
  const key = "k".repeat(200);
  const told = await refusal(served.client.writeFile(`${agentPath}/cfg`, `${key}=1\n`));
  expect(Buffer.byteLength(told)).toBeLessThanOrEqual(128);
  const [, time, path, words] = line.exec(await served.client.readText("lasterr")) ?? [];
  expect(Math.abs(Date.now() - Date.parse(time!))).toBeLessThan(60_000);
  expect(path).toBe(`/${agentPath}/cfg`);
  expect(words).toBe(
    `Invalid argument: unknown key ${key}; there are name cwd model temperature agent share`,
  );
});

test("of a session knows only what was refused there", async () => {
  await served.runtime.createSession(new Map([["name", "b"]]));
  await refusal(served.client.writeFile("session/a/ctl", "fly\n"));
  await refusal(served.client.writeFile("s/b/ctl", "dance\n"));
  await refusal(served.client.readText("nonsense"));
  expect(await served.client.readText("session/a/lasterr")).toContain(
    "/session/a/ctl: Invalid argument: unknown verb fly",
  );
  expect(await served.client.readText("s/b/lasterr")).toContain(
    "/s/b/ctl: Invalid argument: unknown verb dance",
  );
  expect(await served.client.readText("lasterr")).toContain(
    "/nonsense: file does not exist: the root has no nonsense",
  );
});

test("knows what the modes refused", async () => {
  await refusal(served.client.readText("session/a/ctl"));
  expect(await served.client.readText("session/a/lasterr")).toContain("/session/a/ctl: permission denied");
});

test("does not count what the user interrupted", async () => {
  const control = new AbortController();
  const fid = await served.client.openFile(`${agentPath}/statewait`);
  const read = fid.read(0, 100, control.signal);
  await served.client.stat("");
  control.abort();
  expect(await refusal(read)).toBe("Interrupted system call");
  expect(await served.client.readText("lasterr")).toBe("");
});
