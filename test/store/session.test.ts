import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import { Store } from "../../src/store/store.ts";
import { chatText, folder } from "./helper.ts";

const one = [{ name: "default", config: "default" }];

async function opened(path = folder()) {
  const { store, report } = await Store.open(path);
  return { path, store, report };
}

/** What the next server finds. */
async function reopened(store: Store) {
  await store.release();
  return opened(store.folder);
}

function kind(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (error) => (error instanceof Fault ? error.kind : `not a Fault: ${error}`),
  );
}

test("a session is found again with its settings, plan, agents and texts", async () => {
  const { store } = await opened();
  const session = await store.createSession("work", { cfg: { cwd: "/a b" }, env: { A: "1" } }, [
    { name: "zed", config: "developer", cfg: { model: "m" } },
    { name: "amy", config: "tester" },
  ]);
  await session.createAgent("bob", "reviewer");
  await session.update((json) => {
    json.env.B = "2";
    delete json.env.A;
  });
  await session.writePlan(Buffer.from("the plan\0\xff", "latin1"));
  session.agents()[1]!.chat.block("info", {}, "hello");
  const { store: next, report } = await reopened(store);
  expect(report).toEqual([]);
  expect(next.names()).toEqual(["work"]);
  const { session: again, report: mended } = await next.loadSession("work");
  expect(mended).toEqual([]);
  expect(again.json).toEqual(session.json);
  expect(again.json).toMatchObject({ cfg: { cwd: "/a b" }, env: { B: "2" } });
  expect(Buffer.from(again.plan()).toString("latin1")).toBe("the plan\0\xff");
  expect(again.agents().map((agent) => [agent.name, agent.state.config])).toEqual([
    ["zed", "developer"],
    ["amy", "tester"],
    ["bob", "reviewer"],
  ]);
  expect(chatText(again.agents()[1]!)).toContain("\nhello\n");
  await next.release();
});

test("everything is readable for the owner alone", async () => {
  const { path, store } = await opened(join(folder(), "made/by/us"));
  const session = await store.createSession("s", {}, one);
  await session.writePlan(Buffer.from("x"));
  const open: string[] = [];
  for (const name of ["", ...(readdirSync(path, { recursive: true }) as string[])])
    if (statSync(join(path, name)).mode & 0o077) open.push(name);
  expect(open).toEqual([]);
  expect(existsSync(session.tmp)).toBe(true);
  await store.release();
});

test("a name that is taken is refused, and the one that has it stays", async () => {
  const { store } = await opened();
  const first = await store.createSession("s", { cfg: { cwd: "/1" } }, one);
  expect(await kind(store.createSession("s", { cfg: { cwd: "/2" } }, one))).toBe("exists");
  const second = await store.createSession("t", {}, one);
  expect(await kind(second.renameTo("s"))).toBe("exists");
  expect(await kind(first.createAgent("default", "x"))).toBe("exists");
  const other = await first.createAgent("other", "x");
  expect(await kind(other.renameTo("default"))).toBe("exists");
  expect(await kind(store.createSession("u", {}, [...one, ...one]))).toBe("exists");
  expect(store.names()).toEqual(["s", "t"]);
  expect(first.json.cfg.cwd).toBe("/1");
  expect(first.agents().map(({ name }) => name)).toEqual(["default", "other"]);
  await store.release();
});

test("of two that create the same session at once, one gets it", async () => {
  const { store } = await opened();
  const tries = await Promise.all([1, 2, 3].map(() => kind(store.createSession("s", {}, one))));
  expect(tries.sort()).toEqual(["exists", "exists", "none"]);
  await store.release();
});

test("names that are no file names are refused", async () => {
  const { store } = await opened();
  const session = await store.createSession("s", {}, one);
  for (const name of ["", ".", "..", "a/b", "a\0b", "x".repeat(129), "ü".repeat(65), "\ud800"]) {
    expect(await kind(store.createSession(name, {}, one))).toBe("invalid");
    expect(await kind(store.createSession("other", {}, [{ name, config: "x" }]))).toBe("invalid");
    expect(() => session.createAgent(name, "x")).toThrow(Fault);
    expect(() => session.renameTo(name)).toThrow(Fault);
  }
  expect(store.names()).toEqual(["s"]);
  await store.release();
});

test("odd names are fine, also such as unfinished folders have", async () => {
  const { store } = await opened();
  const names = [" ", ".gone-x", ".new-1", "-rf", "lock.1", "ünï cödé", "x".repeat(128)];
  for (const name of names) await store.createSession(name, {}, [{ name, config: "x" }]);
  const { store: next, report } = await reopened(store);
  expect(report).toEqual([]);
  expect(next.names()).toEqual(names.sort());
  for (const name of names) {
    const { session } = await next.loadSession(name);
    expect(session.agents().map((agent) => agent.name)).toEqual([name]);
  }
  await next.release();
});

test("renaming keeps open files and later writes", async () => {
  const { store } = await opened();
  const session = await store.createSession("old", {}, one);
  const [agent] = session.agents();
  const block = agent!.chat.open("assistant", {});
  block.append("be");
  await Promise.all([session.renameTo("new"), session.writePlan(Buffer.from("p")), agent!.renameTo("amy")]);
  block.append("fore and after");
  block.close();
  agent!.append({ t: "prompt", id: "p", text: "x", how: "queue" });
  expect(session.name).toBe("new");
  expect((await store.loadSession("new")).session).toBe(session);
  expect(await kind(store.loadSession("old"))).toBe("missing");
  const { store: next } = await reopened(store);
  const { session: again } = await next.loadSession("new");
  expect(Buffer.from(again.plan()).toString()).toBe("p");
  expect(again.agents().map(({ name }) => name)).toEqual(["amy"]);
  expect(chatText(again.agents()[0]!)).toContain("\nbefore and after\n");
  expect(again.agents()[0]!.state.waiting).toHaveLength(1);
  await next.release();
});

test("what is removed is gone at once, and its files soon after", async () => {
  const { path, store } = await opened();
  const session = await store.createSession("s", {}, [...one, { name: "other", config: "x" }]);
  const deep = join(session.tmp, "deep/er");
  mkdirSync(deep, { recursive: true });
  writeFileSync(join(deep, "x"), "");
  chmodSync(deep, 0o555);
  const [agent, other] = session.agents();
  await agent!.remove();
  expect(session.agents().map(({ name }) => name)).toEqual(["other"]);
  expect(() => agent!.append({ t: "clear" })).toThrow("removed");
  expect(await kind(agent!.sync())).toBe("missing");
  await session.remove();
  expect(store.names()).toEqual([]);
  expect(() => other!.append({ t: "clear" })).toThrow("removed");
  expect(await kind(session.writePlan(Buffer.from("x")))).toBe("missing");
  expect(await kind(store.loadSession("s"))).toBe("missing");
  expect(await store.release()).toEqual([]);
  expect(readdirSync(path).filter((name) => name.startsWith("."))).toEqual([]);
});

test("a name is free again after a removal", async () => {
  const { store } = await opened();
  const first = await store.createSession("s", { cfg: { cwd: "/1" } }, one);
  await first.remove();
  const second = await store.createSession("s", {}, one);
  expect(second.json.cfg).toEqual({});
  expect((await store.loadSession("s")).session).toBe(second);
  await store.release();
});

test("unfinished folders of a crash are removed and told, what does not belong here is left and told", async () => {
  const { path, store } = await opened();
  await store.createSession("s", {}, one);
  for (const name of [".new-abc", ".gone-abc"]) {
    mkdirSync(join(path, name, "agents"), { recursive: true });
    writeFileSync(join(path, name, "agents/x"), "");
  }
  writeFileSync(join(path, "sessions/notes.txt"), "mine");
  const { store: next, report } = await reopened(store);
  expect(report).toHaveLength(2);
  expect(report[0]).toContain(".new-abc");
  expect(report[1]).toContain("notes.txt");
  await next.release();
  expect(readdirSync(path).filter((name) => name.startsWith("."))).toEqual([]);
  expect(readFileSync(join(path, "sessions/notes.txt"), "utf8")).toBe("mine");
  expect(next.names()).toEqual(["s"]);
});

test("a session.json that makes no sense is told and left alone", async () => {
  const { store } = await opened();
  const session = await store.createSession("s", {}, one);
  const json = join(session.folder, "session.json");
  for (const wrong of ["", "{", '{"v":2}', '{"v":1,"id":"x","created":1,"cfg":{"a":1},"env":{}}']) {
    writeFileSync(json, wrong);
    const { store: next } = await reopened(store);
    const failure = next.loadSession("s");
    expect(await kind(failure)).toBe("invalid");
    await expect(failure).rejects.toThrow("session.json");
    expect(readFileSync(json, "utf8")).toBe(wrong);
    await next.release();
  }
});

test("fields of session.json that a newer version writes survive a change", async () => {
  const { store } = await opened();
  const session = await store.createSession("s", {}, one);
  const json = join(session.folder, "session.json");
  writeFileSync(json, JSON.stringify({ ...session.json, jobs: [1] }));
  const { store: next } = await reopened(store);
  const { session: again } = await next.loadSession("s");
  await again.update((one) => {
    one.cfg.cwd = "/x";
  });
  expect(JSON.parse(readFileSync(json, "utf8"))).toMatchObject({ jobs: [1], cfg: { cwd: "/x" } });
  await next.release();
});

test("an agent that cannot be opened does not keep the others away", async () => {
  const { store } = await opened();
  const session = await store.createSession("s", {}, [...one, { name: "newer", config: "x" }]);
  const journal = join(session.agents()[1]!.folder, "journal.jsonl");
  writeFileSync(journal, readFileSync(journal, "utf8").replace('"v":1', '"v":2'));
  const { store: next } = await reopened(store);
  const { session: again, report } = await next.loadSession("s");
  expect(again.agents().map(({ name }) => name)).toEqual(["default"]);
  expect(report).toEqual([
    expect.stringMatching(/agent newer of session s could not be opened: .*another version/),
  ]);
  await next.release();
});
