/** Sessions on a host that runs the real ollie-remote; only SSH is made up. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";
import type { Answer } from "../../src/elevate/question.ts";
import { ProjectApprovals } from "../../src/sandbox/project-approvals.ts";
import { Hosts } from "../../src/session/hosts.ts";
import type { Session } from "../../src/session/session.ts";
import { FakeHost } from "../remote/client/host.ts";
import { answers, call, chat, finish, idle, say, World } from "../turn/world.ts";
import { until } from "../until.ts";

setDefaultTimeout(90_000);

let world: World;
let host: FakeHost;
beforeEach(async () => {
  host = new FakeHost();
  world = new World();
  world.remotes = hosts();
  world.config = { autoLoad: ["build"] };
  world.tool(
    "build",
    'echo "in $PWD$COLOUR"; until [ -e go ]; do sleep 0.05; done; echo built >> log; echo done',
    {
      args: { type: "object", properties: { detach: { type: "boolean" }, notify: { type: "boolean" } } },
    },
  );
  await world.start();
});
afterEach(async () => {
  host.reachable = true;
  await world.remove();
  await until("nothing is left there", () => host.sessions.length === 0);
  host.remove();
});

/** As the configuration has them. */
function hosts(): Hosts {
  const { connections, boot } = host;
  const environment = { HOME: world.folder, OLLIE_TOOLS_PATH: world.toolsFolder };
  const config = loadConfig(environment, { config: join(world.folder, "config"), state: world.folder });
  return new Hosts(config, world.approvals, { connections, boot });
}

const go = () => writeFileSync(join(host.project, "go"), "");
const log = () => (existsSync(join(host.project, "log")) ? "built" : "");
/** Processes of the tool there. */
const builds = () =>
  readdirSync("/proc").filter((pid) => {
    try {
      return (
        readlinkSync(`/proc/${pid}/cwd`) === host.project &&
        readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("/build\0")
      );
    } catch {
      // No process, or one that has just ended.
      return false;
    }
  });
const agentOf = (session: Session) => session.agents()[0]!;

async function building(args = {}) {
  const session = await world.runtime.createSession(
    new Map([
      ["name", "s"],
      ["remote", "me@h1"],
      ["cwd", host.project],
    ]),
  );
  const agent = agentOf(session);
  world.model = answers([call("1", "build", args), finish], [say("it is built"), finish]);
  await agent.submit("go");
  return { session, agent };
}

test("a call runs there and its output comes as it is printed", async () => {
  const { session, agent } = await building();
  await until("it prints", () => chat(agent).includes(`in ${host.project}\n`));
  expect([agent.state, session.remote.line]).toEqual(["calling: build", "ready me@h1"]);
  go();
  await idle(agent);
  expect(chat(agent)).toMatch(/\ndone\n\[.*on me@h1\]/);
  expect(log()).toBe("built");
});

test("a link that breaks in the middle is told by state, and the call goes on", async () => {
  const { agent } = await building();
  await until("it prints", () => chat(agent).includes("in "));
  host.reachable = false;
  host.dropLink();
  await until("it is out of reach", () => agent.state === "unreachable: me@h1");
  go();
  await until("it is built all the same", log);
  host.reachable = true;
  await agent.session.ctl("reconnect");
  await idle(agent);
  expect(chat(agent)).toMatch(/\ndone\n\[.*on me@h1\]/);
  expect(await agent.reply()).toBe("it is built");
});

test("a call that is stopped while its host is out of reach keeps nobody waiting, and ends there once it is back", async () => {
  const { session, agent } = await building();
  await until("it prints", () => chat(agent).includes("in "));
  expect(builds().length).toBe(1);
  host.reachable = false;
  host.dropLink();
  await until("it is out of reach", () => agent.state === "unreachable: me@h1");
  agent.stop();
  await idle(agent);
  expect(session.remote.state).not.toBe("ready");
  host.reachable = true;
  await session.ctl("reconnect");
  await until("it has ended there", () => builds().length === 0);
  expect(log()).toBe("");
});

test("a job there runs on through a restart of this server", async () => {
  const { session, agent } = await building({ detach: true });
  await idle(agent);
  expect(session.jobs.all().map(({ state }) => state)).toEqual(["running"]);
  await world.stop();
  world.remotes = hosts();
  await world.start();
  const again = world.runtime.session("s")!;
  const [job] = again.jobs.all();
  await until("its output is here", () => job!.out.length > 0);
  expect(job!.state).toBe("running");
  go();
  await until("it has ended", () => job!.ended);
  expect([job!.state, Buffer.from(job!.out.read(0, 1000)).toString()]).toEqual([
    "exited: 0",
    `in ${host.project}\ndone\n`,
  ]);
  await until("it is told", () => chat(agentOf(again)).includes("Job 1 has ended"));
});

test("a session that is removed leaves nothing there", async () => {
  const { session, agent } = await building();
  go();
  await idle(agent);
  expect(host.sessions.length).toBe(1);
  await session.remove();
  await until("it is gone there", () => host.sessions.length === 0);
  expect(existsSync(host.project)).toBe(true);
});

test("a session that is removed after a restart leaves nothing there, its host not reached since", async () => {
  const { agent } = await building();
  go();
  await idle(agent);
  await world.stop();
  world.remotes = hosts();
  await world.start();
  expect(host.sessions.length).toBe(1);
  await world.runtime.session("s")!.remove();
  await until("it is gone there", () => host.sessions.length === 0);
});

test("tools that change here change there", async () => {
  const { agent } = await building();
  go();
  await idle(agent);
  const path = join(world.toolsFolder, "build");
  writeFileSync(path, "#!/bin/sh\necho another\n");
  chmodSync(path, 0o755);
  await agent.session.ctl("sync");
  world.model = answers([call("2", "build"), finish], [say("ok"), finish]);
  await agent.submit("again");
  await idle(agent);
  expect(chat(agent)).toContain("another\n");
});

test("a variable that is changed counts from the next call on", async () => {
  const { session, agent } = await building();
  go();
  await idle(agent);
  await session.changeEnv(new Map([["COLOUR", "green"]]));
  world.model = answers([call("2", "build", {}), finish], [say("seen"), finish]);
  await agent.submit("again");
  await idle(agent);
  expect(await chat(agent)).toContain(`in ${host.project}green\n`);
});

test("what a project there asks for counts once its file is approved here, from the next call on", async () => {
  const open = join(host.folder, "open");
  mkdirSync(open);
  const file = join(host.project, ".ollie-sandbox.yaml");
  writeFileSync(file, `filesystem:\n  rwx: [${open}]\n`);
  world.tool("reach", `touch ${open}/x && echo reached`);
  world.config = { autoLoad: ["build", "reach"] };
  go();
  const { session, agent } = await building();
  await idle(agent);
  const told = /--remote me@h1 --sha256 ([0-9a-f]{64}) (\S+)\)/.exec(await chat(agent))!;
  expect(told[2]).toBe(file);
  const ask = async (id: string) => {
    world.model = answers([call(id, "reach", {}), finish], [say("tried"), finish]);
    await agent.submit("again");
    await idle(agent);
  };
  await ask("2");
  expect(existsSync(join(open, "x"))).toBe(false);
  new ProjectApprovals(world.folder).approveThere("me@h1", file, told[1]!);
  await ask("3");
  expect(existsSync(join(open, "x"))).toBe(true);
  // As it was, and not as it is made later.
  rmSync(join(open, "x"));
  writeFileSync(file, `filesystem:\n  rwx: [${open}, ${host.home}]\n`);
  await ask("4");
  expect(existsSync(join(open, "x"))).toBe(false);
  await session.remove();
});

test("the way there is in the trace of the session's agents", async () => {
  const { agent } = await building();
  await until("the call runs", () => agent.state === "calling: build");
  host.dropLink();
  await until("the link is back", () => agent.session.remote.line.startsWith("ready"));
  go();
  await idle(agent);
  const lines = Buffer.from(agent.trace.read(0, 100_000)).toString().trim().split("\n");
  const way = lines.map((line) => JSON.parse(line)).filter(({ actor }) => actor === "remote");
  const states = way.map(({ to }) => String(to).split(".")[0]);
  expect([...new Set(states)]).toEqual(["connecting", "bootstrapping", "attaching", "ready", "reconnecting"]);
  expect(way.map(({ event }) => event)).toContain("LOST");
});

test("a call that wants out of the sandbox there is asked about here, with the host's name, and each yes is for what was asked", async () => {
  const outside = join(host.folder, "outside");
  mkdirSync(outside);
  const reader = world.approvals.reader();
  world.tool("reach", `touch ${outside}/$OLLIE_ARG_NAME && echo "reached $OLLIE_ARG_NAME"`, {
    args: { type: "object", properties: { name: { type: "string" }, elevated: { type: "boolean" } } },
  });
  world.config = { autoLoad: ["build", "reach"] };
  go();
  const { agent } = await building();
  await idle(agent);
  const reach = async (id: string, name: string, answer?: "once" | "session" | "deny") => {
    world.model = answers([call(id, "reach", { name, elevated: true }), finish], [say("tried"), finish]);
    await agent.submit("reach");
    if (answer) {
      const { id, host: asked } = (await until("the user is asked", () => world.approvals.pending()[0]))!;
      expect(asked).toBe("me@h1");
      const said =
        answer === "deny" ? { decision: "deny", reason: "not today" } : { decision: "allow", scope: answer };
      world.approvals.answer(id, said as Answer, "test");
    }
    await idle(agent);
    return existsSync(join(outside, name));
  };
  expect(await reach("2", "denied", "deny")).toBe(false);
  expect(await chat(agent)).toContain("not today");
  expect(await reach("3", "once", "once")).toBe(true);
  // For this one call: the same again is asked again.
  expect(await reach("4", "twice", "session")).toBe(true);
  rmSync(join(outside, "twice"));
  expect(await reach("5", "twice")).toBe(true);
  expect(await reach("6", "else", "deny")).toBe(false);
  reader.close();
});
