/** The tree from outside: the compiled server, used through the compiled client and through plain 9P. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../src/ninep/client.ts";
import { DMDIR } from "../../src/ninep/file.ts";
import { Olliesrv } from "./olliesrv.ts";

let server: Olliesrv;
let client: Client;
let count = 0;

beforeAll(async () => {
  server = await Olliesrv.start([
    { match: { user: "/^slowly (.*)/s" }, do: [{ text: "Slow: $1", chunk: 1, delay: 15 }] },
    { match: { user: "/(.*)/s" }, do: [{ text: "You said: $1" }] },
  ]);
  client = await server.connect();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** A prompt whose turn lasts until it is stopped, as far as a test is concerned. */
const endless = `slowly ${"and slowly ".repeat(1000)}\n`;

/** A new session and the path of its agent. */
async function session(): Promise<{ name: string; agent: string }> {
  const name = `s${++count}`;
  await client.writeFile("session/new", `name=${name}\n`);
  return { name, agent: `session/${name}/agent/default` };
}

const idle = (agent: string) => client.readText(`${agent}/idlewait`);

describe("making sessions", () => {
  test("gives the name on the same open file", async () => {
    const made = await server.run(["rdwr", "session/new"], "name=fresh\n");
    expect(made).toEqual({ status: 0, out: "fresh\n", err: "" });
    const unnamed = await server.run(["rdwr", "session/new"], "\n");
    expect(await server.read(`session/${unnamed.out.trim()}/name`)).toBe(unnamed.out);
  });

  test("takes quoted values", async () => {
    const cwd = join(server.home, "a folder");
    mkdirSync(cwd);
    await client.writeFile("session/new", `name=quoted cwd="${cwd}" env.GREETING='hello there'\n`);
    expect(await server.read("session/idx")).toContain(`quoted\tdefault\tidle\tscript\tscript\t${cwd}\n`);
    expect(await server.read("session/quoted/env")).toContain("hello there");
  });

  test("fails at the write, in words, and makes nothing", async () => {
    const before = await server.read("session/idx");
    for (const [text, words] of [
      ["name=x colour=red\n", /^.*Invalid argument: unknown key colour; /],
      ["name=a/b\n", /Invalid argument/],
      ["name=x cwd=/nowhere/at/all\n", /file does not exist/],
      ["name=x temperature=warm\n", /Invalid argument: temperature=warm/],
      ["name=x agent=nobody\n", /nobody/],
      ["name=x stray\n", /"stray" is not key=value/],
    ] as const) {
      const { status, err } = await server.run(["write", "session/new"], text);
      expect([status, err]).toEqual([1, expect.stringMatching(words)]);
    }
    expect(await server.read("session/idx")).toBe(before);
    expect(await server.read("lasterr")).toMatch(/^\S+Z \/session\/new: Invalid argument: "stray" is not /);
  });

  test("takes its own template back", async () => {
    const template = await server.read("session/new");
    await client.writeFile("session/new", template.replace(/^name=/m, "name=templated"));
    expect(await server.read("session/templated/agent/default/state")).toBe("idle\n");
  });
});

describe("a turn", () => {
  test("is seen by a statewait that was opened before the prompt", async () => {
    const { agent } = await session();
    const wait = await client.openFile(`${agent}/statewait`);
    await client.writeFile(`${agent}/prompt`, "one\n");
    expect((await wait.read(0)).toString()).toMatch(/^\S.*\n$/);
    expect(await idle(agent)).toBe("idle\n");
  });

  test("has left idle when the prompt is closed", async () => {
    const { agent } = await session();
    await client.writeFile(`${agent}/prompt`, endless);
    expect(await client.readText(`${agent}/state`)).not.toBe("idle\n");
  });

  test("has all of its answer behind offset when idle is back", async () => {
    const { agent } = await session();
    await client.writeFile(`${agent}/prompt`, "slowly grüße 🌍\n");
    await idle(agent);
    const offset = Number(await server.read(`${agent}/offset`));
    const chat = await client.readFile(`${agent}/chat`);
    const answer = chat.subarray(offset).toString();
    expect(answer.split("\n").filter((line) => !line.startsWith("[[["))).toEqual(["Slow: grüße 🌍", ""]);
    expect(chat.subarray(0, offset).toString()).toEndWith("slowly grüße 🌍\n[[[end]]]\n");
    expect(await server.read(`${agent}/reply`)).toBe("Slow: grüße 🌍\n");
    expect(await server.read(`${agent}/prompt.prev`)).toBe("slowly grüße 🌍\n");
  });

  test("lets further prompts wait their turn, and loses none", async () => {
    const { agent } = await session();
    await client.writeFile(`${agent}/prompt`, endless);
    await Promise.all(["second", "third", "fourth"].map((text) => client.writeFile(`${agent}/prompt`, text)));
    const waiting = (await client.readText(`${agent}/queue`)).trim().split("\n");
    expect(waiting.map((line) => JSON.parse(line)).sort()).toEqual(["fourth", "second", "third"]);
    await client.writeFile(`${agent}/ctl`, "stop\n");
    await idle(agent);
    const chat = await server.read(`${agent}/chat`);
    for (const text of ["You said: second", "You said: third", "You said: fourth"])
      expect(chat.split(text).length).toBe(2);
    expect(await server.read(`${agent}/queue`)).toBe("");
  });

  test("is not started by a write to queue, and dequeue takes one out", async () => {
    const { agent } = await session();
    await client.writeFile(`${agent}/queue`, "later\nwith two lines\n");
    await client.writeFile(`${agent}/fifo.in`, "much later\n");
    expect(await server.read(`${agent}/state`)).toBe("idle\n");
    expect(await server.read(`${agent}/fifo.out`)).toBe("later\nwith two lines\n");
    await client.writeFile(`${agent}/ctl`, "dequeue\n");
    expect(await server.read(`${agent}/queue`)).toBe('"much later"\n');
  });

  test("is stopped by a verb, in ctl or in prompt", async () => {
    const { agent } = await session();
    for (const [file, verb] of [
      ["ctl", "stop\n"],
      ["prompt", "/stop"],
    ]) {
      await client.writeFile(`${agent}/prompt`, endless);
      await client.writeFile(`${agent}/${file}`, verb!);
      expect(await idle(agent)).toBe("idle\n");
    }
  });
});

describe("refusals", () => {
  test("come at the write, with nothing changed", async () => {
    const { name, agent } = await session();
    const cfg = await server.read(`${agent}/cfg`);
    for (const [path, text] of [
      [`${agent}/ctl`, "fly\n"],
      [`${agent}/cfg`, "temperature=1 colour=red\n"],
      [`${agent}/cfg`, "temperature=warm\n"],
      [`${agent}/tools`, "nonesuch\n"],
      [`${agent}/prompt`, "/nonesuch\n"],
      [`${agent}/prompt`, "\n"],
      [`session/${name}/ctl`, "fly\n"],
      [`session/${name}/cfg`, "colour=red\n"],
      [`session/${name}/env`, "no equals sign\n"],
      [`session/${name}/name`, "a/b\n"],
      [`session/${name}/chat`, "x"],
    ] as const) {
      const { status, err } = await server.run(["write", path], text);
      expect([path, status, err.trim().split("\n").length]).toEqual([path, 1, 1]);
      expect(err).toMatch(/Invalid argument|file does not exist|permission denied/);
    }
    expect(await server.read(`${agent}/cfg`)).toBe(cfg);
    expect(await server.read(`${agent}/state`)).toBe("idle\n");
  });

  test("of what does not exist name it", async () => {
    const { status, out, err } = await server.run(["read", "session/nobody/plan"]);
    expect([status, out]).toEqual([1, ""]);
    expect(err).toContain("file does not exist: no session nobody");
  });

  test("of creating are permission denied everywhere", async () => {
    const { name, agent } = await session();
    for (const folder of [
      "",
      "session",
      "s",
      `session/${name}`,
      `session/${name}/agent`,
      agent,
      `s/${name}`,
    ]) {
      const { status, err } = await server.run(["create", `${folder}/x`]);
      expect([folder, status, err]).toEqual([folder, 1, expect.stringContaining("permission denied")]);
    }
  });
});

test("the plan is replaced, added to, and written by two at once", async () => {
  const { name } = await session();
  const path = `session/${name}/plan`;
  await server.run(["write", path], "first\n\n");
  await server.run(["write", path], " the plan\n");
  await server.run(["write", "-a", path], "- one\n");
  await Promise.all(["two", "three"].map((item) => server.run(["write", "-a", path], `- ${item}\n`)));
  const plan = await server.read(path);
  expect(plan).toStartWith(" the plan\n- one\n");
  expect(plan.trim().split("\n").sort()).toEqual(["- one", "- three", "- two", "the plan"]);
});

test("the length of every file is that of its content, and nothing readable is empty where it has one", async () => {
  const { name, agent } = await session();
  await client.writeFile(`${agent}/prompt`, "hello\n");
  await idle(agent);
  // Asks for the size of the model's window, which the next look then knows.
  await client.readText(`${agent}/ctxsz`);
  let checked = 0;
  for (const folder of ["", "session", `session/${name}`, `session/${name}/agent`, agent, `s/${name}`])
    for (const entry of await client.readDir(folder)) {
      if (entry.mode & DMDIR || !(entry.mode & 0o400) || /^(new|metrics|.*wait)$/.test(entry.name)) continue;
      const { length } = await client.readFile(`${folder}/${entry.name}`);
      expect([folder, entry.name, Number(entry.length)]).toEqual([folder, entry.name, length]);
      checked++;
    }
  expect(checked).toBeGreaterThan(50);
  for (const file of ["statewait", "idlewait"])
    expect(Number((await client.stat(`${agent}/${file}`)).length)).toBeGreaterThan(0);
});

test("a reader follows chat while it grows and gets every byte once", async () => {
  const { agent } = await session();
  const fid = await client.openFile(`${agent}/chat`);
  await client.writeFile(`${agent}/prompt`, "slowly growing answer\n");
  let read = Buffer.alloc(0);
  for (let idle = false; ; ) {
    const piece = await fid.read(read.length);
    read = Buffer.concat([read, piece]);
    if (piece.length > 0) continue;
    if (idle) break;
    idle = (await client.readText(`${agent}/state`)) === "idle\n";
  }
  expect(read.toString()).toBe(await server.read(`${agent}/chat`));
  expect(read.toString()).toContain("Slow: growing answer\n");
});

test("a session is renamed under open files and removed under waiting ones", async () => {
  const { name, agent } = await session();
  const chat = await client.openFile(`${agent}/chat`);
  const wait = await client.openFile(`${agent}/statewait`);
  expect((await server.run(["mv", `session/${name}`, "renamed"])).status).toBe(0);
  await client.writeFile("session/renamed/agent/default/prompt", "still there\n");
  await idle("session/renamed/agent/default");
  await wait.read(0);
  expect((await chat.read(0)).toString()).toContain("You said: still there\n");
  const waiting = wait.read(0).then(
    () => "answered",
    (error: Error) => error.message,
  );
  expect(await server.run(["rm", "-r", "session/renamed"])).toEqual({ status: 0, out: "", err: "" });
  expect(await waiting).toMatch(/^file does not exist: .*session removed$/);
  expect(await server.read("session/idx")).not.toContain("renamed");
});

test("agents are added, renamed and removed", async () => {
  const { name } = await session();
  const made = await server.run(["rdwr", `session/${name}/agent/new`], "name=helper\n");
  expect(made.out).toBe("helper\n");
  await server.run(["mv", `session/${name}/agent/helper`, `session/${name}/agent/writer`]);
  await client.writeFile(`session/${name}/agent/writer/prompt`, "hi\n");
  expect(await idle(`session/${name}/agent/writer`)).toBe("idle\n");
  await server.run(["rm", "-r", `session/${name}/agent/writer`]);
  expect((await client.readDir(`session/${name}/agent`)).map((entry) => entry.name)).toEqual([
    "default",
    "new",
  ]);
});

test("the short view is the session and its first agent", async () => {
  const { name, agent } = await session();
  await client.writeFile(`s/${name}/prompt`, "short\n");
  await idle(`s/${name}`);
  expect(await server.read(`s/${name}/reply`)).toBe(await server.read(`${agent}/reply`));
  expect(await server.read(`s/${name}/cfg`)).toBe(await server.read(`session/${name}/cfg`));
});

test("env, tools and cfg read as they were written", async () => {
  const { name, agent } = await session();
  await client.writeFile(`session/${name}/env`, "B=2\nA=one two\n");
  await client.writeFile(`session/${name}/env`, "B=\nC=3\n");
  expect(await server.read(`session/${name}/env`)).toBe("A=one two\nC=3\n");
  await client.writeFile(`${agent}/cfg`, "temperature=0.5\nmaxTokens=100\n");
  await client.writeFile(`${agent}/cfg`, "temperature=\n");
  const cfg = await server.read(`${agent}/cfg`);
  expect(cfg).toContain("\nmaxTokens=100\n");
  expect(cfg).toContain("\ntemperature=\n");
  await client.writeFile(`${agent}/cfg`, cfg);
  expect(await server.read(`${agent}/cfg`)).toBe(cfg);
});
