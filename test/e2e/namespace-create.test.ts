/** `session/new` and `agent/new`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ORDWR, OREAD, OWRITE } from "../../src/ninep/file.ts";
import { refusal, send, take, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const make = (keys: string, path = "session/new") => world.p9(["rdwr", path], { stdin: keys });
const sessions = async () =>
  (await world.client.readDir("session"))
    .map((entry) => entry.name)
    .filter((name) => name !== "new" && name !== "idx");
const lines = async (path: string) => (await world.read(path)).split("\n");

describe("session/new", () => {
  test("reads as a template of all keys with their defaults, which can be written back", async () => {
    const template = await world.read("session/new");
    const words = template
      .trimEnd()
      .split("\n")
      .map((line) => /^([\w.]+)=(\S*|"[^"]*") +# \S.*$/.exec(line)?.[1]);
    expect(words).toEqual([
      ...["name", "cwd", "remote", "sandbox", "share", "backend", "model", "agent", "maxSteps"],
      ...["temperature", "topP", "topK", "minP", "maxTokens", "frequencyPenalty", "presencePenalty"],
      ...["repetitionPenalty", "reasoning", "reasoningEffort", "stop", "seed", "responseFormat", "env.NAME"],
    ]);
    expect(template).toContain("\nagent=default ");
    expect(template).toContain("\nbackend=script ");
    const before = await sessions();
    const made = await make(template);
    expect([made.status, made.stderr]).toEqual([0, ""]);
    expect((await sessions()).length).toBe(before.length + 1);
  });

  test("answers with the name on the same open file", async () => {
    expect(await make("name=fresh\n")).toEqual({ status: 0, stdout: "fresh\n", stderr: "" });
    expect(await world.read("session/fresh/name")).toBe("fresh\n");
  });

  test("answers a shell, whose descriptor has one offset and which reads byte by byte", async () => {
    const fid = await world.client.openFile("session/new", ORDWR);
    let offset = await send(fid, "name=cloned\n");
    let name = "";
    for (;;) {
      const byte = await take(fid, offset++, 1);
      name += byte;
      if (byte === "\n" || byte === "") break;
    }
    expect(name).toBe("cloned\n");
    expect(await take(fid, offset, 1)).toBe("");
  });

  test("answers also where the template was read first", async () => {
    const fid = await world.client.openFile("session/new", ORDWR);
    const { length } = await take(fid);
    const text = "name=afterwards\n";
    await send(fid, text, length);
    expect(await take(fid, length + text.length)).toBe("afterwards\n");
  });

  test("makes up a name that sorts by time", async () => {
    const names: string[] = [];
    for (let i = 0; i < 5; i++) names.push((await make("\n")).stdout.trim());
    expect([...names].sort()).toEqual(names);
    expect(new Set(names).size).toBe(5);
    expect(await sessions()).toEqual(expect.arrayContaining(names));
  });

  test("works in the server's folder where no cwd is given", async () => {
    await world.write("session/new", "name=nowhere\n");
    expect(await lines("session/nowhere/cfg")).toContain(`cwd=${world.home.work}`);
  });

  test("takes quotes of both kinds, backslashes, newlines and comments", async () => {
    const cwd = join(world.home.work, `a "b" 'c' \\d`);
    mkdirSync(cwd);
    const quoted = [
      `"${cwd.replace(/["\\]/g, "\\$&")}"`,
      `'${cwd.split("'")[0]}'"'c'"' \\d'`,
      cwd.replace(/[ "'\\]/g, "\\$&"),
    ];
    for (const [i, value] of quoted.entries()) {
      await world.write(
        "session/new",
        `# a comment\nname=quoted${i}\n\tcwd=${value}  # another\n env.A='x  y' `,
      );
      expect(await world.read("session/idx")).toContain(
        `quoted${i}\tdefault\tidle\tscript\tscript\t${cwd}\n`,
      );
      expect(await world.read(`session/quoted${i}/env`)).toBe("A=x  y\n");
    }
  });

  test("sets what is the session's, its first agent's and the environment's", async () => {
    await world.write(
      "session/new",
      `name=full cwd=${world.home.home} share=a,b agent=tester model=m temperature=0.5 maxSteps=7 env.A=1 env.B=2\n`,
    );
    expect(await world.read("session/full/env")).toBe("A=1\nB=2\n");
    expect(await lines("session/full/cfg")).toEqual(expect.arrayContaining(["name=full", "share=a,b"]));
    expect(await lines("session/full/agent/tester/cfg")).toEqual(
      expect.arrayContaining(["model=m", "temperature=0.5", "maxSteps=7", "agent=tester"]),
    );
    expect(await world.read("session/idx")).toContain(`full\ttester\tidle\tscript\tm\t${world.home.home}\n`);
  });

  test("calls the first agent's folder like its config", async () => {
    await world.write("session/new", "name=reviewed agent=reviewer\n");
    const names = (await world.client.readDir("session/reviewed/agent")).map((entry) => entry.name);
    expect(names).toEqual(["new", "reviewer"]);
  });

  test("takes a later value of a key, and an empty one as left out", async () => {
    await world.write("session/new", "name=x name=later model= temperature=\n");
    expect(await lines("session/later/agent/default/cfg")).toContain("model=script");
  });

  test("takes names of 128 bytes, with blanks and in any script", async () => {
    const names = ["n".repeat(128), "ü".repeat(64), "two words", "日本", "a.b-c_d", "%41", "-x"];
    for (const name of names) {
      expect((await make(`name="${name}"\n`)).stdout).toBe(`${name}\n`);
      expect(await world.read(`session/${name}/name`)).toBe(`${name}\n`);
    }
    expect(await sessions()).toEqual(expect.arrayContaining(names));
  });

  test("refuses what makes no sense at the write, in words, and makes nothing", async () => {
    const before = await world.read("session/idx");
    for (const [text, words] of [
      ["name=x colour=red\n", "Invalid argument: unknown key colour; there are name cwd "],
      ["name=x stray\n", 'Invalid argument: "stray" is not key=value'],
      ['name=x cwd="/tmp\n', 'Invalid argument: no closing quote for "/tmp'],
      ["name=a/b\n", "Invalid argument: the name "],
      ["name=..\n", "Invalid argument: the name "],
      ["name=.\n", "Invalid argument: the name "],
      ["name=new\n", "Invalid argument: the name "],
      ["name=idx\n", "Invalid argument: the name "],
      [`name=${"n".repeat(129)}\n`, "Invalid argument: the name "],
      ["name=fresh\n", "file already exists: session fresh exists"],
      ["name=x cwd=relative\n", "Invalid argument: cwd=relative: an absolute path is right"],
      ["name=x cwd=/nowhere/at/all\n", "file does not exist: cwd=/nowhere/at/all"],
      ["name=x cwd=/etc/passwd\n", "file does not exist: cwd=/etc/passwd"],
      ["name=x temperature=warm\n", "Invalid argument: temperature=warm: a number from 0 up is right"],
      ["name=x maxTokens=1.5\n", "Invalid argument: maxTokens=1.5: a whole number from 1 up is right"],
      ["name=x reasoning=maybe\n", "Invalid argument: reasoning=maybe: one of true, false is right"],
      ["name=x agent=nobody\n", "file does not exist: no agent nobody: there are default,"],
      ["name=x agent=../agents/default\n", "file does not exist: no agent ../agents/default"],
      ["name=x backend=nonsense\n", 'file does not exist: no backend is called "nonsense"'],
      ["name=x env.1A=x\n", "Invalid argument: 1A: a variable's name is"],
      ["name=x env.OLLIE_ADDR=x\n", "permission denied: OLLIE_ADDR is set by ollie itself"],
      ["name=x remote=-oProxyCommand=touch\n", "would be read as an option"],
      ["name=x from=fresh\n", "Invalid argument: from"],
    ] as const) {
      const { status, stdout, stderr } = await make(text);
      expect([text, status, stdout]).toEqual([text, 1, ""]);
      expect(stderr).toContain(words);
      expect(stderr.trim().split("\n").length).toBe(1);
    }
    expect(await world.read("session/idx")).toBe(before);
  });

  test("refuses bytes that are no text", async () => {
    const fid = await world.client.openFile("session/new", OWRITE);
    expect(await refusal(send(fid, Buffer.from("name=\xff\n", "latin1")))).toContain("is not UTF-8");
    const other = await world.client.openFile("session/new", OWRITE);
    expect(await refusal(send(other, "name=a\0b\n"))).toContain("NUL");
  });

  test("adds the keys of further writes to what it has made, as bash sends them", async () => {
    const fid = await world.client.openFile("session/new", ORDWR);
    let offset = 0;
    for (const line of ["name=grown\n", "model=m2\n", "env.A=1\n", `cwd=${world.home.home}\n`, "share=x\n"])
      offset += await send(fid, line, offset);
    expect(await refusal(send(fid, "temperature=hot seed=1\n", offset))).toContain("temperature=hot");
    offset += await send(fid, "name=renamed\n", offset);
    expect(await take(fid, offset)).toBe("renamed\n");
    expect(await world.read("session/idx")).toContain(
      `renamed\tdefault\tidle\tscript\tm2\t${world.home.home}\n`,
    );
    expect(await lines("session/renamed/agent/default/cfg")).toContain("seed=");
    expect(await world.read("session/renamed/env")).toBe("A=1\n");
    expect(await sessions()).not.toContain("grown");
  });

  test("makes nothing of the lines that follow a refused one", async () => {
    const before = await sessions();
    const fid = await world.client.openFile("session/new", ORDWR);
    expect(await refusal(send(fid, "name=half colour=red\n"))).toContain("unknown key colour");
    expect(await refusal(send(fid, "model=m\n"))).toContain("open new again");
    expect(await refusal(take(fid))).toContain("open new again");
    await fid.clunk();
    expect(await sessions()).toEqual(before);
  });

  test("makes nothing when it is opened, read or truncated", async () => {
    const before = await sessions();
    for (const mode of [OREAD, OWRITE, ORDWR, OWRITE | 0x10])
      await (await world.client.openFile("session/new", mode)).clunk();
    await world.client.wstat("session/new", { length: 0 });
    expect(await sessions()).toEqual(before);
  });

  test("lets one of many at the same time have a name, and loses none of the others", async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => world.connect()));
    const made = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => clients[i % 4]!.writeFile("session/new", `name=race${i % 5}\n`)),
    );
    expect(made.filter((one) => one.status === "fulfilled").length).toBe(5);
    for (const one of made)
      if (one.status === "rejected") expect(String(one.reason)).toContain("file already exists: ");
  });
});

describe("agent/new", () => {
  test("reads as a template, and adds an agent", async () => {
    const { path } = await world.session();
    expect(await world.read(`${path}/agent/new`)).toMatch(/^name= +# .*\nbackend=script +# /);
    expect((await make("name=helper model=m\n", `${path}/agent/new`)).stdout).toBe("helper\n");
    expect(await world.read(`${path}/agent/helper/state`)).toBe("idle\n");
    expect(await world.read("session/idx")).toContain("\thelper\tidle\tscript\tm\t");
  });

  test("takes its own template back, and calls agents like their configs", async () => {
    const { path } = await world.session();
    const template = await world.read(`${path}/agent/new`);
    expect((await make(template, `${path}/agent/new`)).stdout).toBe("default-2\n");
    expect((await make("agent=reviewer\n", `${path}/agent/new`)).stdout).toBe("reviewer\n");
  });

  test("gives every one of many at the same time a name of its own", async () => {
    const { path } = await world.session();
    const clients = await Promise.all(Array.from({ length: 4 }, () => world.connect()));
    await Promise.all(
      Array.from({ length: 16 }, (_, i) => clients[i % 4]!.writeFile(`${path}/agent/new`, "\n")),
    );
    expect((await world.client.readDir(`${path}/agent`)).length).toBe(1 + 1 + 16);
  });

  test("refuses at the write, and adds nothing", async () => {
    const { path } = await world.session();
    for (const [text, words] of [
      ["name=default\n", "file already exists: agent default exists in session"],
      ["name=new\n", "Invalid argument: the name"],
      ["name=a/b\n", "Invalid argument: the name"],
      ["colour=red\n", "Invalid argument: unknown key colour"],
      ["share=x\n", "Invalid argument: unknown key share"],
      ["topP=2\n", "Invalid argument: topP=2: a number from 0 to 1 is right"],
      ["agent=nobody\n", "file does not exist: no agent nobody"],
    ] as const) {
      const { status, stderr } = await make(text, `${path}/agent/new`);
      expect([text, status]).toEqual([text, 1]);
      expect(stderr).toContain(words);
    }
    expect((await world.client.readDir(`${path}/agent`)).map((entry) => entry.name)).toEqual([
      "default",
      "new",
    ]);
  });

  test("adds further keys to the agent, and renames it", async () => {
    const { path } = await world.session();
    const fid = await world.client.openFile(`${path}/agent/new`, ORDWR);
    await send(fid, "name=one\n");
    await send(fid, "topK=5\n", 9);
    await send(fid, "name=two\n", 16);
    expect(await take(fid, 25)).toBe("two\n");
    expect(await lines(`${path}/agent/two/cfg`)).toContain("topK=5");
  });
});
