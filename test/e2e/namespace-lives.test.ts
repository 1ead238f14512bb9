/** Renaming, removing and restarting: what happens to sessions and agents while others use them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { OREAD, OWRITE } from "../../src/ninep/file.ts";
import { until } from "./harness.ts";
import { Barrier, later, refusal, send, take, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const names = async (path: string) => (await world.client.readDir(path)).map((entry) => entry.name);

describe("renaming", () => {
  for (const [how, rename] of [
    ["mv", async (name: string, to: string) => void (await world.p9(["mv", `session/${name}`, to]))],
    ["ctl", (name: string, to: string) => world.write(`session/${name}/ctl`, `rename ${to}\n`)],
    ["ctl rn", (name: string, to: string) => world.write(`session/${name}/ctl`, `rn ${to}\n`)],
    ["name", (name: string, to: string) => world.write(`session/${name}/name`, `${to}\n`)],
    ["cfg", (name: string, to: string) => world.write(`session/${name}/cfg`, `name=${to}\n`)],
    ["s/", async (name: string, to: string) => void (await world.p9(["mv", `s/${name}`, to]))],
  ] as const)
    test(`takes open files along (${how})`, async () => {
      const { name, path, agent } = await world.session();
      const to = `${name}-renamed`;
      const open = (file: string, mode: number) => world.client.openFile(`${agent}/${file}`, mode);
      const [chat, prompt, ctl, wait] = [
        await open("chat", OREAD),
        await open("prompt", OWRITE),
        await open("ctl", OWRITE),
        await open("statewait", OREAD),
      ];
      const plan = await world.client.openFile(`${path}/plan`, OWRITE);
      await send(prompt, "begun before\n");
      await send(plan, "planned before\n");
      await rename(name, to);
      expect(await names("session")).not.toContain(name);
      expect(await world.read(`session/${to}/name`)).toBe(`${to}\n`);
      await send(ctl, "maxsteps 5\n");
      await plan.clunk();
      await prompt.clunk();
      await take(wait);
      await world.idle(`session/${to}/agent/default`);
      expect(await take(chat)).toContain("You said: begun before\n");
      expect(await world.read(`session/${to}/plan`)).toBe("planned before\n");
      expect(await world.read(`session/${to}/agent/default/cfg`)).toContain("maxSteps=5\n");
      expect(await refusal(world.read(`${path}/plan`))).toStartWith(
        `file does not exist: no session ${name}`,
      );
    });

  test("an agent takes its open files along as well, by mv and by its verbs", async () => {
    const { path, agent } = await world.session();
    const chat = await world.client.openFile(`${agent}/chat`);
    await world.p9(["mv", agent, "one"]);
    await world.write(`${path}/agent/one/ctl`, "rename two\n");
    await world.write(`${path}/agent/two/prompt`, "/rn three\n");
    await world.turn(`${path}/agent/three`, "who am I");
    expect(await names(`${path}/agent`)).toEqual(["new", "three"]);
    expect(await take(chat)).toContain("You said: who am I\n");
    expect(await world.read("session/idx")).toContain(`${path.slice(8)}\tthree\tidle\t`);
  });

  test("goes on while a turn runs", async () => {
    const { name, agent } = await world.session();
    const barrier = new Barrier(world.home);
    await world.write(`${agent}/prompt`, `run ${barrier.command()}`);
    await world.client.rename(agent, "mover");
    await world.client.rename(`session/${name}`, `${name}-moved`);
    barrier.go();
    await world.idle(`session/${name}-moved/agent/mover`);
    expect(await world.read(`session/${name}-moved/agent/mover/reply`)).toContain("It printed: done");
  });

  test("to a name that is taken or none is refused, and all stays as it was", async () => {
    const { name, path, agent } = await world.session();
    const other = await world.session();
    await world.write(`${path}/agent/new`, "name=second\n");
    const before = await world.read("session/idx");
    for (const [from, to, words] of [
      [path, other.name, `file already exists: session ${other.name} exists`],
      [path, "new", "Invalid argument: the name"],
      [path, "idx", "Invalid argument: the name"],
      [path, "n".repeat(129), "Invalid argument: the name"],
      [agent, "second", `file already exists: agent second exists in session ${name}`],
      [agent, "new", "Invalid argument: the name"],
    ] as const)
      expect(await refusal(world.client.rename(from, to))).toStartWith(words);
    for (const file of [
      `${path}/plan`,
      `${path}/agent`,
      `${agent}/chat`,
      "session",
      "s",
      "help",
      "session/new",
    ])
      expect(await refusal(world.client.rename(file, "other"))).toStartWith("permission denied");
    await world.client.rename(path, name);
    expect(await world.read("session/idx")).toBe(before);
  });

  test("of many to one name lets one have it", async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => world.session()));
    const done = await Promise.allSettled(all.map(({ path }) => world.client.rename(path, "wanted")));
    expect(done.filter((one) => one.status === "fulfilled").length).toBe(1);
    const left = await names("session");
    expect(all.filter(({ name }) => left.includes(name)).length).toBe(5);
    expect(left).toContain("wanted");
  });
});

describe("removing", () => {
  const folder = (name: string) => join(world.home.state, "sessions", name);

  test("a session with rm -r ends its turns and tools, and leaves nothing of it", async () => {
    const { name, path, agent } = await world.session();
    await world.write(`${path}/agent/new`, "name=second\n");
    const pid = join(world.home.work, `pid-${name}`);
    await world.write(`${agent}/prompt`, `run echo $$ > ${pid}; sleep 1000`);
    await until("it runs", () => existsSync(pid) && readFileSync(pid, "utf8").endsWith("\n"));
    expect(existsSync(folder(name))).toBe(true);
    expect(await world.p9(["rm", "-r", path])).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await names("session")).not.toContain(name);
    await until("the tool ends", () => !existsSync(`/proc/${readFileSync(pid, "utf8").trim()}`));
    expect(existsSync(folder(name))).toBe(false);
    await world.write("session/new", `name=${name}\n`);
    expect(await world.read(`${agent}/chat`)).toBe("");
  });

  test("an agent with rm -r ends that one, and its session goes on, with none as well", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/agent/new`, "name=second\n");
    await world.write(`${agent}/prompt`, "forever\n");
    expect((await world.p9(["rm", "-r", agent])).status).toBe(0);
    expect(await names(`${path}/agent`)).toEqual(["new", "second"]);
    expect((await world.p9(["rm", "-r", `${path}/agent/second`])).status).toBe(0);
    expect(await names(`${path}/agent`)).toEqual(["new"]);
    await world.write(`${path}/agent/new`, "\n");
    await world.turn(agent, "I am new");
    expect(await world.read(`${agent}/reply`)).toBe("You said: I am new\n");
  });

  test("a file of a session or agent succeeds without effect", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/plan`, "kept\n");
    await world.turn(agent, "kept\n");
    for (const file of [
      ...(await names(agent)).map((name) => `${agent}/${name}`),
      `${path}/plan`,
      `${path}/agent/new`,
    ])
      await world.client.remove(file);
    await world.client.remove(`${path}/agent`);
    expect(await world.read(`${path}/plan`)).toBe("kept\n");
    expect(await world.read(`${agent}/reply`)).toBe("You said: kept\n");
  });

  test("anything else is refused", async () => {
    for (const path of ["", "help", "version", "session", "s", "session/new", "session/idx", "s/idx"])
      expect(await refusal(world.client.remove(path))).toStartWith("permission denied");
    expect((await world.p9(["rm", "session/nobody"])).stderr).toContain(
      "file does not exist: no session nobody",
    );
  });

  test("leaves whoever has a file open with an error that says so", async () => {
    const { path, agent } = await world.session();
    const files = [
      ...[`${agent}/chat`, `${agent}/state`, `${agent}/cfg`, `${path}/plan`, `${path}/name`].map(
        (file) => [file, OREAD] as const,
      ),
      ...[`${agent}/ctl`, `${agent}/prompt`, `${agent}/queue`, `${path}/env`, `${path}/plan`].map(
        (file) => [file, OWRITE] as const,
      ),
    ];
    const fids = await Promise.all(files.map(([file, mode]) => world.client.openFile(file, mode)));
    const walked = await world.client.walk(agent);
    await world.write(`${path}/ctl`, "kill\n");
    for (const [i, fid] of fids.entries()) {
      const use = files[i]![1] === OREAD ? later(fid) : refusal(send(fid, "stop\n"));
      expect([files[i]![0], await use]).toEqual([files[i]![0], "file does not exist: session removed"]);
      await fid.clunk();
    }
    expect(await refusal(walked.stat())).toBe("file does not exist: session removed");
    expect(await refusal(walked.walk(["chat"]))).toBe("file does not exist: session removed");
  });

  test("while agents are being made leaves nothing half done", async () => {
    const { name, path } = await world.session();
    const made = Array.from({ length: 10 }, () =>
      world.write(`${path}/agent/new`, "\n").catch((error) => String(error)),
    );
    const [, ...answers] = await Promise.all([world.client.remove(path), ...made]);
    for (const answer of answers) if (answer) expect(answer).toContain("file does not exist");
    expect(await names("session")).not.toContain(name);
    expect(existsSync(folder(name))).toBe(false);
  });
});

describe("a restart", () => {
  test("finds every session, agent, setting, queue, plan, cost and byte of chat again", async () => {
    const own = await World.start();
    try {
      const { path, agent } = await own.session("env.A=1 share=x seed=3");
      await own.write(`${path}/agent/new`, "name=second agent=reviewer\n");
      await own.write(`${path}/plan`, "a plan\n");
      await own.turn(agent, "slowly hello\n");
      await own.write(`${agent}/tools`, "reasoning_think -shell\n");
      await own.write(`${agent}/queue`, "waits\nfor long\n");
      const files = ["session/idx", `${path}/cfg`, `${path}/env`, `${path}/plan`];
      for (const file of [
        "chat",
        "reply",
        "offset",
        "queue",
        "prompt.prev",
        "cost",
        "usage",
        "cfg",
        "tools",
        "context",
        "state",
      ])
        files.push(`${agent}/${file}`);
      const look = async () =>
        Promise.all(files.map(async (file) => [file, (await own.server.p9("read", file)).stdout]));
      const before = await look();
      await own.server.restart();
      expect(await look()).toEqual(before);
    } finally {
      await own.stop();
    }
  });

  test("interrupts a running turn, says so in chat, and runs what waited", async () => {
    const own = await World.start();
    try {
      const { agent } = await own.session();
      await own.write(`${agent}/prompt`, "forever\n");
      await own.write(`${agent}/prompt`, "and then\n");
      await own.server.restart();
      await own.server.p9("read", `${agent}/idlewait`);
      const { stdout: chat } = await own.server.p9("read", `${agent}/chat`);
      expect(chat).toMatch(
        /\[\[\[info [^\n]*\nInterrupted: .*\n\[\[\[end\]\]\]\n\[\[\[user [^\n]*\nand then\n/,
      );
      expect(chat).toEndWith("You said: and then\n[[[end]]]\n");
      expect(readdirSync(join(own.home.state, "sessions")).length).toBe(1);
    } finally {
      await own.stop();
    }
  });
});
