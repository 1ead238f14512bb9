/** What a tool that runs can do to its server through ollie-9p, and what a process that a sandbox may hold can: doc/NAMESPACE.md. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { lacksPrograms } from "../needs.ts";
import { dist, Home, startServer, until } from "./harness.ts";
import { World } from "./namespace-world.ts";

const setpriv = Bun.which("setpriv");
let world: World;
beforeAll(async () => {
  world = await World.start();
  const narrow = { description: "Few tools", autoLoad: ["shell"], allowTools: ["shell", "file_read"] };
  writeFileSync(join(world.home.config, "agents/narrow.json"), JSON.stringify(narrow));
  mkdirSync(join(world.home.work, "inner"), { recursive: true });
}, 120_000);
afterAll(() => world.stop());

/** Runs a shell script as a tool of the agent; returns what it printed. */
async function inTool(agent: string, script: string): Promise<string> {
  const before = await world.read(`${agent}/offset`);
  await world.write(`${agent}/prompt`, `run ${script}`);
  await world.idle(agent);
  expect(await world.read(`${agent}/offset`)).not.toBe(before);
  const reply = await world.read(`${agent}/reply`);
  expect(reply).toContain("It printed: ");
  return reply.slice(reply.indexOf("It printed: ") + "It printed: ".length);
}

/** Makes attempts in one call; returns what each said, with its status in front where that is not 0. */
async function attempts(agent: string, commands: Record<string, string>): Promise<Record<string, string>> {
  const names = Object.keys(commands);
  const steps = Object.values(commands).map(
    (command, i) => `echo "@@ ${i}"; ( ${command} ) </dev/null 2>&1 || echo "status $?"`,
  );
  const said = await inTool(agent, `${steps.join("\n")}\necho "@@ end"`);
  // Behind the end may come lines of ollie's own.
  const parts = said
    .split("@@ end")[0]!
    .split(/^@@ (\d+)\n/m)
    .slice(1);
  const found: Record<string, string> = {};
  for (let i = 0; i < parts.length; i += 2) found[names[Number(parts[i])]!] = parts[i + 1]!.trim();
  expect(Object.keys(found)).toEqual(names);
  return found;
}

const sessions = async () => (await world.client.readDir("session")).map(({ name }) => name);
const contentOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").trim() : "");
const write = (path: string, text: string) => `printf '%s\\n' '${text}' | ollie-9p write ${path}`;
const refusedAll = (said: Record<string, string>, phrase: RegExp) => {
  for (const [name, text] of Object.entries(said)) {
    expect(`${name}: ${text}`).toMatch(phrase);
    expect(`${name}: ${text}`).toContain("status 1");
  }
};

describe("a tool", () => {
  test("has an address of its own, beside the owner's, and reads what is its own", async () => {
    const { name, agent } = await world.session();
    await world.session();
    const said = await attempts(agent, {
      address: "echo $OLLIE_ADDR",
      token: 'echo "[$OLLIE_TOKEN]"',
      sessions: "ollie-9p ls session",
      index: "ollie-9p read session/idx | cut -f 1,2",
      root: "ollie-9p ls",
      o: `session=${name} o read state`,
    });
    const own = world.server.address;
    expect(said.address!.replace(own, "")).toMatch(/^(\.tools\/\w+|tcp!127\.0\.0\.1!\d+)$/);
    if (said.address!.startsWith("unix!")) expect(said.token).toBe("[]");
    expect(said.sessions).toBe(`idx\nnew\n${name}`);
    expect(said.index).toBe(`${name}\tdefault`);
    expect(said.root).toBe("agents\nbackends\nhelp\nlasterr\nmodels\ns\nsession\nskills\ntools\nversion");
    expect(said.o).toBe("calling: shell");
  });

  test("does what it is for: plan, tools, agents, children, prompts", async () => {
    const { name, path, agent } = await world.session();
    const said = await attempts(agent, {
      plan: write(`${path}/plan`, "- [ ] it"),
      load: write(`${agent}/tools`, "tool_help"),
      agent: "echo name=sub | ollie-9p rdwr session/$OLLIE_SESSION/agent/new",
      child: `echo name=${name}__kid | ollie-9p rdwr session/new`,
      free: "echo | ollie-9p rdwr s/new",
      "prompt an agent": write(`${path}/agent/sub/prompt`, "hello sub"),
      "prompt a child": write(`s/${name}__kid/prompt`, "hello kid"),
      answer: `ollie-9p read s/${name}__kid/idlewait s/${name}__kid/reply`,
      stop: write(`session/${name}__kid/ctl`, "stop"),
      remove: `ollie-9p rm -r session/${name}__kid`,
    });
    expect(said).toMatchObject({
      plan: "",
      load: "",
      agent: "sub",
      child: `${name}__kid`,
      "prompt an agent": "",
      "prompt a child": "",
      answer: "idle\nYou said: hello kid",
      stop: "",
      remove: "",
    });
    expect(said.free).toMatch(new RegExp(`^${name}__\\w+$`));
    expect(await world.read(`${path}/plan`)).toBe("- [ ] it\n");
    expect(await world.read(`${agent}/tools`)).toContain("tool_help\n");
    await world.idle(`${path}/agent/sub`);
    expect(await world.read(`${path}/agent/sub/reply`)).toBe("You said: hello sub\n");
    expect((await sessions()).filter((one) => one.startsWith(name))).toEqual([name, said.free!]);
  });

  test("does nothing to what is the owner's", async () => {
    const { name, path, agent } = await world.session();
    const verbs = ["stop", "kill", "rename x", "save"];
    const agentVerbs = ["stop", "kill", "clear", "inject x", "agent default", "cwd /", "rename x"];
    const commands: Record<string, string> = {};
    for (const key of ["sandbox=off", "share=x", "remote=u@h", "name=x", "cwd=/"])
      commands[`cfg ${key}`] = write(`${path}/cfg`, key);
    for (const verb of verbs) commands[`ctl ${verb}`] = write(`s/${name}/ctl`, verb);
    for (const verb of agentVerbs) {
      commands[`agent ctl ${verb}`] = write(`${agent}/ctl`, verb);
      commands[`slash ${verb}`] = write(`${agent}/prompt`, `/${verb}`);
    }
    Object.assign(commands, {
      env: write(`${path}/env`, "PATH=/x"),
      name: write(`${path}/name`, "x"),
      "agent cfg": write(`${agent}/cfg`, "agent=default"),
      rename: `ollie-9p mv ${path} x`,
      remove: `ollie-9p rm -r ${path}`,
      "remove agent": `ollie-9p rm -r ${agent}`,
      metrics: "ollie-9p read metrics",
    });
    refusedAll(await attempts(agent, commands), /: ollie-9p: .*permission denied|unknown command/);
    expect(await sessions()).toContain(name);
    expect(await world.read(`${path}/env`)).toBe("");
    expect(await world.read(`${path}/cfg`)).toContain("\nshare=\n");
  });

  test("approves nothing, and finds no other session", async () => {
    const other = await world.session();
    const { name, agent } = await world.session();
    await world.client.writeFile("session/new", `name=${name}x\n`);
    await world.client.writeFile("session/new", `name=${name}___x\n`);
    const commands: Record<string, string> = {
      "elevate/ctl": write("elevate/ctl", "allow 1 session"),
      "elevate/wait": "ollie-9p read elevate/wait",
    };
    for (const one of [other.name, `${name}x`, `${name}___x`])
      for (const top of ["session", "s", `session/${name}/..`]) {
        commands[`${top}/${one} chat`] = `ollie-9p read ${top}/${one}/agent/default/chat`;
        commands[`${top}/${one} prompt`] = write(`${top}/${one}/agent/default/prompt`, "hello");
        commands[`${top}/${one} rm`] = `ollie-9p rm -r ${top}/${one}`;
      }
    refusedAll(await attempts(agent, commands), /file does not exist/);
    expect(await world.read(`${other.agent}/chat`)).toBe("");
  });

  test("makes nothing that is more than itself", async () => {
    const { name, path, agent } = await world.session("agent=narrow");
    symlinkSync("/", join(world.home.work, "inner", "root"));
    const commands: Record<string, string> = {};
    for (const [place, head] of [
      [`${path}/agent/new`, "agent=narrow"],
      ["session/new", `name=${name}__k agent=narrow`],
    ] as const) {
      for (const key of [
        "sandbox=off",
        "share=x",
        "remote=u@h",
        "env.PATH=/x",
        "cwd=/",
        "cwd=/tmp",
        "agent=default",
      ])
        commands[`${place} ${key}`] = write(place, `${head} ${key}`);
      commands[`${place} a link`] = write(place, `${head} cwd=${world.home.work}/inner/root`);
      commands[`${place} default`] = write(place, head.replace(/ ?agent=narrow/, " "));
      // The second write goes to the open file that made it.
      commands[`${place} later`] =
        `printf '${head} name=${name}__l${place.length}\\ncwd=/\\n' | ollie-9p write -l ${place}`;
    }
    for (const wrong of ["x", `${name}x`, `${name}_x`, `${name}___x`, `${name}__`, "x__y"])
      commands[`name ${wrong}`] = write("s/new", `name=${wrong} agent=narrow`);
    refusedAll(await attempts(agent, commands), /permission denied/);
    const made = (await sessions()).filter((one) => one.startsWith(`${name}_`));
    expect(made).toEqual([`${name}__l11`]);
    expect(await world.read(`session/${made[0]}/cfg`)).toContain(`cwd=${world.home.work}\n`);
  });

  test("loads what its agent may have, for itself", async () => {
    const { path, agent } = await world.session("agent=narrow");
    await world.write(`${path}/agent/new`, "name=other agent=narrow\n");
    const said = await attempts(agent, {
      allowed: write(`${agent}/tools`, "file_read"),
      "not allowed": write(`${agent}/tools`, "file_write"),
      other: write(`${path}/agent/other/tools`, "file_read"),
    });
    expect(said.allowed).toBe("");
    expect(said["not allowed"]).toContain(
      "permission denied: tool file_write is not in allowTools of agent narrow",
    );
    expect(said.other).toContain("permission denied: tools: a tool may write here only prompt queue fifo.in");
  });

  test("asks a session that shares with its own, and nothing else of it", async () => {
    const { name, agent } = await world.session();
    const other = await world.session(`share=someone,${name}`);
    const said = await attempts(agent, {
      ask: write(`s/${other.name}/prompt`, "help"),
      answer: `ollie-9p read s/${other.name}/idlewait s/${other.name}/reply`,
    });
    expect(said).toEqual({ ask: "", answer: "idle\nYou said: help" });
    const refused = await attempts(agent, {
      plan: `ollie-9p read session/${other.name}/plan`,
      context: `ollie-9p read ${other.agent}/context`,
      ctl: write(`${other.agent}/ctl`, "stop"),
      slash: write(`${other.agent}/prompt`, "/clear"),
      agent: write(`${other.path}/agent/new`, "name=x"),
    });
    refusedAll(refused, /permission denied/);
  });

  test("does not get to the owner's socket, nor to the token", async () => {
    const { agent } = await world.session();
    const owner = world.server.address;
    const said = await attempts(agent, {
      socket: `ollie-9p -a ${owner} ls`,
      "in another's name": `OLLIE_ADDR=${owner} ollie-9p read metrics`,
      token: `cat ${owner.slice("unix!".length)}.token`,
      tools: `ls ${owner.slice("unix!".length)}.tools | grep -v "\${OLLIE_ADDR##*/}"`,
    });
    refusedAll(said, /status/);
  });

  test("has lost everything when its agent is gone", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/agent/new`, "name=stays\n");
    const go = join(world.home.work, "go");
    const out = join(world.home.work, "out");
    // Told to end, it goes on.
    const script = `trap '' TERM
      echo "$OLLIE_ADDR" > ${out}.addr
      until [ -e ${go} ]; do sleep 0.02; done
      ollie-9p ls > ${out}.part 2>&1; mv ${out}.part ${out}`;
    await world.write(`${agent}/prompt`, `run ${script}`);
    const address = await until("the address", () => contentOf(`${out}.addr`));
    const folder = `${world.server.address.slice("unix!".length)}.tools`;
    const listed = address.startsWith("unix!") ? address.slice(`unix!${folder}/`.length) : undefined;
    if (listed) expect(readdirSync(folder)).toContain(listed);
    await world.client.remove(agent);
    if (listed) expect(readdirSync(folder)).not.toContain(listed);
    const { stderr, status } = await world.p9(["-a", address, "ls"]);
    expect([status, stderr]).toEqual([1, expect.stringContaining("no server answers")]);
    writeFileSync(go, "");
  });
});

describe.skipIf(lacksPrograms("setpriv"))("a process with no-new-privs", () => {
  const noPrivs = (...argv: string[]) => world.home.run([setpriv!, "--no-new-privs", ...argv]);
  const p9 = join(dist, "ollie-9p");

  test("is the owner with the token that its client finds, and nobody without", async () => {
    const token = `${world.server.address.slice("unix!".length)}.token`;
    expect(statSync(token).mode & 0o777).toBe(0o600);
    expect((await noPrivs(p9, "ls")).stdout).toContain("metrics\n");
    expect((await noPrivs(join(dist, "o"), "ls")).status).toBe(0);
    expect((await noPrivs(join(dist, "olliesrv"), "status")).stdout).toMatch(/^sessions +\d+$/m);
    renameSync(token, `${token}.away`);
    try {
      const { status, stderr } = await noPrivs(p9, "ls");
      expect(status).toBe(1);
      expect(stderr).toContain("permission denied: no-new-privs is set, as in a sandbox");
      // Others need none.
      expect((await world.p9(["ls"])).status).toBe(0);
    } finally {
      renameSync(`${token}.away`, token);
    }
    expect(world.server.log).not.toContain(readFileSync(token, "utf8").trim());
  });

  test("runs a server, and uses it, where nothing runs without", async () => {
    const home = new Home();
    home.script({ rules: [{ match: { user: "hello" }, do: [{ text: "hello" }] }] });
    const run = (program: string, ...args: string[]) =>
      home.run([setpriv!, "--no-new-privs", join(dist, program), ...args]);
    try {
      expect(await run("olliesrv", "start")).toMatchObject({ status: 0, stderr: "" });
      expect(await run("o", "ask", "hello")).toMatchObject({ status: 0, stdout: "hello\n" });
      expect((await run("olliesrv", "status")).stdout).toMatch(/^sessions +\d+$/m);
    } finally {
      await run("olliesrv", "stop");
      home.remove();
    }
  });
});

test("what a killed server has left is swept up, and a server that ends leaves nothing", async () => {
  const rules = [
    { match: { user: "/^run (.*)/s" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
    { match: { tool: "shell" }, do: [{ text: "done" }] },
  ];
  const server = await startServer({ scenario: { rules } });
  const beside = `${server.address.slice("unix!".length)}`;
  try {
    const name = await server.create();
    await server.ask(name, "run true");
    const [left] = existsSync(`${beside}.tools`) ? readdirSync(`${beside}.tools`) : [];
    const token = readFileSync(`${beside}.token`, "utf8");
    await server.kill9();
    await server.restart();
    expect(existsSync(`${beside}.tools`) ? readdirSync(`${beside}.tools`) : []).not.toContain(left);
    expect(readFileSync(`${beside}.token`, "utf8")).not.toBe(token);
    await server.ask(name, "run true");
    const ended = Bun.spawn([join(dist, "olliesrv"), "stop"], { env: server.home.env, stdout: "ignore" });
    expect(await ended.exited).toBe(0);
    expect(readdirSync(join(beside, "..")).filter((one) => !one.endsWith(".lock"))).toEqual([]);
  } finally {
    await server.stop();
  }
});
