/** `s/`: sessions as older scripts have them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DMDIR } from "../../src/ninep/file.ts";
import { refusal, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const entries = (path: string) => world.client.readDir(path);
const names = async (path: string) => (await entries(path)).map((entry) => entry.name);

test("a session shows its own files and those of its first agent, each name once", async () => {
  const { name, path, agent } = await world.session();
  const own = (await names(path)).filter((file) => file !== "agent" && file !== "job");
  expect(await names(`s/${name}`)).toEqual([...new Set([...own, ...(await names(agent))])].sort());
});

test("a file is the same one as in the long view", async () => {
  const { name, path, agent } = await world.session();
  await world.write(`${path}/agent/new`, "name=another\n");
  const own = await names(path);
  for (const entry of await entries(`s/${name}`)) {
    const long = await world.client.stat(
      own.includes(entry.name) ? `${path}/${entry.name}` : `${agent}/${entry.name}`,
    );
    expect([entry.name, entry.qid.path, entry.mode]).toEqual([entry.name, long.qid.path, long.mode]);
    if (entry.mode & DMDIR) continue;
    expect((await world.client.stat(`s/${name}/${entry.name}`)).qid.path).toBe(long.qid.path);
  }
});

test("what both have is the session's: cfg, ctl", async () => {
  const { name, path, agent } = await world.session();
  await world.write(`s/${name}/cfg`, "share=x\n");
  expect(await world.read(`${path}/cfg`)).toContain("share=x\n");
  expect(await refusal(world.write(`s/${name}/cfg`, "seed=1\n"))).toContain("unknown key seed");
  await world.write(`${agent}/prompt`, "forever\n");
  await world.write(`s/${name}/ctl`, "stop\n");
  await world.idle(agent);
});

test("a turn can be had with nothing else", async () => {
  await world.write("s/new", `name=short cwd=${world.home.work}\n`);
  await world.write("s/short/prompt", "hello\n");
  await world.read("s/short/idlewait");
  expect(await world.read("s/short/reply")).toBe("You said: hello\n");
  const offset = Number(await world.read("s/short/offset"));
  expect((await world.client.readFile("s/short/chat")).subarray(offset).toString()).toContain(
    "You said: hello\n",
  );
  expect(await world.read("s/idx")).toBe(await world.read("session/idx"));
});

test("the first agent is the oldest that is left", async () => {
  const { name, path, agent } = await world.session();
  await world.write(`${path}/agent/new`, "name=aaa\n");
  await world.turn(`s/${name}`, "to the first");
  expect(await world.read(`${agent}/reply`)).toBe("You said: to the first\n");
  await world.client.remove(agent);
  await world.turn(`s/${name}`, "to the second");
  expect(await world.read(`${path}/agent/aaa/reply`)).toBe("You said: to the second\n");
  await world.client.remove(`${path}/agent/aaa`);
  expect(["agent", "job", ...(await names(`s/${name}`))].sort()).toEqual(await names(path));
  expect(await refusal(world.read(`s/${name}/state`))).toStartWith(
    "file does not exist: neither the session nor its first agent has a file state",
  );
});

test("the agents can be reached, though not seen: rm -r would take them before their files", async () => {
  const { name, agent } = await world.session();
  expect(await names(`s/${name}`)).not.toContain("agent");
  expect(await world.read(`s/${name}/agent/default/cfg`)).toBe(await world.read(`${agent}/cfg`));
});

test("a session is removed and renamed there as well, and can be reached by ..", async () => {
  const { name } = await world.session();
  const up = await (await world.client.walk(`s/${name}`)).walk(["..", name, "plan"]);
  expect(up.qid.path).toBe((await world.client.stat(`session/${name}/plan`)).qid.path);
  await world.client.rename(`s/${name}`, `${name}-renamed`);
  expect(await world.p9(["rm", "-r", `s/${name}-renamed`])).toEqual({ status: 0, stdout: "", stderr: "" });
  expect(await names("session")).not.toContain(`${name}-renamed`);
});

test("nothing can be made or renamed in s/ itself", async () => {
  expect(await refusal(world.client.create("s/x", 0o644, 1))).toStartWith("permission denied");
  expect(await refusal(world.client.rename("s/new", "x"))).toStartWith("permission denied");
  expect((await world.client.stat("s")).mode & 0o777).toBe(0o555);
});
