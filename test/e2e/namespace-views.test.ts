/** Files that show something: about the server, and about what an agent is and was doing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./harness.ts";
import { Barrier, refusal, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start({
    rules: [
      {
        match: { user: "expensive" },
        do: [{ text: "So." }, { usage: { input: 100, cacheRead: 40, output: 7, reasoning: 3, cost: 0.25 } }],
      },
      { match: { user: "/^run (.*)/s" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
      { match: { tool: "shell" }, do: [{ text: "Done." }] },
      { match: { user: "secret" }, do: [{ text: "Sure." }, { delay: 3_600_000 }] },
      { do: [{ text: "Said." }] },
    ],
  });
});
afterAll(() => world.stop());

const json = async (path: string) =>
  (await world.read(path))
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe("the root", () => {
  test("says what it is", async () => {
    expect(await world.read("version")).toMatch(
      /^name: ollie\nversion: \d+\.\d+\.\d+\ncommit: \S+\nprotocol: 9P2000\nsandbox: (enforced|partial|off)\nlandlock: (ABI \d+|none)\nsockets: .+\n/,
    );
    const help = await world.read("help");
    // It is part of the program, and nothing that a user might change.
    expect(existsSync(join(world.home.config, "help.txt"))).toBe(false);
    for (const { name } of await world.client.readDir("")) expect(help).toContain(name);
    const { agent } = await world.session();
    for (const { name } of await world.client.readDir(agent)) expect(help).toContain(name);
  });

  test("lists backends, models, agents and skills, a line each", async () => {
    await until("the backend was asked", async () => (await world.read("backends")).includes("reachable"));
    expect(await world.read("backends")).toBe("script\tscript\treachable\n");
    expect(await world.read("models")).toBe("backend=script model=script\n");
    for (const line of (await world.read("agents")).trimEnd().split("\n"))
      expect(line).toMatch(/^[\w-]+\t\S.*$/);
    mkdirSync(join(world.home.config, "skills/review"), { recursive: true });
    writeFileSync(
      join(world.home.config, "skills/review/SKILL.md"),
      "---\nname: review\ndescription: How to review\n---\nLook.\n",
    );
    expect(await world.read("skills")).toMatch(
      /^review\tHow to review\nsession-management\tHow to work .*\n$/,
    );
  });

  test("says why a backend cannot be used", async () => {
    const own = await World.start({
      env: {
        OLLIE_ENABLED_BACKENDS: "script,openai,nowhere",
        OLLIE_OPENAI_URL: "http://127.0.0.1:9",
        OLLIE_OPENAI_KEY: "k",
      },
    });
    try {
      const text = await until("all were asked", async () => {
        const shown = await own.read("backends");
        return shown.includes("not asked yet") ? undefined : shown;
      });
      const lines = text.trimEnd().split("\n");
      expect(lines.map((line) => line.split("\t")[0])).toEqual(["script", "openai", "nowhere"]);
      expect(lines[0]).toEndWith("\treachable");
      for (const line of lines.slice(1)) expect(line).not.toContain("\treachable");
      expect(lines[2]).toContain("OLLIE_NOWHERE_URL");
    } finally {
      await own.stop();
    }
  });

  test("counts in the format of Prometheus", async () => {
    await world.session();
    const metrics = await world.read("metrics");
    for (const line of metrics.trimEnd().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) ollie_\w+ .+|ollie_\w+(\{\w+="[^"]*"\})? \d+(\.\d+)?)$/);
    for (const name of ["sessions", "turns_total", "tool_calls_total", "queue_depth", "9p_requests_total"])
      expect(metrics).toContain(`# TYPE ollie_${name} `);
  });

  test("has a line for each agent in idx", async () => {
    const { name, path } = await world.session();
    await world.write(`${path}/agent/new`, "name=second model=m\n");
    const lines = (await world.read("session/idx"))
      .split("\n")
      .filter((line) => line.startsWith(`${name}\t`));
    expect(lines).toEqual([
      `${name}\tdefault\tidle\tscript\tscript\t${world.home.work}`,
      `${name}\tsecond\tidle\tscript\tm\t${world.home.work}`,
    ]);
  });
});

describe("lasterr", () => {
  const line = /^(\S+Z) (\/\S*): (.*)\n$/;

  test("keeps the words of the last refusal, of the user and of each session", async () => {
    const [one, two] = [await world.session(), await world.session()];
    expect(await world.read(`${one.path}/lasterr`)).toBe("");
    await refusal(world.write(`${one.agent}/cfg`, `${"k".repeat(200)}=1\n`));
    await refusal(world.write(`s/${two.name}/ctl`, "dance\n"));
    await refusal(world.read(`${two.agent}/prompt`));
    const [, time, path, words] = line.exec(await world.read(`${one.path}/lasterr`))!;
    expect(Math.abs(Date.now() - Date.parse(time!))).toBeLessThan(60_000);
    expect(path).toBe(`/${one.agent}/cfg`);
    expect(words).toStartWith(`Invalid argument: unknown key ${"k".repeat(200)}; there are backend model `);
    expect(words).toContain("responseFormat");
    expect(await world.read(`${two.path}/lasterr`)).toContain(
      ` /${two.agent}/prompt: permission denied: prompt cannot be read\n`,
    );
    expect(await world.read("lasterr")).toBe(await world.read(`${two.path}/lasterr`));
    await refusal(world.read("nonsense"));
    expect(await world.read("lasterr")).toContain(
      " /nonsense: file does not exist: the root has no nonsense",
    );
  });

  test("knows also what failed when a file was closed", async () => {
    const { path, agent } = await world.session();
    await refusal(world.write(`${agent}/prompt`, "\n"));
    expect(await world.read(`${path}/lasterr`)).toContain(`/${agent}/prompt: Invalid argument: empty prompt`);
  });

  test("has no newline in it, and errors are never longer than 128 bytes", async () => {
    const { path, agent } = await world.session();
    for (const text of [`${"ü".repeat(300)}=1\n`, `"two\nlines"\n`, `x="${"🌍".repeat(100)}\n`]) {
      const words = await refusal(world.write(`${agent}/cfg`, text));
      expect(Buffer.byteLength(words)).toBeLessThanOrEqual(128);
      expect(words).toStartWith("Invalid argument: ");
      expect((await world.read(`${path}/lasterr`)).trimEnd().split("\n").length).toBe(1);
    }
  });
});

describe("an agent", () => {
  test("says what it used and what that cost", async () => {
    const { agent } = await world.session();
    expect(await world.read(`${agent}/cost`)).toBe("costLast=$0.0000\ncostSession=$0.0000\n");
    await world.turn(agent, "expensive\n");
    await world.turn(agent, "expensive\n");
    expect(await world.read(`${agent}/cost`)).toBe("costLast=$0.2500\ncostSession=$0.5000\n");
    expect(await world.read(`${agent}/usage`)).toBe("in=280\nout=14\ncached=80\nreasoning=6\nrequests=2\n");
    expect(
      await until(
        "the window",
        async () => /^\d+ \/ \d+ \(\d+%\)\n$/.exec(await world.read(`${agent}/ctxsz`))?.[0],
      ),
    ).toStartWith("147 / ");
  });

  test("shows the messages and the system prompt as the model would get them", async () => {
    writeFileSync(join(world.home.work, "AGENTS.md"), "Speak softly.\n");
    const { agent } = await world.session();
    await world.turn(agent, "run echo out\n");
    const messages = await json(`${agent}/context`);
    expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect(messages[1].calls[0]).toMatchObject({
      name: "shell",
      args: JSON.stringify({ command: "echo out" }),
    });
    expect(messages[2]).toMatchObject({ id: messages[1].calls[0].id, name: "shell", ok: true });
    expect(messages[2].text).toStartWith("out");
    const system = await world.read(`${agent}/systemprompt`);
    expect(system).toContain(`- Folder: ${world.home.work}`);
    expect(system).toContain("Speak softly.");
  });

  test("shows its statechart, and where in it it is", async () => {
    const { agent } = await world.session();
    const machine = JSON.parse(await world.read(`${agent}/machine`));
    const states = Object.keys(machine.states);
    for (const state of ["idle", "thinking", "calling", "limitretry"]) expect(states).toContain(state);
    const diagram = await world.read(`${agent}/machine.mmd`);
    expect(diagram).toStartWith("stateDiagram-v2\n");
    for (const state of states)
      expect(diagram).toMatch(new RegExp(`^ +(\\[\\*\\]|\\w+) --> ${state}\\b`, "m"));
    const value = async () => JSON.parse(await world.read(`${agent}/snapshot`)).value;
    expect(await value()).toBe("idle");
    const barrier = new Barrier(world.home);
    await world.write(`${agent}/prompt`, `run ${barrier.command()}`);
    await until("it calls", async () => (await value()) === "calling");
    const { context } = JSON.parse(await world.read(`${agent}/snapshot`));
    expect(context.calls).toMatchObject([{ name: "shell", status: "running" }]);
    barrier.go();
    await world.idle(agent);
    expect(await value()).toBe("idle");
  });

  test("keeps texts and secrets out of its snapshot and trace", async () => {
    const { agent, path } = await world.session("env.TOKEN=hunter2");
    await world.write(`${agent}/prompt`, "a secret prompt\n");
    await until("it speaks", async () => (await world.read(`${agent}/chat`)).includes("Sure."));
    await world.write(`${agent}/queue`, "a secret text\n");
    for (const file of ["snapshot", "trace", "machine"])
      expect(await world.read(`${agent}/${file}`)).not.toMatch(/secret|hunter2|Sure/);
    await world.write(`${path}/ctl`, "stop\n");
  });

  test("traces every transition, in order", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "run true");
    const trace = await json(`${agent}/trace`);
    for (const { time, actor, event, from, to } of trace) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      for (const word of [actor, event, to]) expect(word).toMatch(/./);
      expect(typeof from).toBe("string");
    }
    const own = trace.filter(({ actor }) => actor === "agent");
    for (let i = 1; i < own.length; i++) expect(own[i].from).toBe(own[i - 1].to);
    expect([own[0].from, own.at(-1).to]).toEqual(["idle", "idle"]);
    expect(own.map(({ to }) => to)).toContain("calling");
    const times = trace.map(({ time }) => time);
    expect([...times].sort()).toEqual(times);
    expect(trace.some(({ actor }) => actor.startsWith("call:"))).toBe(true);
  });

  test("whose config has gone can still be listed, read where it can, and removed", async () => {
    const file = join(world.home.config, "agents/passing.json");
    writeFileSync(file, JSON.stringify({ prompt: "Short-lived." }));
    const { agent, path } = await world.session("agent=passing");
    await world.turn(agent, "hello");
    writeFileSync(file, "{ not JSON");
    // Configs count as unchanged for a second.
    await until("the config is read again", async () =>
      (await refusal(world.read(`${agent}/systemprompt`)).catch(() => "")).includes("passing.json"),
    );
    expect((await world.client.readDir(agent)).length).toBeGreaterThan(20);
    expect(await world.read(`${agent}/reply`)).toBe("Said.\n");
    expect(await world.read("session/idx")).toContain("passing");
    await world.turn(agent, "and now?");
    expect(await world.read(`${agent}/chat`)).toMatch(/\[\[\[error [^\n]*\n.*passing\.json/);
    expect((await world.p9(["rm", "-r", path])).status).toBe(0);
  });
});
