/** `s/`: sessions as older scripts have them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { OWRITE } from "../../src/ninep/file.ts";
import { refusal, type Served, send, serve } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const names = async (path: string) => (await served.client.readDir(path)).map((entry) => entry.name);

test("a session shows its own files and its first agent's, each name once", async () => {
  const own = (await names("session/a")).filter((name) => name !== "agent" && name !== "job");
  const agents = await names("session/a/agent/default");
  expect(await names("s/a")).toEqual([...new Set([...own, ...agents])].sort());
});

test("a name of both is the session's", async () => {
  await served.client.writeFile("s/a/cfg", "cwd=/srv\n");
  expect(served.session.keys.get("cwd")).toBe("/srv");
  expect(served.agent.keys.size).toBe(0);
  await served.client.writeFile("s/a/ctl", "save\n");
  expect(served.session.told).toEqual(["save"]);
});

test("any other is the first agent's, the same file as in the long view", async () => {
  await served.session.createAgent(new Map([["name", "another"]]));
  await served.client.writeFile("s/a/prompt", "hello\n");
  expect(served.agent.prompts).toEqual(["hello"]);
  expect(await served.client.readText("s/a/state")).toBe("thinking\n");
  const path = async (path: string) => (await served.client.stat(path)).qid.path;
  expect(await path("s/a/chat")).toBe(await path("session/a/agent/default/chat"));
  expect(await path("s/a/plan")).toBe(await path("session/a/plan"));
  expect(await path("s/a")).not.toBe(await path("session/a"));
});

test("the way up from a session leads to where it lives", async () => {
  const up = await (await served.client.walk("s/a")).walk([".."]);
  expect(up.qid.path).toBe((await served.client.stat("session")).qid.path);
});

test("the agents can be reached though they are not listed", async () => {
  expect(await served.client.readText("s/a/agent/default/state")).toBe("idle\n");
});

test("new and idx are those of session/", async () => {
  await served.client.writeFile("s/new", "name=developer agent=developer cwd=/srv\n");
  expect(served.runtime.session("developer")?.keys.get("agent")).toBe("developer");
  expect(await served.client.readText("s/idx")).toBe(await served.client.readText("session/idx"));
});

test("a session can be renamed and removed", async () => {
  const ctl = await served.client.openFile("s/a/ctl", OWRITE);
  await served.client.rename("s/a", "b");
  await send(ctl, "stop\n");
  expect(served.session.told).toEqual(["stop"]);
  for (const { name } of await served.client.readDir("s/b")) await served.client.remove(`s/b/${name}`);
  await served.client.remove("s/b");
  expect(served.runtime.sessions()).toEqual([]);
  expect(await refusal(send(ctl, "stop\n"))).toBe("file does not exist: session removed");
});

test("a session without agents shows its own files", async () => {
  await served.client.remove("session/a/agent/default");
  expect([...(await names("s/a")), "agent", "job"].sort()).toEqual(await names("session/a"));
  expect(await refusal(served.client.readText("s/a/state"))).toStartWith("file does not exist");
});
