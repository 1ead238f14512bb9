/** Clients that this project did not write: what they send, in frames that are made by hand. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "./harness.ts";
import { fuse, type Mount, v9fs } from "./namespace-mounts.ts";
import { NOFID, string, u16, u32, Wire } from "./namespace-wire.ts";
import { refusal, type Session, World } from "./namespace-world.ts";

const [OREAD, OWRITE, ORDWR, OTRUNC] = [0, 1, 2, 0x10];

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const split = (path: string) => path.split("/");

for (const [client, mount] of [
  ["9pfuse", fuse],
  ["v9fs", v9fs],
] as const)
  describe(client, () => {
    let shell: Mount;
    beforeAll(async () => {
      shell = await mount(world.server.address);
    });
    afterAll(() => shell.wire.vanish());

    /** Everything a shell does with one session. */
    const session = async (): Promise<Session> => world.session();

    test("echo > new, ctl, cfg, env, tools, queue", async () => {
      const name = `by-${client}`;
      await shell.overwrite("session/new", `name=${name} cwd=${world.home.work}\n`);
      const agent = `session/${name}/agent/default`;
      await shell.overwrite(`${agent}/ctl`, "maxsteps 5\n");
      await shell.overwrite(`${agent}/cfg`, "seed=1\n");
      await shell.overwrite(`session/${name}/env`, "A=1\n");
      await shell.overwrite(`${agent}/tools`, "reasoning_think\n");
      await shell.overwrite(`${agent}/queue`, "one\n");
      await shell.append(`${agent}/queue`, "two\n");
      expect(await shell.cat(`${agent}/cfg`)).toMatch(/^maxSteps=5$.*^seed=1$/ms);
      expect(await shell.cat(`session/${name}/env`)).toBe("A=1\n");
      expect(await shell.cat(`${agent}/tools`)).toContain("reasoning_think\n");
      expect(await shell.cat(`${agent}/queue`)).toBe('"one"\n"two"\n');
    });

    test("echo >> ctl and prompt, at whatever offset", async () => {
      const { agent } = await session();
      await shell.append(`${agent}/ctl`, "maxsteps 6\n");
      await shell.append(`${agent}/prompt`, "hello\n");
      expect(await shell.cat(`${agent}/idlewait`)).toBe("idle\n");
      expect(await shell.cat(`${agent}/reply`)).toBe("You said: hello\n");
      expect(await shell.cat(`${agent}/cfg`)).toContain("maxSteps=6\n");
    });

    test("echo bad > ctl fails at the write", async () => {
      const { agent } = await session();
      expect(await refusal(shell.overwrite(`${agent}/ctl`, "fly\n"))).toStartWith(
        "Invalid argument: unknown verb fly",
      );
      expect(await shell.cat("lasterr")).toContain(
        `/${agent}/ctl: Invalid argument: unknown verb fly; there are`,
      );
    });

    test("echo > plan, echo >> plan, > plan", async () => {
      const { path } = await session();
      await shell.overwrite(`${path}/plan`, "first and long\n");
      await shell.overwrite(`${path}/plan`, "second\n");
      await shell.append(`${path}/plan`, "third\n");
      expect(await shell.cat(`${path}/plan`)).toBe("second\nthird\n");
      await shell.overwrite(`${path}/plan`, "");
      expect(await shell.cat(`${path}/plan`)).toBe("");
    });

    test("a long text through small messages", async () => {
      const { agent, path } = await session();
      const text = "0123456789 grüße 🌍 ".repeat(1000);
      await shell.overwrite(`${agent}/queue`, text);
      await shell.overwrite(`${path}/plan`, text);
      expect(JSON.parse(await shell.cat(`${agent}/queue`))).toBe(text);
      expect(await shell.cat(`${path}/plan`)).toBe(text);
    });

    test("mv of a session and of an agent", async () => {
      const { name, path, agent } = await session();
      await shell.mv(agent, "renamed");
      await shell.mv(path, `${name}-${client}`);
      expect(await shell.cat(`session/${name}-${client}/agent/renamed/state`)).toBe("idle\n");
    });

    test("cat of every file, with the length that stat told", async () => {
      const { agent, path } = await session();
      await shell.overwrite(`${agent}/prompt`, "hello\n");
      await shell.cat(`${agent}/idlewait`);
      await until("the window is known", async () => (await shell.cat(`${agent}/ctxsz`)).includes("%"));
      for (const folder of [path, agent])
        for (const { name, mode, length } of await world.client.readDir(folder)) {
          if (!(mode & 0o400) || mode & 0x8000_0000 || /wait$/.test(name)) continue;
          expect([name, Buffer.byteLength(await shell.cat(`${folder}/${name}`))]).toEqual([
            name,
            Number(length),
          ]);
        }
    });

    test("a blocked read is flushed with the error that its kernel knows", async () => {
      const { agent } = await session();
      const fid = 9000;
      await shell.wire.walk(0, fid, ...split(`${agent}/statewait`));
      await shell.wire.open(fid, OREAD);
      const read = shell.wire.read(fid, 0, 4096, 4711);
      read.catch(() => {});
      await shell.cat(`${agent}/state`);
      await shell.wire.flush(4711);
      expect(await refusal(read)).toBe("Interrupted system call");
      await shell.wire.clunk(fid);
    });
  });

describe("a client of its own", () => {
  let wire: Wire;
  let next = 100;
  beforeAll(async () => {
    wire = await Wire.attach(world.server.address);
  });
  afterAll(() => wire.vanish());

  const walked = async (path: string) => {
    const fid = next++;
    await wire.walk(0, fid, ...split(path));
    return fid;
  };
  const opened = async (path: string, mode: number) => {
    const fid = await walked(path);
    await wire.open(fid, mode);
    return fid;
  };

  test("fsyncs with a Twstat that touches nothing, on any file, open or not", async () => {
    const { agent, path } = await world.session();
    for (const file of [`${agent}/ctl`, `${agent}/chat`, `${path}/plan`, path, "help"])
      await wire.wstat(await walked(file), {});
    const plan = await opened(`${path}/plan`, OWRITE);
    await wire.write(plan, 0, "synced\n");
    await wire.wstat(plan, {});
    await wire.clunk(plan);
    expect(await world.read(`${path}/plan`)).toBe("synced\n");
  });

  test("touches and changes modes without an error or an effect, as tee, cp -p and touch do", async () => {
    const { agent } = await world.session();
    const fid = await walked(`${agent}/cfg`);
    await wire.wstat(fid, { mtime: 1 });
    await wire.wstat(fid, { mode: 0o600 });
    expect((await wire.stat(fid)).mode).toBe(0o644);
    expect(await refusal(wire.wstat(fid, { mode: 0x8000_01a4 }))).toStartWith("Operation not permitted");
  });

  test("pipelines a whole command without waiting for an answer", async () => {
    const { agent } = await world.session();
    const fid = next++;
    const bytes = Buffer.from("at once\n");
    await Promise.all([
      wire.walk(0, fid, ...split(`${agent}/prompt`)),
      wire.request(112, [u32(fid), Buffer.from([OWRITE])]),
      wire.write(fid, 0, bytes.subarray(0, 3)),
      wire.write(fid, 3, bytes.subarray(3)),
      wire.clunk(fid),
    ]);
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: at once\n");
  });

  test("makes a session and reads its name from the same fid, without waiting either", async () => {
    const fid = await opened("session/new", ORDWR);
    const text = "name=pipelined\n";
    const [, name] = await Promise.all([wire.write(fid, 0, text), wire.read(fid, text.length, 4096)]);
    expect(name.toString()).toBe("pipelined\n");
  });

  test("sends Twrite with no bytes, which is nothing", async () => {
    const { agent } = await world.session();
    const fid = await opened(`${agent}/ctl`, OWRITE);
    expect(await wire.write(fid, 0, "")).toBe(0);
    await wire.clunk(fid);
  });

  test("may open anything without doing anything, as access(2) is done", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/plan`, "kept\n");
    await world.write(`${agent}/queue`, "kept\n");
    const before = await world.read("session/idx");
    for (const folder of ["", "session", path, `${path}/agent`, agent])
      for (const { name, mode } of await world.client.readDir(folder)) {
        if (mode & 0x8000_0000) continue;
        for (const [bit, access] of [
          [0o400, OREAD],
          [0o200, OWRITE],
        ] as const) {
          if (!(mode & bit)) continue;
          await wire.clunk(await opened(folder === "" ? name : `${folder}/${name}`, access));
        }
      }
    expect(await world.read("session/idx")).toBe(before);
    expect(await world.read(`${path}/plan`)).toBe("kept\n");
    expect(await world.read(`${agent}/queue`)).toBe('"kept"\n');
    expect(await world.read(`${agent}/chat`)).toBe("");
  });

  test("that vanishes in the middle of a write leaves nothing of it", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/plan`, "kept\n");
    const other = await Wire.attach(world.server.address);
    await other.walk(0, 1, ...split(`${path}/plan`));
    await other.open(1, OWRITE | OTRUNC);
    await other.write(1, 0, "lost");
    await other.walk(0, 2, ...split(`${agent}/prompt`));
    await other.open(2, OWRITE);
    await other.write(2, 0, "lost");
    other.vanish();
    await world.turn(agent, "still there?");
    expect(await world.read(`${path}/plan`)).toBe("kept\n");
    expect(await world.read(`${agent}/chat`)).not.toContain("lost");
  });

  test("lists a folder in messages of any size, and is told where an offset is none", async () => {
    for (let i = 0; i < 40; i++) await world.write("session/new", `name=many-${i}\n`);
    const fid = await opened("session", OREAD);
    const read = async (offset: number, count: number) => {
      const reply = await wire.request(116, [u32(fid), u32(offset), u32(0), u32(count)]);
      return reply.bytes(reply.u32());
    };
    const whole: Buffer[] = [];
    let offset = 0;
    // The last message of a kernel's buffer has only the room that is left: nothing fits, and it asks again.
    for (let turn = 0; ; turn++) {
      const part = await read(offset, turn % 2 ? 20 : 1000);
      if (turn % 2) expect(part.length).toBe(0);
      else if (part.length === 0) break;
      whole.push(Buffer.from(part));
      offset += part.length;
    }
    expect(Buffer.concat(whole).includes("many-39")).toBe(true);
    expect(await refusal(read(offset - 1, 1000))).toContain("bad offset in directory read");
    expect((await read(0, 8000)).length).toBeGreaterThan(1000);
  });

  test("may attach again, under any name, and be the same user", async () => {
    await wire.request(104, [u32(77), u32(NOFID), string("nobody"), string("")]);
    const fid = next++;
    await wire.request(110, [u32(77), u32(fid), u16(1), string("version")]);
    expect((await wire.stat(fid)).name).toBe("version");
  });
});
