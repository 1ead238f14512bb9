/** Many clients that do anything to anything: whatever comes back is an answer, and afterwards all is in order. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Wire } from "./namespace-wire.ts";
import { World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

/** What an error may begin with. */
const phrases = [
  ...["Invalid argument", "file does not exist", "file already exists", "permission denied"],
  ...["Device or resource busy", "Is a directory", "not a directory", "Interrupted system call"],
  ...["Operation not permitted", "Bad file descriptor", "bad offset in directory read"],
];

const sessions = ["a", "b", "c"];
const files = [
  ...[
    "prompt",
    "prompt.prev",
    "queue",
    "fifo.in",
    "fifo.out",
    "chat",
    "reply",
    "offset",
    "state",
    "statewait",
  ],
  ...["idlewait", "cost", "usage", "ctxsz", "context", "systemprompt", "models", "tools", "cfg", "ctl"],
  ...["machine", "machine.mmd", "snapshot", "trace", "name", "env", "plan", "lasterr", "agent", "agent/new"],
];
const texts = [
  ...["stop", "kill", "rename a", "rename x", "clear", "inject hi", "retry", "dequeue", "save", "model x"],
  ...["name=a", "name=x", "name=y agent=tester", "seed=1", "A=1", "share=q", "shell", "-shell", "a", ""],
  ...["/stop", "/help", "/kill", "/rename x", "//x", "slowly hi", "run sleep 0.02", "forever", "stop\nclear"],
  ...["x".repeat(1024), "x".repeat(8168), "[[[end]]]"],
];

/** The same numbers for the same seed (xorshift). */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** One client's life. Returns the errors it was given. */
async function use(seed: number, requests: number): Promise<string[]> {
  const errors: string[] = [];
  const next = random(seed);
  const pick = <T>(from: readonly T[]): T => from[next(from.length)]!;
  const path = (): string[] => {
    const [session, file] = [pick(sessions), pick(files)];
    return pick([
      `session/${session}/agent/${pick(["default", "x", "y"])}/${file}`,
      `session/${session}/${file}`,
      `s/${session}/${file}`,
      pick([`session/${session}`, "session", "s", "session/new", "session/idx", "lasterr", "metrics"]),
    ]).split("/");
  };
  let wire = await Wire.attach(world.server.address);
  let [fids, count] = [[] as number[], 0];
  const open = async () => {
    const [fid, names] = [++count, path()];
    if ((await wire.walk(0, fid, ...names)) < names.length) return;
    fids.push(fid);
    await wire.open(fid, pick([0, 1, 2, 0x10, 0x11]));
  };
  const read = async (fid: number) => {
    const tag = 60_000;
    const answer = wire.read(fid, pick([0, 0, 1, 5, 4096, 2 ** 40]), pick([1, 100, 8168]), tag);
    const timer = setTimeout(() => void wire.flush(tag), 20);
    await answer.finally(() => clearTimeout(timer));
  };
  const end = (fid: number, work: Promise<void>) => {
    fids = fids.filter((other) => other !== fid);
    return work;
  };
  for (let i = 0; i < requests; i++) {
    const fid = pick(fids) ?? 0;
    const change = () => pick([{}, { length: 0n }, { length: 5n }, { name: pick(sessions) }, { mtime: 1 }]);
    const text = () => pick(texts) + pick(["\n", "\n", ""]);
    try {
      const what = next(20);
      if (fid === 0 || what < 7) await open();
      else if (what < 9) await read(fid);
      else if (what < 14) await wire.write(fid, pick([0, 0, 3, 2 ** 33]), text());
      else if (what < 15) await wire.write(fid, 0, Buffer.from([pick([0xff, 0xc3, 0x00])]));
      else if (what < 16) await wire.wstat(fid, change());
      else if (what < 17) await wire.stat(fid);
      else if (what < 18 && next(3) === 0) await end(fid, wire.remove(fid));
      else await end(fid, wire.clunk(fid));
    } catch (error) {
      errors.push((error as Error).message);
    }
    if (next(200) === 0) {
      wire.vanish();
      wire = await Wire.attach(world.server.address);
      [fids, count] = [[], 0];
    }
    if (i % 50 === 0)
      await world.write("session/new", `name=${pick(sessions)} cwd="${world.home.work}"\n`).catch(() => {});
  }
  wire.vanish();
  return errors;
}

test("six clients at once", async () => {
  const seed = 1 + Math.floor(Math.random() * 2 ** 30);
  const errors = (await Promise.all([1, 2, 3, 4, 5, 6].map((n) => use(seed * n, 800)))).flat();
  const odd = errors.filter(
    (error) => !phrases.some((phrase) => error.startsWith(phrase)) || Buffer.byteLength(error) > 128,
  );
  expect({ seed, odd }).toEqual({ seed, odd: [] });
  expect(errors.length).toBeGreaterThan(500);

  const agents = (await world.read("session/idx"))
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  for (const [session, agent] of agents) {
    const path = `session/${session}/agent/${agent}`;
    // Among what waits may be turns that end only when they are stopped.
    while ((await world.read(`${path}/queue`)) !== "")
      await world.write(`${path}/ctl`, "dequeue\n").catch(() => {});
    for (let state = ""; state !== "idle\n"; state = await world.read(`${path}/state`))
      await world.write(`${path}/ctl`, "stop\n");
    await world.write(`${path}/ctl`, "clear\n");
    await world.turn(path, "still there?");
    expect(await world.read(`${path}/reply`)).toBe("You said: still there?\n");
  }
  expect(world.server.log).not.toMatch(/"level":(50|60)/);
});
