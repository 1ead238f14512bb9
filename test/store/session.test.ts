import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import { Store } from "../../src/store/store.ts";
import { chatText, folder, parseChat } from "./helper.ts";

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

/** A session with two agents, an environment and a plan, closed again. */
async function closedSession() {
  const { store } = await opened();
  const session = await store.createSession("s", { cfg: { cwd: "/a b" }, env: { A: "1", B: "{" } }, [
    ...one,
    { name: "other", config: "x" },
  ]);
  await session.writePlan(Buffer.from("the plan"));
  await store.release();
  const { created } = session.agents()[0]!.state;
  return { path: store.folder, file: join(session.folder, "session.json"), json: session.json, created };
}

/** As a test needs them: the settings, and what chats and the folder say of a damage. */
async function openDamaged(path: string) {
  const { store } = await opened(path);
  const { session, report, damage } = await store.loadSession("s");
  const copies = readdirSync(session.folder).filter((name) => name.includes("damaged"));
  const told = session.agents().map((agent) => parseChat(chatText(agent)).map(({ text }) => text));
  expect(report).toEqual([]);
  return { store, session, damage, copies, told };
}

describe("a damaged session.json", () => {
  const lost = { cfg: {}, env: {} };
  const cases: [string, (text: string) => string, typeof lost][] = [
    ["that is empty", () => "", lost],
    ["of NULs", (text) => "\0".repeat(text.length), lost],
    ["that is cut", (text) => text.slice(0, text.indexOf('"B"')), { cfg: { cwd: "/a b" }, env: { A: "1" } }],
    [
      "with a comma too many",
      (text) => text.replace(/\n\}\n$/, ",\n}\n"),
      { cfg: { cwd: "/a b" }, env: { A: "1", B: "{" } },
    ],
    [
      "with a list for an object",
      (text) => text.replace('"env": {', '"env": [1], "x": {'),
      { cfg: { cwd: "/a b" }, env: {} },
    ],
    [
      "with a number for a text",
      (text) => text.replace('"1"', "1"),
      { cfg: { cwd: "/a b" }, env: { B: "{" } },
    ],
    ["that is no object", () => "[1]\n", lost],
  ];
  for (const [name, spoil, expected] of cases)
    test(`${name} costs no session: what can be read counts, the rest is told`, async () => {
      const { path, file, created } = await closedSession();
      const damaged = spoil(readFileSync(file, "utf8"));
      writeFileSync(file, damaged);
      const { store, session, damage, copies, told } = await openDamaged(path);
      const { cfg, env } = session.json;
      expect({ cfg, env }).toEqual(expected);
      expect(session.json.created).toBe(created);
      expect(Buffer.from(session.plan()).toString()).toBe("the plan");
      expect(copies).toEqual([expect.stringMatching(/^session\.json\.damaged-\d{4}-/)]);
      expect(readFileSync(join(session.folder, copies[0]!), "utf8")).toBe(damaged);
      expect(damage).toEqual([expect.stringContaining(`${file}: `)]);
      expect(damage[0]).toContain(copies[0]!);
      expect(told).toHaveLength(2);
      for (const blocks of told) expect(blocks).toEqual([expect.stringContaining(copies[0]!)]);
      await session.update(({ env }) => Object.assign(env, { C: "3" }));
      await store.release();
      const again = await openDamaged(path);
      expect([again.damage, again.copies, again.told]).toEqual([[], copies, told]);
      expect(again.session.json).toEqual(session.json);
      await again.session.remove();
      expect(again.store.names()).toEqual([]);
      await again.store.release();
    });

  test("that is missing is told, and the agents are there", async () => {
    const { path, file } = await closedSession();
    rmSync(file);
    const { store, session, damage, copies, told } = await openDamaged(path);
    expect(session.json).toMatchObject(lost);
    expect(damage).toEqual([expect.stringMatching(/session\.json: it was missing/)]);
    expect(copies).toEqual([]);
    for (const blocks of told) expect(blocks).toEqual([expect.stringContaining("it was missing")]);
    await store.release();
    expect((await openDamaged(path)).damage).toEqual([]);
  });

  test("cannot lead the session's private folder elsewhere", async () => {
    const { path, file, json } = await closedSession();
    writeFileSync(file, JSON.stringify({ ...json, id: "../sessions" }));
    const { store, session } = await openDamaged(path);
    expect(session.tmp).toMatch(/\/tmp\/\w+$/);
    await session.remove();
    expect(existsSync(store.sessionsFolder)).toBe(true);
    await store.release();
  });
});

test("a session.json of another version is left alone", async () => {
  const { path, file, json } = await closedSession();
  const newer = JSON.stringify({ ...json, v: 2, cfg: [] });
  writeFileSync(file, newer);
  const { store } = await opened(path);
  await expect(store.loadSession("s")).rejects.toThrow("another version");
  expect(readFileSync(file, "utf8")).toBe(newer);
  await store.release();
});

test("a folder that is no session is not made one", async () => {
  const { path, store } = await opened();
  mkdirSync(join(path, "sessions/stray"));
  await expect(store.loadSession("stray")).rejects.toThrow("is no session");
  expect(readdirSync(join(path, "sessions/stray"))).toEqual([]);
  await store.release();
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
  const { session: again, damage } = await next.loadSession("s");
  expect(again.agents().map(({ name }) => name)).toEqual(["default"]);
  expect(damage).toEqual([
    expect.stringMatching(/agent newer of session s could not be opened: .*another version/),
  ]);
  await next.release();
});
