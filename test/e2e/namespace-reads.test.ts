/** What a reader gets: snapshots and logs, lengths, listings, times and versions. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Client, Dir } from "../../src/ninep/client.ts";
import { DMDIR } from "../../src/ninep/file.ts";
import { until } from "./harness.ts";
import { Barrier, take, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

/** Everything below a folder, with its path. */
async function everything(client: Client, path: string): Promise<(Dir & { path: string })[]> {
  const found: (Dir & { path: string })[] = [];
  for (const entry of await client.readDir(path)) {
    const below = path === "" ? entry.name : `${path}/${entry.name}`;
    found.push({ ...entry, path: below });
    if (entry.mode & DMDIR) found.push(...(await everything(client, below)));
  }
  return found;
}

/** From the first byte to the end of the file, `count` bytes at a time. */
async function rest(fid: { read(offset: number, count?: number): Promise<Buffer> }, from: string, count = 1) {
  let text = from;
  for (let more = await fid.read(text.length, count); more.length > 0; ) {
    text += more.toString();
    more = await fid.read(text.length, count);
  }
  return text;
}

describe("a generated file", () => {
  test("is what it was at the first read, byte by byte, while everything changes", async () => {
    const { path, agent } = await world.session("env.A=1");
    await world.write(`${agent}/queue`, "first\n");
    const files = [
      "session/idx",
      `${agent}/cfg`,
      `${agent}/queue`,
      `${path}/env`,
      `${path}/name`,
      `${agent}/state`,
    ];
    const before = await Promise.all(files.map((file) => world.read(file)));
    const fids = await Promise.all(files.map((file) => world.client.openFile(file)));
    const begun = await Promise.all(fids.map((fid) => take(fid, 0, 1)));
    await world.write(`${agent}/cfg`, "backend=script\nmodel=another-and-longer-model\nseed=12345\n");
    await world.write(`${agent}/queue`, "second\n");
    await world.write(`${path}/env`, "AA=before everything\n");
    await world.write(`${path}/name`, `${path.slice(8)}-renamed\n`);
    await world.write(`${path}-renamed/agent/default/prompt`, "forever\n");
    expect(await Promise.all(fids.map((fid, i) => rest(fid, begun[i]!)))).toEqual(before);
    await world.write(`${path}-renamed/ctl`, "stop\n");
  });

  test("stays so for as long as it is open, also for a reader that begins at the end", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/cfg`);
    const whole = await world.read(`${agent}/cfg`);
    expect(await take(fid, 10)).toBe(whole.slice(10));
    await world.write(`${agent}/cfg`, "seed=99 model=changed\n");
    expect(await take(fid, 0)).toBe(whole);
    expect(await world.read(`${agent}/cfg`)).toContain("model=changed");
  });

  test("is made when it is read, not when it is opened", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/cfg`);
    await world.write(`${agent}/cfg`, "seed=7\n");
    expect(await take(fid)).toContain("seed=7");
  });

  test("is never torn, however many messages a reading takes", async () => {
    const small = await world.connect({ msize: 4096 });
    const { agent } = await world.session();
    for (let i = 0; i < 60; i++) await world.write(`${agent}/queue`, `${i}: ${"x".repeat(300)}\n`);
    for (let round = 0; round < 10; round++) {
      const [text] = await Promise.all([
        small.readText(`${agent}/queue`),
        world.write(`${agent}/queue`, `more ${"y".repeat(500)}\n`),
        world.write(`${agent}/ctl`, "dequeue\n"),
      ]);
      const waiting = text.trimEnd().split("\n");
      for (const line of waiting) expect(typeof JSON.parse(line)).toBe("string");
      expect([59, 60, 61]).toContain(waiting.length);
    }
  });

  test("ends at its end, wherever a read begins", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/state`);
    for (const offset of [5, 6, 4096, 2 ** 40, 2n ** 63n]) expect((await fid.read(offset)).length).toBe(0);
    expect(await take(fid, 0, 2)).toBe("id");
  });
});

describe("a log", () => {
  test("is read as it grows, from one open file", async () => {
    const { agent } = await world.session();
    const chat = await world.client.openFile(`${agent}/chat`);
    const trace = await world.client.openFile(`${agent}/trace`);
    let [said, traced] = ["", ""];
    expect(await take(chat)).toBe("");
    for (const prompt of ["one", "slowly two", "three"]) {
      await world.turn(agent, prompt);
      said = await rest(chat, said, 4096);
      traced = await rest(trace, traced, 4096);
      expect(said).toBe(await world.read(`${agent}/chat`));
      expect(traced).toBe(await world.read(`${agent}/trace`));
    }
    expect(said).toContain("You said: three\n");
  });

  test("that dropped its beginning is read on from what is kept", async () => {
    const { agent } = await world.session();
    // A turn is about 400 bytes of trace, of which at most 16 KiB are kept.
    for (let i = 0; i < 60; i++) await world.write(`${agent}/prompt`, `turn ${i}\n`);
    await world.idle(agent);
    const text = await world.read(`${agent}/trace`);
    const { length } = await world.client.stat(`${agent}/trace`);
    expect(Number(length)).toBeGreaterThan(text.length);
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ actor: "agent", to: "idle" });
    const tail = await world.client.openFile(`${agent}/trace`);
    expect(await take(tail, Number(length) - 100)).toBe(text.slice(-100));
  });
});

describe("a length", () => {
  test("is that of the content, for every file that has one", async () => {
    const { path, agent } = await world.session("env.GRUSS=grüße");
    await world.turn(agent, "grüße 🌍\n");
    await world.write(`${agent}/queue`, "waits\n");
    await world.write(`${path}/plan`, "a plan");
    await world.p9(["write", `${path}/ctl`], { stdin: "nonsense\n" });
    // The first turn has asked for the size of the model's window.
    await until("the window is known", async () => (await world.read(`${agent}/ctxsz`)).includes("%"));
    let checked = 0;
    for (const folder of ["", "session", path, `${path}/agent`, agent, `s/${path.slice(8)}`])
      for (const entry of await world.client.readDir(folder)) {
        if (entry.mode & DMDIR || !(entry.mode & 0o400) || /^(new|metrics|.*wait)$/.test(entry.name))
          continue;
        const { length } = await world.client.readFile(`${folder}/${entry.name}`);
        expect([folder, entry.name, Number(entry.length)]).toEqual([folder, entry.name, length]);
        expect(Number((await world.client.stat(`${folder}/${entry.name}`)).length)).toBe(length);
        checked++;
      }
    expect(checked).toBeGreaterThan(50);
  });

  test("of a file that blocks is not 0, of one that is made by a write it is", async () => {
    const { path, agent } = await world.session();
    for (const file of ["statewait", "idlewait"])
      expect(Number((await world.client.stat(`${agent}/${file}`)).length)).toBeGreaterThan(0);
    for (const file of ["session/new", "s/new", `${path}/agent/new`])
      expect(Number((await world.client.stat(file)).length)).toBe(0);
  });

  test("is told without asking a provider; a read does ask", async () => {
    let asked = 0;
    const provider = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch() {
        asked++;
        return Response.json({ data: [{ id: "m", context_length: 4000 }] });
      },
    });
    const own = await World.start({
      env: {
        OLLIE_ENABLED_BACKENDS: "script,openai",
        OLLIE_OPENAI_URL: `${provider.url}v1`,
        OLLIE_OPENAI_KEY: "k",
      },
    });
    try {
      const { agent } = await own.session("backend=openai model=m");
      await until("the first question", async () => !(await own.read("backends")).includes("not asked yet"));
      const before = asked;
      for (let i = 0; i < 3; i++) await everything(own.client, "");
      await own.client.stat(`${agent}/ctxsz`);
      expect(asked).toBe(before);
      await until("the window", async () => (await own.read(`${agent}/ctxsz`)).includes(" / 4000 ("));
      expect(asked).toBeGreaterThan(before);
    } finally {
      await own.stop();
      await provider.stop(true);
    }
  });

  test("grows with the chat before anybody reads it", async () => {
    const { agent } = await world.session();
    const barrier = new Barrier(world.home);
    await world.write(`${agent}/prompt`, `run ${barrier.command()}`);
    const before = Number((await world.client.stat(`${agent}/chat`)).length);
    barrier.go();
    await world.idle(agent);
    expect(Number((await world.client.stat(`${agent}/chat`)).length)).toBeGreaterThan(before);
  });
});

describe("a listing", () => {
  test("is sorted by the bytes of the names", async () => {
    for (const name of ["b", "B", "a-1", "ä", "10", "9"])
      await world.write("session/new", `name=sorted-${name}\n`);
    for (const folder of [
      "",
      "session",
      "s",
      "session/sorted-b",
      "session/sorted-b/agent/default",
      "s/sorted-b",
    ]) {
      const names = (await world.client.readDir(folder)).map((entry) => entry.name);
      expect(names).toEqual([...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      expect(new Set(names).size).toBe(names.length);
    }
  });

  test("stays as it was while it is read", async () => {
    for (let i = 0; i < 120; i++) await world.write("session/new", `name=listed-${i}\n`);
    const small = await world.connect({ msize: 4096 });
    const fid = await small.openFile("session");
    const before = (await world.client.readDir("session")).map((entry) => entry.name);
    let data = Buffer.from(await fid.read(0));
    await world.client.remove("session/listed-119");
    await world.write("session/new", "name=listed-000\n");
    for (let more = await fid.read(data.length); more.length > 0; more = await fid.read(data.length))
      data = Buffer.concat([data, more]);
    expect(namesIn(data)).toEqual(before);
    const again = (await fid.entries()).map((entry) => entry.name);
    expect(again).toContain("listed-000");
    expect(again).not.toContain("listed-119");
  });

  test("of one that has gone is an error", async () => {
    const { path } = await world.session();
    const fid = await world.client.openFile(path);
    await world.client.remove(path);
    await expect(fid.entries()).rejects.toThrow("file does not exist: session removed");
  });
});

/** Names of the entries of a directory's content, stat(5). */
function namesIn(data: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < data.length; at += 2 + data.readUInt16LE(at))
    names.push(data.subarray(at + 43, at + 43 + data.readUInt16LE(at + 41)).toString());
  return names;
}

describe("time and version", () => {
  test("move when the content does, and only then", async () => {
    const { path, agent } = await world.session();
    await world.turn(agent, "before");
    const look = async () =>
      new Map((await everything(world.client, path)).map((entry) => [entry.path, entry]));
    const root = async () => new Map((await world.client.readDir("")).map((entry) => [entry.name, entry]));
    const [before, rootBefore] = [await look(), await root()];
    const content = async (file: string) => (await world.client.readFile(file)).toString();
    const readable = [...before.values()].filter(
      (e) => !(e.mode & DMDIR) && e.mode & 0o400 && !/wait$|new$/.test(e.name),
    );
    const texts = new Map(
      await Promise.all(readable.map(async (e) => [e.path, await content(e.path)] as const)),
    );
    // mtime counts seconds.
    await Bun.sleep(1100);
    await world.write(`${path}/plan`, "a plan\n");
    await world.write(`${path}/env`, "A=1\n");
    await world.write(`${path}/cfg`, "share=x\n");
    await world.write(`${agent}/cfg`, "seed=1\n");
    await world.write(`${agent}/tools`, "reasoning_think\n");
    await world.turn(agent, "after, and longer");
    await world.write(`${agent}/queue`, "later\n");
    await world.p9(["write", `${path}/ctl`], { stdin: "nonsense\n" });
    await world.write(`${path}/agent/new`, "name=another\n");
    const after = await look();
    let moved = 0;
    for (const [file, text] of texts) {
      const [was, is] = [before.get(file)!, after.get(file)!];
      if ((await content(file)) === text) continue;
      expect([file, is.mtime > was.mtime]).toEqual([file, true]);
      expect([file, is.qid.vers !== was.qid.vers]).toEqual([file, true]);
      moved++;
    }
    expect(moved).toBeGreaterThan(14);
    expect(after.get(`${path}/agent`)!.qid.vers).not.toBe(before.get(`${path}/agent`)!.qid.vers);
    for (const file of [`${path}/name`, `${agent}/machine`, `${agent}/machine.mmd`, `${agent}/models`])
      expect([file, after.get(file)]).toEqual([file, before.get(file)]);
    const rootAfter = await root();
    for (const name of ["help", "version", "agents", "tools", "skills", "backends"])
      expect([name, rootAfter.get(name)]).toEqual([name, rootBefore.get(name)]);
    for (const name of ["session", "s"]) expect(rootAfter.has(name)).toBe(true);
  });

  test("of the folder of sessions move with what is in it", async () => {
    const version = async () => (await world.client.stat("session")).qid.vers;
    const first = await version();
    const { name } = await world.session();
    const second = await version();
    await world.client.rename(`session/${name}`, `${name}-renamed`);
    const third = await version();
    await world.client.remove(`session/${name}-renamed`);
    expect(new Set([first, second, third, await version()]).size).toBe(4);
  });

  test("name a file for good: no path is used twice, and a rename keeps it", async () => {
    const { path, name, agent } = await world.session();
    const paths = async (from: string) =>
      (await everything(world.client, from)).map((entry) => Number(entry.qid.path));
    const first = await paths(path);
    expect(new Set(first).size).toBe(first.length);
    await world.client.rename(agent, "renamed");
    await world.client.rename(path, `${name}-kept`);
    expect((await paths(`session/${name}-kept`)).sort()).toEqual([...first].sort());
    await world.client.remove(`session/${name}-kept`);
    await world.write("session/new", `name=${name}-kept\n`);
    const second = await paths(`session/${name}-kept`);
    expect(second.filter((path) => first.includes(path))).toEqual([]);
  });
});
