import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "../../src/session/agent.ts";
import type { Session } from "../../src/session/session.ts";
import { answers, blocks, call, chat, finish, hanging, idle, say, until, World } from "../turn/world.ts";

let world: World;
beforeEach(async () => {
  world = await World.open();
});
afterEach(() => world.remove());

const keys = (words: Record<string, string> = {}) => new Map(Object.entries(words));
const create = (words: Record<string, string> = {}): Promise<Session> =>
  world.runtime.createSession(keys(words));
const names = () => world.runtime.sessions().map((session) => session.name);

/** The value that a `cfg` text has for a key. */
const value = (cfg: string, key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(cfg)?.[1];

/** An agent in the middle of a turn, until its tool `hold` is told to go. */
async function busy(session: Session): Promise<Agent> {
  const agent = session.agents()[0]!;
  world.tool("hold", `while [ ! -e "$OLLIE_CWD/go" ]; do sleep 0.02; done`);
  world.model = answers([call("1", "hold"), finish], [say("done"), finish]);
  await agent.submit("go");
  await until(agent, (state) => state === "calling: hold");
  return agent;
}

async function release(agent: Agent): Promise<void> {
  agent.stop();
  await idle(agent);
}

describe("creating a session", () => {
  test("makes the session and its first agent, named like its config", async () => {
    const session = await create({ name: "work" });
    expect(names()).toEqual(["work"]);
    expect(session.agents().map((agent) => agent.name)).toEqual(["default"]);
    expect((await create({ agent: "other" })).agents()[0]!.name).toBe("other");
  });

  test("gives ids that sort by time where no name is given", async () => {
    const first = await create();
    const second = await create();
    expect(first.name < second.name).toBe(true);
  });

  test("takes settings of session, agent, generation and environment in one go", async () => {
    const session = await create({ cwd: world.folder, model: "m", temperature: "0.5", "env.A": "b c" });
    expect(value(session.cfg(), "cwd")).toBe(world.folder);
    const agent = session.agents()[0]!;
    expect(value(agent.cfg(), "model")).toBe("m");
    expect(agent.profile.settings().params).toEqual({ temperature: 0.5 });
    expect(agent.profile.settings().cwd).toBe(world.folder);
    expect(session.env()).toBe("A=b c\n");
  });

  test.each([
    [{ nonsense: "1" }, /unknown key nonsense/],
    [{ name: "a/b" }, /slash/],
    [{ name: ".." }, /reserved|dot/],
    [{ name: "new" }, /taken by the tree/],
    [{ name: "x".repeat(129) }, /128/],
    [{ cwd: "relative" }, /absolute/],
    [{ cwd: "/no/such/folder" }, /no such folder/],
    [{ backend: "nonsense" }, /no backend nonsense/],
    [{ agent: "nonsense" }, /no agent nonsense/],
    [{ temperature: "warm" }, /temperature=warm/],
    [{ maxTokens: "1.5" }, /maxTokens=1.5/],
    [{ remote: "u@h" }, /cannot reach other hosts/],
    [{ from: "x" }, /not built in/],
    [{ "env.OLLIE_ADDR": "x" }, /set by ollie itself/],
    [{ "env.OLLIE_TOOL_MEMORY": "1G" }, /number of MiB/],
  ])("refuses %p and leaves nothing behind", async (words, message) => {
    await expect(create(words as Record<string, string>)).rejects.toThrow(message);
    expect(names()).toEqual([]);
    expect(readdirSync(join(world.folder, "state", "sessions"))).toEqual([]);
  });

  test("refuses a name that is taken", async () => {
    await create({ name: "a" });
    await expect(create({ name: "a" })).rejects.toThrow("session a exists");
  });

  test("lets only one of two at the same time have the name", async () => {
    const results = await Promise.allSettled([create({ name: "a" }), create({ name: "a" })]);
    expect(results.map((result) => result.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(names()).toEqual(["a"]);
  });

  test("can be amended, all or nothing", async () => {
    const session = await create();
    await world.runtime.amendSession(
      session,
      keys({ name: "b", cwd: world.folder, model: "m", "env.X": "1" }),
    );
    expect(names()).toEqual(["b"]);
    expect(value(session.agents()[0]!.cfg(), "model")).toBe("m");
    await expect(world.runtime.amendSession(session, keys({ name: "c", topP: "7" }))).rejects.toThrow(
      "topP=7",
    );
    expect(names()).toEqual(["b"]);
  });
});

describe("agents of a session", () => {
  test("are added in order, named after their config, with a number where that is taken", async () => {
    const session = await create();
    const agents: Record<string, string>[] = [{}, { agent: "other" }, { name: "third" }];
    for (const words of agents) await session.createAgent(keys(words));
    expect(session.agents().map((agent) => agent.name)).toEqual(["default", "default-2", "other", "third"]);
    await expect(session.createAgent(keys({ name: "third" }))).rejects.toThrow("agent third exists");
  });

  test("do not take keys of the session", async () => {
    const session = await create();
    await expect(session.createAgent(keys({ sandbox: "x" }))).rejects.toThrow("unknown key sandbox");
  });

  test("keep their place and their turn over a rename", async () => {
    const session = await create();
    await session.createAgent(keys({ name: "second" }));
    const agent = await busy(session);
    await agent.rename("zz");
    expect(session.agents().map((one) => one.name)).toEqual(["zz", "second"]);
    expect(agent.state).toBe("calling: hold");
    await release(agent);
    await expect(agent.rename("second")).rejects.toThrow("exists");
  });

  test("are told when they are removed, and their tools end", async () => {
    const session = await create();
    const agent = await busy(session);
    let told = 0;
    agent.watch(() => told++);
    await agent.remove();
    expect(agent.removed).toBe(true);
    expect(told).toBeGreaterThan(0);
    expect(session.agents()).toEqual([]);
    await expect(agent.submit("more")).rejects.toThrow("removed");
  });
});

describe("settings", () => {
  test("merge, unset with an empty value, and are there after a restart", async () => {
    const session = await create({ name: "s" });
    const agent = session.agents()[0]!;
    await agent.configure(keys({ temperature: "1", seed: "7" }));
    await agent.configure(keys({ temperature: "" }));
    expect([value(agent.cfg(), "temperature"), value(agent.cfg(), "seed")]).toEqual(["", "7"]);
    await world.stop();
    await world.start();
    expect(value(world.runtime.session("s")!.agents()[0]!.cfg(), "seed")).toBe("7");
  });

  test("of the agent win over its config, whose model goes with its backend", async () => {
    world.config = { backend: "fake", model: "from-config", params: { temperature: 1 } };
    const agent = (await create()).agents()[0]!;
    expect(agent.describe().model).toBe("from-config");
    await agent.configure(keys({ model: "own", temperature: "2" }));
    expect(agent.profile.settings()).toMatchObject({ model: "own", params: { temperature: 2 } });
    await agent.configure(keys({ model: "", temperature: "" }));
    expect(agent.profile.settings()).toMatchObject({ model: "from-config", params: { temperature: 1 } });
    world.config = { backend: "elsewhere", model: "from-config" };
    await agent.configure(keys({ backend: "fake" }));
    expect(agent.describe().model).toBe("fake-1");
  });

  test("lists every key, and what is unset as empty", async () => {
    const agent = (await create()).agents()[0]!;
    expect(agent.cfg()).toMatch(
      /^backend=fake\nmodel=fake-1\nagent=default\ncwd=.*\nmaxSteps=\ntemperature=\n/,
    );
  });

  test("change nothing when one of them is wrong", async () => {
    const agent = (await create()).agents()[0]!;
    await expect(agent.configure(keys({ seed: "1", topK: "x" }))).rejects.toThrow("topK=x");
    expect(value(agent.cfg(), "seed")).toBe("");
  });

  test("that a turn stands on are refused while it runs", async () => {
    const session = await create();
    const agent = await busy(session);
    await expect(agent.ctl("model other")).rejects.toThrow("running turn");
    await expect(session.configure(keys({ cwd: world.folder }))).rejects.toThrow("running turn");
    await agent.ctl("maxsteps 9");
    await release(agent);
    await agent.ctl("model other");
    expect(agent.describe().model).toBe("other");
  });

  test("of the environment reach the tools, and no other session", async () => {
    world.tool("show", `echo "A is [$A]"`);
    const [one, two] = [await create(), await create()];
    await one.changeEnv(keys({ A: "x y" }));
    for (const [session, shown] of [
      [one, "A is [x y]"],
      [two, "A is []"],
    ] as const) {
      world.model = answers([call("1", "show"), finish]);
      const agent = session.agents()[0]!;
      await agent.submit("go");
      await idle(agent);
      expect(chat(agent)).toContain(shown);
    }
    await one.changeEnv(keys({ A: "" }));
    expect(one.env()).toBe("");
  });
});

describe("cost", () => {
  const paid = (cost?: number) => ({
    type: "usage" as const,
    usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1, cost },
  });

  test("is that of the agent's last turn and of all agents of its session", async () => {
    const session = await create();
    const [one, two] = [session.agents()[0]!, await session.createAgent(keys({ name: "two" }))];
    world.model = answers([say("a"), paid(0.01), finish], [say("b"), paid(0.02), finish]);
    for (const agent of [one, two]) {
      await agent.submit("go");
      await idle(agent);
    }
    expect(one.cost()).toBe("costLast=$0.0100\ncostSession=$0.0300\n");
    expect(two.cost()).toBe("costLast=$0.0200\ncostSession=$0.0300\n");
    world.model = answers([say("c"), paid(), finish]);
    await one.submit("go");
    await idle(one);
    expect(two.cost()).toBe("costLast=$0.0200\ncostSession=unknown\n");
  });
});

describe("verbs", () => {
  test("that do not exist are named, with those that do", async () => {
    const agent = (await create()).agents()[0]!;
    await expect(agent.ctl("fly")).rejects.toThrow(/unknown verb fly; there are stop kill/);
    await expect(agent.session.ctl("fly")).rejects.toThrow(/unknown verb fly; there are stop kill/);
    await expect(agent.ctl("")).rejects.toThrow("unknown verb");
    await expect(agent.ctl("rn")).rejects.toThrow("missing");
  });

  test("typed into prompt answer in chat", async () => {
    const agent = (await create()).agents()[0]!;
    await agent.slash("/help");
    await agent.slash("/model other");
    expect(blocks(agent)).toMatch(/\[\[\[info\]\]\]\n\/stop .*\n/);
    expect(blocks(agent)).toContain("[[[info]]]\nmodel=other\n[[[end]]]\n");
  });

  test("clear begins a new history and leaves chat and costs", async () => {
    const agent = (await create()).agents()[0]!;
    await agent.submit("remember this");
    await idle(agent);
    await agent.ctl("clear");
    expect(await agent.context()).toBe("");
    expect(chat(agent)).toContain("remember this");
  });

  test("retry sends the last prompt again", async () => {
    const agent = (await create()).agents()[0]!;
    await expect(agent.ctl("retry")).rejects.toThrow("no prompt");
    await agent.submit("once");
    await idle(agent);
    await agent.ctl("retry");
    await idle(agent);
    expect(chat(agent).match(/^once$/gm)).toHaveLength(2);
  });

  test("save writes the transcript whole", async () => {
    const agent = (await create({ name: "s" })).agents()[0]!;
    world.model = answers([say("# Heading\n[[[not a marker"), finish]);
    await agent.submit("go");
    await idle(agent);
    await agent.ctl("save");
    const [file] = readdirSync(join(world.folder, "transcripts"));
    expect(readFileSync(join(world.folder, "transcripts", file!), "utf8")).toContain(
      "# Heading\n[[[not a marker\n",
    );
  });

  test("save in the middle of an answer holds what is there, and where it cannot write leaves nothing", async () => {
    const agent = (await create({ name: "s" })).agents()[0]!;
    world.model = hanging([say("as far as\nthis")]);
    await agent.submit("go");
    await until(agent, () => chat(agent).includes("this"));
    const folder = join(world.folder, "transcripts");
    await agent.ctl("save");
    expect(readFileSync(join(folder, readdirSync(folder)[0]!), "utf8")).toEndWith("as far as\nthis\n");
    await release(agent);
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "in the way");
    await expect(agent.ctl("save")).rejects.toThrow("the transcript could not be written");
    expect(readdirSync(world.folder).sort()).toEqual(["cwd", "state", "tools", "transcripts"]);
  });

  test("stop of the session stops all its agents", async () => {
    const session = await create();
    const agent = await busy(session);
    await session.ctl("stop");
    await idle(agent);
    expect(blocks(agent)).toContain("Stopped by the user.");
  });

  test("kill removes the session and everything on disk", async () => {
    const session = await create({ name: "s" });
    await session.ctl("kill");
    expect(names()).toEqual([]);
    expect(existsSync(join(world.folder, "state", "sessions", "s"))).toBe(false);
    await create({ name: "s" });
  });
});

describe("tools", () => {
  test("are loaded by the config, and by name", async () => {
    world.tool("hot", "true");
    world.tool("cold", "true", { tier: "cold" });
    const agent = (await create()).agents()[0]!;
    expect(agent.tools()).toEqual(["hot"]);
    await agent.changeTools(["cold", "-hot"]);
    expect(agent.tools()).toEqual(["cold"]);
    await expect(agent.changeTools(["hot", "nosuch"])).rejects.toThrow("no tool nosuch");
    await expect(agent.changeTools(["-hot"])).rejects.toThrow("not loaded");
    expect(agent.tools()).toEqual(["cold"]);
  });

  test("outside allowTools can neither be loaded nor called", async () => {
    world.tool("good", "true");
    world.tool("evil", `touch "$OLLIE_CWD/evil"`);
    world.config = { allowTools: ["good"] };
    const agent = (await create()).agents()[0]!;
    expect(agent.tools()).toEqual(["good"]);
    await expect(agent.changeTools(["evil"])).rejects.toThrow("allowTools");
    world.model = answers([call("1", "evil"), finish]);
    await agent.submit("go");
    await idle(agent);
    expect(existsSync(join(world.cwd, "evil"))).toBe(false);
  });

  test("that the config names and the host lacks are told, not fatal", async () => {
    world.config = { autoLoad: ["nosuch"] };
    const agent = (await create()).agents()[0]!;
    expect(blocks(agent)).toContain("do not exist on this host: nosuch");
  });

  test("of class exclusive are alone in the session", async () => {
    world.tool(
      "alone",
      `test -z "$(ls "$OLLIE_CWD")" && touch "$OLLIE_CWD/x" && sleep 0.1 && rm "$OLLIE_CWD/x"`,
      {
        concurrency: "exclusive",
      },
    );
    const session = await create();
    await session.createAgent(keys({ name: "two" }));
    world.model = async function* (request) {
      if (request.messages.at(-1)!.role === "user") yield call(`c${Math.random()}`, "alone");
      yield finish;
    };
    await Promise.all(session.agents().map((agent) => agent.submit("go")));
    await Promise.all(session.agents().map(idle));
    const results = (await Promise.all(session.agents().map((agent) => agent.context()))).join("");
    expect(results.match(/"ok":true/g)).toHaveLength(2);
  });
});
