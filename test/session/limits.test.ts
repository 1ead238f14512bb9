/** What tools may make: never more than the agent is that they belong to. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, realpathSync, rmdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { AgentConfig } from "../../src/config/agents.ts";
import type { PolicyRequest } from "../../src/sandbox/configs.ts";
import type { Agent } from "../../src/session/agent.ts";
import type { Session } from "../../src/session/session.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { answers, call, chat, finish, idle, say, World } from "../turn/world.ts";

let world: World;
let session: Session;
/** The agent whose tools make something. It works in `work/own`, its session in `work`. */
let maker: Agent;
let own: string;

/** Any tool that runs on its session's host. */
const tool = { remote: true } as Tool;

const keys = (words: Record<string, string> = {}) => new Map(Object.entries(words));
const value = (cfg: string, key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(cfg)?.[1];
const makeAgent = (words: Record<string, string> = {}, by = maker) => session.createAgent(keys(words), by);
const makeSession = (words: Record<string, string> = {}, by = maker) =>
  world.runtime.createSession(keys(words), by);
const agentsLeft = () => session.agents().map(({ name }) => name);
const sessionsLeft = () => world.runtime.sessions().map(({ name }) => name);

beforeEach(async () => {
  world = await World.open();
  own = join(realpathSync(world.cwd), "own");
  for (const folder of [own, join(own, "inner"), join(world.cwd, "own-not")]) mkdirSync(folder);
  session = await world.runtime.createSession(keys({ name: "s", cwd: world.cwd, sandbox: "strict" }));
  maker = session.agents()[0]!;
  await maker.configure(keys({ cwd: own }));
});
afterEach(() => world.remove());

describe("keys", () => {
  test.each(["sandbox", "remote", "share", "env.A", "env.PATH", "from", "hooks", "allowTools", "nonsense"])(
    "%s is not a tool's to set, neither at once nor afterwards",
    async (key) => {
      const message = `a tool cannot set ${key}; it may set name backend model agent cwd maxSteps`;
      await expect(makeSession({ name: "s__a", [key]: "x" })).rejects.toThrow(message);
      await expect(makeAgent({ [key]: "x" })).rejects.toThrow(message);
      const child = await makeSession({ name: "s__b" });
      await expect(world.runtime.amendSession(child, keys({ [key]: "" }), maker)).rejects.toThrow(message);
      const agent = await makeAgent();
      await expect(session.amendAgent(agent, keys({ [key]: "x" }), maker)).rejects.toThrow(message);
      expect(sessionsLeft()).toEqual(["s", "s__b"]);
      expect(agentsLeft()).toEqual(["default", "default-2"]);
    },
  );

  test("backend, model, steps and generation parameters are free", async () => {
    const words = { backend: "fake", model: "m", maxSteps: "3", temperature: "0.5" };
    const agent = await makeAgent({ name: "sub", ...words });
    const child = await makeSession({ name: "s__a", ...words });
    for (const one of [agent, child.agents()[0]!])
      for (const [key, wanted] of Object.entries(words)) expect(value(one.cfg(), key)).toBe(wanted);
  });
});

describe("names", () => {
  test.each(["a", "s", "s_a", "sa", "S__a", "s__", "s___a", "_s__a", "as__a", " s__a", "ss__a"])(
    "%p is no name for a child of s",
    async (name) => {
      await expect(makeSession({ name })).rejects.toThrow(
        "a tool's session is a child of its own: name=s__NAME",
      );
      const child = await makeSession({ name: "s__kept" });
      await expect(world.runtime.amendSession(child, keys({ name }), maker)).rejects.toThrow(
        "child of its own",
      );
      expect(sessionsLeft()).toEqual(["s", "s__kept"]);
    },
  );

  test.each(["s__../../x", "s__a/b", "s__a\0b", "s__a\nb", `s__${"x".repeat(126)}`])(
    "%p is no name at all",
    async (name) => {
      await expect(makeSession({ name })).rejects.toThrow("the name");
      expect(sessionsLeft()).toEqual(["s"]);
    },
  );

  test("left out, a free one is made", async () => {
    const child = await makeSession();
    expect(child.name).toMatch(/^s__[0-9a-z]+$/);
    await world.runtime.amendSession(child, keys({ name: "s__better" }), maker);
    expect(child.name).toBe("s__better");
  });

  test("of children of children begin with the whole name", async () => {
    const child = await makeSession({ name: "s__a" });
    const [agent] = child.agents();
    await expect(makeSession({ name: "s__b" }, agent)).rejects.toThrow("name=s__a__NAME");
    expect((await makeSession({ name: "s__a__b" }, agent)).name).toBe("s__a__b");
  });

  test("that the owner has given to a session take it out of reach", async () => {
    const child = await makeSession({ name: "s__a" });
    await child.rename("mine");
    await expect(world.runtime.amendSession(child, keys({ model: "m" }), maker)).rejects.toThrow(
      "a child of its own",
    );
    await expect(world.runtime.amendSession(child, keys({ name: "s__a" }), maker)).rejects.toThrow(
      "a child of its own",
    );
    expect(child.name).toBe("mine");
  });

  test("follow a rename of the session", async () => {
    await session.rename("t");
    await expect(makeSession({ name: "s__a" })).rejects.toThrow("name=t__NAME");
    expect((await makeSession({ name: "t__a" })).name).toBe("t__a");
  });
});

describe("agent configs", () => {
  const config = (configs: Record<string, Partial<AgentConfig>>) => {
    world.configs = configs;
  };

  test("that allow more tools are refused, also the one that is meant when none is named", async () => {
    config({
      default: {},
      narrow: { allowTools: ["read"] },
      same: { allowTools: ["read", "look"] },
      wide: { allowTools: ["read", "shell"] },
    });
    await maker.configure(keys({ agent: "same" }));
    const refused: [Record<string, string>, string][] = [
      [{ agent: "wide" }, "agent wide may use shell, which agent same may not"],
      [{ agent: "default" }, "agent default may use any tool, which agent same may not"],
      [{}, "agent default may use any tool, which agent same may not"],
    ];
    for (const [words, message] of refused) {
      await expect(makeAgent(words)).rejects.toThrow(message);
      await expect(makeSession(words)).rejects.toThrow(message);
    }
    expect((await makeAgent({ agent: "narrow" })).name).toBe("narrow");
    const agent = await makeAgent({ agent: "same" });
    await expect(session.amendAgent(agent, keys({ agent: "wide" }), maker)).rejects.toThrow("may use shell");
    const child = await makeSession({ agent: "narrow" });
    await expect(world.runtime.amendSession(child, keys({ agent: "default" }), maker)).rejects.toThrow(
      "may use any tool",
    );
    await world.runtime.amendSession(child, keys({ agent: "" }), maker);
    expect(child.agents()[0]!.profile.config().name).toBe("narrow");
  });

  test("that name another sandbox are refused", async () => {
    config({ default: {}, boxed: { sandbox: "box" }, other: { sandbox: "loose" } });
    await expect(makeAgent({ agent: "boxed" })).rejects.toThrow("agent boxed has sandbox box");
    await maker.configure(keys({ agent: "boxed" }));
    await expect(makeAgent({ agent: "other" })).rejects.toThrow("agent other has sandbox loose, not box");
    await expect(makeAgent({})).rejects.toThrow("agent default has sandbox default, not box");
    expect((await makeSession({ agent: "boxed" })).agents()[0]!.name).toBe("boxed");
  });
});

describe("what is inherited", () => {
  test("is the sandbox and the maker's folder, and no env", async () => {
    await session.changeEnv(keys({ SECRET: "x" }));
    const child = await makeSession({ name: "s__a" });
    expect(value(child.cfg(), "sandbox")).toBe("strict");
    expect(value(child.cfg(), "cwd")).toBe(own);
    expect(child.env()).toBe("");
    expect(child.agents()[0]!.profile.cwd()).toBe(own);
    // Not the session's folder, which lies above the maker's.
    expect((await makeAgent()).profile.cwd()).toBe(own);
  });

  test("is told by the templates", () => {
    expect(world.runtime.sessionTemplate(maker)).toContain(`cwd=${own}`);
    expect(world.runtime.sessionTemplate(maker)).not.toMatch(/^(sandbox|share|remote|env)/m);
    expect(session.agentTemplate(maker)).toContain(`cwd=${own}`);
  });
});

describe("the working folder", () => {
  test.each(["..", "../own-not", "inner/../..", "/", "/tmp", "~"])("%p is outside", async (path) => {
    const cwd = /^[/~]/.test(path) ? path : join(own, path);
    const message = /cwd=.*: a tool's agents work in .*own or below it/;
    await expect(makeAgent({ cwd })).rejects.toThrow(message);
    await expect(makeSession({ cwd })).rejects.toThrow(message);
    const agent = await makeAgent();
    await expect(session.amendAgent(agent, keys({ cwd }), maker)).rejects.toThrow(message);
    const child = await makeSession();
    await expect(world.runtime.amendSession(child, keys({ cwd }), maker)).rejects.toThrow(message);
    expect([agent.profile.cwd(), child.agents()[0]!.profile.cwd()]).toEqual([own, own]);
  });

  test("may be below the maker's, and cannot be unset to what lies above it", async () => {
    const agent = await makeAgent({ cwd: join(own, "inner") });
    expect(agent.profile.cwd()).toBe(join(own, "inner"));
    await session.amendAgent(agent, keys({ cwd: "" }), maker);
    expect(agent.profile.cwd()).toBe(own);
    const child = await makeSession({ cwd: join(own, "inner") });
    await world.runtime.amendSession(child, keys({ cwd: "" }), maker);
    expect(child.agents()[0]!.profile.cwd()).toBe(own);
  });

  test("is not left by a link", async () => {
    symlinkSync("/", join(own, "link"));
    await expect(makeAgent({ cwd: join(own, "link") })).rejects.toThrow("or below it");
    symlinkSync(join(own, "inner"), join(own, "good"));
    expect((await makeAgent({ cwd: join(own, "good") })).profile.cwd()).toBe(join(own, "inner"));
  });

  test.each(["agent", "session"])("of an %s is not left by a link that takes its place", async (kind) => {
    world.tool("where", "pwd -P");
    world.model = answers([call("1", "where"), finish], [say("done"), finish]);
    const cwd = join(own, "inner");
    const agent = kind === "agent" ? await makeAgent({ cwd }) : (await makeSession({ cwd })).agents()[0]!;
    rmdirSync(cwd);
    symlinkSync("/", cwd);
    await agent.submit("go");
    await idle(agent);
    expect(chat(agent)).toContain(
      `the working folder ${cwd} leads out of ${own} by now, where this agent has to stay; if that is meant, set cwd again`,
    );
    // Nor is it by what its own tools make.
    await expect(makeAgent({}, agent)).rejects.toThrow("leads out");
  });

  test("does not move the sandbox: that is made around the folder that bounds it, which no tool of it can put elsewhere", async () => {
    const asked: PolicyRequest[] = [];
    Object.assign(world.runtime.services, { cageFor: (request: PolicyRequest) => void asked.push(request) });
    const inner = join(own, "inner");
    const made = [
      maker,
      await makeAgent({ cwd: inner }),
      (await makeSession({ cwd: inner })).agents()[0]!,
      await makeAgent({ cwd: inner }, await makeAgent({ cwd: inner })),
    ];
    for (const agent of made) await agent.turns.host.callContext(tool).cage();
    expect(asked.map(({ cwd, bound }) => [cwd, bound])).toEqual([
      [own, own],
      [inner, own],
      [inner, own],
      [inner, own],
    ]);
  });

  test("is free again where the owner sets it, on the agent and on the session", async () => {
    const agent = await makeAgent({ cwd: join(own, "inner") });
    await agent.configure(keys({ cwd: "/" }));
    expect(() => agent.turns.host.callContext(tool)).not.toThrow();
    const child = await makeSession({ cwd: join(own, "inner") });
    await child.configure(keys({ cwd: "/" }));
    expect(() => child.agents()[0]!.turns.host.callContext(tool)).not.toThrow();
    expect(child.cfg()).not.toContain("within");
  });
});

describe("share", () => {
  test("lists names of sessions, with commas", async () => {
    const other = await world.runtime.createSession(keys({ name: "o", share: "a, s ,b" }));
    expect(["a", "s", "b"].map((name) => other.shares(name))).toEqual([true, true, true]);
    expect(["", "o", "s,b", "a, s", " s"].map((name) => other.shares(name))).toEqual(Array(5).fill(false));
    await other.configure(keys({ share: "" }));
    expect(other.shares("s")).toBe(false);
  });
});
