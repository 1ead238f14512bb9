/** `cfg`, `env` and `tools`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { refusal, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const agentKeys = [
  ...["backend", "model", "agent", "cwd", "maxSteps", "temperature", "topP", "topK", "minP", "maxTokens"],
  ...["frequencyPenalty", "presencePenalty", "repetitionPenalty", "reasoning", "reasoningEffort", "stop"],
  ...["seed", "responseFormat"],
];
const lines = async (path: string) => (await world.read(path)).trimEnd().split("\n");

describe("cfg", () => {
  test("lists all keys, empty where nothing is set", async () => {
    const { path, agent } = await world.session();
    const keys = async (file: string) => (await lines(file)).map((line) => line.slice(0, line.indexOf("=")));
    expect(await keys(`${path}/cfg`)).toEqual(["name", "cwd", "remote", "sandbox", "share"]);
    expect(await keys(`${agent}/cfg`)).toEqual(agentKeys);
    expect(await lines(`${agent}/cfg`)).toEqual(expect.arrayContaining(["temperature=", "backend=script"]));
  });

  test("merges what is written, unsets what is empty, and takes back what it shows", async () => {
    const { agent } = await world.session();
    const cwd = join(world.home.work, `odd "name' \\`);
    mkdirSync(cwd, { recursive: true });
    await world.write(
      `${agent}/cfg`,
      `temperature=0.5 maxTokens=100\nstop='a "b" \\c'\ncwd="${cwd.replace(/["\\]/g, "\\$&")}"\n`,
    );
    await world.write(`${agent}/cfg`, "temperature=\nreasoning=true\n");
    const cfg = await world.read(`${agent}/cfg`);
    expect(cfg).toContain("\ntemperature=\n");
    expect(cfg).toContain("\nmaxTokens=100\n");
    expect(cfg).toContain("\nreasoning=true\n");
    await world.write(`${agent}/cfg`, cfg);
    expect(await world.read(`${agent}/cfg`)).toBe(cfg);
    expect(await world.read("session/idx")).toContain(`\t${cwd}\n`);
  });

  test("takes every key, and refuses numbers that are none or out of range", async () => {
    const { agent } = await world.session();
    for (const [key, right, wrong] of [
      ["maxSteps", "3", "0"],
      ["temperature", "0.7", "-1"],
      ["topP", "1", "1.1"],
      ["topK", "40", "1.5"],
      ["minP", "0.05", "x"],
      ["maxTokens", "4096", "1e999"],
      ["frequencyPenalty", "-2", "NaN"],
      ["presencePenalty", "0.5", "0x"],
      ["repetitionPenalty", "1.1", "-0.1"],
      ["reasoning", "false", "yes"],
      ["seed", "-7", "1.5"],
      ["cwd", world.home.home, "not/absolute"],
      ["backend", "script", "nosuch"],
      ["agent", "tester", "nosuch"],
    ] as const) {
      await world.write(`${agent}/cfg`, `${key}=${right}\n`);
      const before = await world.read(`${agent}/cfg`);
      expect(before).toContain(`${key}=${right}\n`);
      expect(await refusal(world.write(`${agent}/cfg`, `seed=99 ${key}=${wrong}\n`))).toContain(wrong);
      expect([key, await world.read(`${agent}/cfg`)]).toEqual([key, before]);
    }
  });

  test("of the session is where its agents work, unless they say otherwise", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/cfg`, `cwd=${world.home.home}\n`);
    expect(await lines(`${agent}/cfg`)).toContain(`cwd=${world.home.home}`);
    await world.turn(agent, "run pwd");
    expect(await world.read(`${agent}/reply`)).toContain(`It printed: ${world.home.home}`);
    await world.write(`${agent}/cfg`, `cwd=${world.home.work}\n`);
    await world.turn(agent, "run pwd");
    expect(await world.read(`${agent}/reply`)).toContain(`It printed: ${world.home.work}`);
  });

  test("lies over the agent config, which lies over the environment", async () => {
    const own = await World.start({ env: { OLLIE_MODEL: "of-environment" } });
    try {
      writeFileSync(
        join(own.home.config, "agents/special.json"),
        JSON.stringify({
          description: "For a test",
          prompt: "Be special.",
          model: "of-config",
          temperature: 0.25,
          maxSteps: 9,
        }),
      );
      const plain = await own.session();
      const special = await own.session("agent=special temperature=1");
      expect(await own.read(`${plain.agent}/cfg`)).toContain("model=of-environment\n");
      expect(special.agent).toEndWith("/special");
      const cfg = await own.read(`${special.agent}/cfg`);
      for (const line of ["model=of-config", "temperature=1", "maxSteps=9"])
        expect(cfg).toContain(`${line}\n`);
      await own.write(`${special.agent}/cfg`, "temperature= model=mine\n");
      expect(await own.read(`${special.agent}/cfg`)).toMatch(/^model=mine$.*^temperature=0.25$/ms);
      expect(await own.read(`${special.agent}/systemprompt`)).toStartWith("Be special.");
      expect(await own.read("agents")).toContain("special\tFor a test\n");
    } finally {
      await own.stop();
    }
  });
});

describe("env", () => {
  test("merges lines, unsets empty ones, is sorted, and takes back what it shows", async () => {
    const { path } = await world.session();
    await world.write(
      `${path}/env`,
      "B=2\nA=one two\n# a comment\nQ='  quoted  '\nL=\"two\\nlines\"\nE=a=b # kept\n",
    );
    await world.write(`${path}/env`, "B=\nC=3\n");
    const env = await world.read(`${path}/env`);
    expect(env).toBe('A=one two\nC=3\nE=a=b # kept\nL="two\\nlines"\nQ=  quoted  \n');
    await world.write(`${path}/env`, env);
    expect(await world.read(`${path}/env`)).toBe(env);
  });

  test("reaches the tools of this session, and no others", async () => {
    const [one, two] = [await world.session("env.WHO=one"), await world.session()];
    await world.write(`${two.path}/env`, "WHO=two words\n");
    const asked = async (agent: string) => {
      await world.turn(agent, 'run echo "[$WHO]"');
      return /It printed: (\[.*\])/.exec(await world.read(`${agent}/reply`))?.[1];
    };
    expect(await asked(one.agent)).toBe("[one]");
    expect(await asked(two.agent)).toBe("[two words]");
    await world.write(`${two.path}/env`, "WHO=\n");
    expect(await asked(two.agent)).toBe("[]");
  });

  test("refuses names that are none or ollie's own", async () => {
    const { path } = await world.session();
    for (const [text, words] of [
      ["A-B=1", "Invalid argument"],
      ["=1", "Invalid argument"],
      ["OLLIE_ADDR=unix!/x", "permission denied: OLLIE_ADDR is set by ollie itself"],
      ["BUN_BE_BUN=1", "permission denied"],
    ])
      expect(await refusal(world.write(`${path}/env`, `OK=1\n${text}\n`))).toStartWith(words!);
    expect(await world.read(`${path}/env`)).toBe("");
  });
});

describe("tools", () => {
  test("lists what is loaded, sorted; NAME loads and -NAME unloads, for the next request", async () => {
    const { agent } = await world.session();
    const before = await lines(`${agent}/tools`);
    expect(before).toEqual([...before].sort());
    expect(before).toContain("shell");
    await world.write(`${agent}/tools`, "reasoning_think\n-shell -file_read\n");
    const after = await lines(`${agent}/tools`);
    expect(after).toEqual(
      [...before.filter((name) => !/^(shell|file_read)$/.test(name)), "reasoning_think"].sort(),
    );
    await world.turn(agent, "run echo hello");
    expect(await world.read(`${agent}/chat`)).not.toContain("\nhello\n");
    await world.write(`${agent}/tools`, "shell\n");
    await world.turn(agent, "run echo hello");
    expect(await world.read(`${agent}/chat`)).toContain("\nhello\n");
  });

  test("changes all or nothing", async () => {
    const { agent } = await world.session();
    const before = await world.read(`${agent}/tools`);
    for (const [text, words] of [
      ["reasoning_think nosuch\n", "file does not exist: no tool nosuch on this host"],
      ["reasoning_think -reasoning_think_\n", "file does not exist: tool reasoning_think_ is not loaded"],
      [" \n", "Invalid argument: no tool named"],
    ])
      expect(await refusal(world.write(`${agent}/tools`, text!))).toStartWith(words!);
    expect(await world.read(`${agent}/tools`)).toBe(before);
  });

  test("keeps to what the agent may have", async () => {
    const { agent } = await world.session("agent=reviewer");
    expect(await refusal(world.write(`${agent}/tools`, "shell\n"))).toBe(
      "permission denied: tool shell is not in allowTools of agent reviewer",
    );
  });

  test("of the root is the catalogue, with a description of each", async () => {
    const catalogue = await lines("tools");
    for (const line of catalogue) expect(line).toMatch(/^\w+\t\S.*$/);
    const names = catalogue.map((line) => line.split("\t")[0]!);
    expect(names).toEqual([...names].sort());
    for (const name of ["shell", "file_read", "file_edit", "tool_load", "task_add"])
      expect(names).toContain(name);
  });
});
