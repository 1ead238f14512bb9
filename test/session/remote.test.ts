/** Sessions whose tools run on another host, which is a fake that the test moves by hand. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CodedFault } from "../../src/fault.ts";
import type { Session } from "../../src/session/session.ts";
import { answers, call, chat, finish, idle, say, until, World } from "../turn/world.ts";
import { until as eventually } from "../until.ts";
import { done, FakeHost, FakeJob, type Running, tool } from "./remote-fake.ts";

setDefaultTimeout(60_000);

let world: World;
let host: FakeHost;
beforeEach(async () => {
  world = new World();
  host = new FakeHost();
  world.remotes = host;
  world.config = { autoLoad: ["build", "note"] };
  await world.start();
});
afterEach(() => world.remove());

const keys = (words: Record<string, string> = {}) => new Map(Object.entries(words));
const create = (words: Record<string, string> = {}) =>
  world.runtime.createSession(keys({ name: "s", remote: "me@h1", ...words }));
const first = (session: Session) => session.agents()[0]!;
const theCall = async (n = 1): Promise<Running> => {
  await eventually("the call is there", () => host.calls.length >= n);
  return host.calls[n - 1]!;
};
const buildThenSay = () =>
  answers([call("1", "build"), finish], [say("built"), finish], [say("and on"), finish]);
const denied = new CodedFault("denied", "ssh.auth", "me@h1 takes none of the keys", { hint: "add one" });

/** A session with a call that runs on the host. */
async function building(words: Record<string, string> = {}) {
  const session = await create(words);
  const agent = first(session);
  world.model = buildThenSay();
  await agent.submit("go");
  return { session, agent, running: await theCall() };
}

/** What a server finds that was killed while the call ran. */
async function killed(): Promise<Session> {
  const { agent } = await building();
  const journal = join(agent.store.folder, "journal.jsonl");
  const before = readFileSync(journal);
  await world.stop();
  await Bun.write(journal, before);
  world.model = answers([say("noted"), finish]);
  host.changed();
  await world.start();
  return world.runtime.session("s")!;
}

describe("a turn", () => {
  test("runs its calls there, in the folder and sandbox of the session, and tells of that host", async () => {
    const { agent, running } = await building({ cwd: "~/work", sandbox: "strict" });
    expect([running.tool, running.ctx.cwd, running.ctx.sandbox]).toEqual(["build", "~/work", "strict"]);
    running.end(done("all right"));
    await idle(agent);
    expect(chat(agent)).toContain("all right");
    const { system, tools } = world.requests[0]!;
    expect(system).toContain("Rules.");
    expect(tools.map(({ name }) => name)).toEqual(["build"]);
  });

  test("surveys the project once, so that the prompt stays the same", async () => {
    const { agent, running } = await building();
    running.end(done("one"));
    await idle(agent);
    expect(world.requests.length).toBe(2);
    expect(world.requests[0]!.system).toBe(world.requests[1]!.system);
    expect(host.surveys).toBe(1);
  });

  test("runs tools here that must, in a folder of the session's own", async () => {
    world.tool("note", "pwd", { remote: false });
    host.tools.push(tool("note"));
    const session = await create();
    const agent = first(session);
    world.model = answers([call("1", "note"), finish], [say("ok"), finish]);
    await agent.submit("go");
    await idle(agent);
    expect(host.calls).toEqual([]);
    expect(chat(agent)).toContain(`${session.store.tmp}/here\n`);
  });

  test("waits for the host before it asks the model", async () => {
    host.up = false;
    const session = await create();
    const agent = first(session);
    world.model = answers([say("hello"), finish]);
    await agent.submit("go");
    await until(agent, (state) => state === "unreachable: me@h1");
    expect(world.requests).toEqual([]);
    host.up = true;
    await idle(agent);
    expect(await agent.reply()).toBe("hello");
  });

  test("is paused while the host is lost, says so once, and goes on when it is back", async () => {
    host.grace = 1;
    const { agent, running } = await building();
    host.up = false;
    expect(agent.state).toBe("unreachable: me@h1");
    await eventually("it is told", () => chat(agent).includes("unreachable since"));
    host.up = true;
    expect(agent.state).toBe("calling: build");
    running.end(done("all right"));
    await idle(agent);
    expect(chat(agent).split("has been unreachable since").length).toBe(2);
    expect(chat(agent)).toContain("me@h1 is back");
    expect(host.calls.length).toBe(1);
  });

  test("that is stopped while the host is lost is idle at once, and the call is left", async () => {
    const { agent, running } = await building();
    host.up = false;
    agent.stop();
    await idle(agent);
    expect(running.signal.aborted).toBe(true);
    expect(chat(agent)).toContain("while me@h1 was out of reach");
  });
});

describe("a host that cannot be used", () => {
  test("fails the turn with the reason, and what waits goes on waiting", async () => {
    host.fault = denied;
    const agent = first(await create());
    await agent.enqueue("later");
    await agent.submit("go");
    await idle(agent);
    expect(chat(agent)).toMatch(/\[\[\[error.*\]\]\]\nme@h1 takes none of the keys; add one\n/);
    expect(world.requests).toEqual([]);
    expect(agent.queue().length).toBe(1);
  });

  test("is never the result of a call", async () => {
    const { agent, running } = await building();
    await agent.enqueue("later");
    running.break(denied);
    await idle(agent);
    expect(chat(agent)).toMatch(/\[\[\[error.*\]\]\]\nme@h1 takes none of the keys/);
    expect(agent.queue().length).toBe(1);
    const context = await agent.context();
    expect(context).toContain("interrupted before it finished");
    expect(context).not.toContain("keys");
  });
});

describe("a call that nobody waits for any more", () => {
  test("and that still runs after a restart is a job, of whose end the agent is told", async () => {
    const job = () => host.jobs.values().next().value!;
    const opId = Promise.withResolvers<string>();
    void theCall().then(({ opId: id }) => {
      host.jobs.set(id, new FakeJob(id, "build all"));
      opId.resolve(id);
    });
    const session = await killed();
    await eventually("it is a job", () => session.jobs.all().length === 1);
    const [made] = session.jobs.all();
    expect([made!.state, made!.cmd()]).toEqual(["running", "build: build all"]);
    expect(chat(first(session))).toContain("still runs on me@h1: it is job 1 of this session now");
    job().print("compiling\n");
    host.up = false;
    expect(made!.state).toBe("running");
    host.up = true;
    job().print("linked\n");
    job().end({ how: "exited", detail: "3" });
    await eventually("it has ended", () => made!.ended);
    expect([made!.state, made!.exit()]).toEqual(["exited: 3", "3"]);
    expect(Buffer.from(made!.out.read(0, 100)).toString()).toBe("compiling\nlinked\n");
    await eventually("the agent is told", () =>
      chat(first(session)).includes("Job 1 has ended with exit status 3"),
    );
    expect(host.calls.length).toBe(1);
  });

  test("and that has ended meanwhile is told with its result, also to the model", async () => {
    void theCall().then(({ opId }) => {
      const job = new FakeJob(opId, "build all");
      job.end({ how: "exited", detail: "0" }, done("42 files"));
      host.jobs.set(opId, job);
    });
    const session = await killed();
    const agent = first(session);
    await eventually("it is told", () => chat(agent).includes("42 files"));
    expect(session.jobs.all()).toEqual([]);
    await eventually("it is accounted for", () => agent.store.state.operations.size === 0);
    expect(await agent.context()).toContain("42 files");
    expect(host.calls.length).toBe(1);
  });

  test("and that the host does not know was not run again", async () => {
    const session = await killed();
    await eventually("it is told", () => chat(first(session)).includes("Nothing was run again"));
    expect(host.calls.length).toBe(1);
  });
});

describe("a job there", () => {
  test("is written down before it begins, can be signalled and killed", async () => {
    const { session, agent, running } = await building();
    const { opId, ctx } = running;
    const job = new FakeJob(opId, "sleep");
    const about = { agent: agent.name, tool: "build", command: "sleep", notify: false };
    const { id } = await ctx.jobs!.startThere(opId, about, async () => {
      expect(readFileSync(join(session.store.jobs.folder("1"), "job.json"), "utf8")).toContain(opId);
      host.jobs.set(opId, job);
    });
    running.end(done(`job ${id}`));
    await idle(agent);
    const [made] = session.jobs.all();
    await made!.ctl("signal 2");
    expect(job.signals).toEqual([2]);
    await made!.ctl("kill");
    expect(made!.state).toBe("killed: SIGTERM");
  });

  test("that did not begin is none", async () => {
    const { session, agent, running } = await building();
    const about = { agent: agent.name, tool: "build", command: "sleep", notify: false };
    const begin = () => Promise.reject(new Error("refused"));
    await expect(running.ctx.jobs!.startThere(running.opId, about, begin)).rejects.toThrow("refused");
    expect(session.jobs.all()).toEqual([]);
    running.end(done(""));
    await idle(agent);
  });

  test("is lost only where the host knows nothing of it", async () => {
    const { session, agent, running } = await building();
    const job = new FakeJob(running.opId, "sleep");
    const about = { agent: agent.name, tool: "build", command: "sleep", notify: false };
    await running.ctx.jobs!.startThere(
      running.opId,
      about,
      async () => void host.jobs.set(running.opId, job),
    );
    running.end(done(""));
    await idle(agent);
    job.forget(new CodedFault("missing", "op.unknown", "never heard of it"));
    const [made] = session.jobs.all();
    await eventually("it is lost", () => made!.ended);
    expect(made!.state).toBe("lost");
  });
});

describe("settings", () => {
  test("remote is shown, and what it says of itself", async () => {
    const session = await create();
    expect(session.cfg()).toContain("remote=me@h1\n");
    expect(session.cfg()).toContain("cwd=~\n");
    expect(session.remote.line).toMatch(/^(idle|ready) me@h1$/);
    expect((await create({ name: "t", remote: "" })).remote.line).toBe("local");
  });

  test("remote can be changed until a tool has run there", async () => {
    const { session, agent, running } = await building();
    await expect(session.configure(keys({ remote: "h2" }))).rejects.toThrow(/have run on me@h1/);
    running.end(done(""));
    await idle(agent);
    await expect(session.configure(keys({ remote: "" }))).rejects.toThrow(/have run on me@h1/);
    const other = await create({ name: "t" });
    await other.configure(keys({ remote: "h2" }));
    expect(other.cfg()).toContain("remote=h2\n");
    await other.configure(keys({ remote: "" }));
    expect(other.remote.line).toBe("local");
  });

  test.each([
    [{ remote: "-x" }, /no host/],
    [{ cwd: "there" }, /an absolute path on the other host, or one below ~/],
    [{ remote: "", remoteSession: "0192f0c1-2345-7abc-8def-0123456789ab" }, /remoteSession needs remote/],
    [{ remoteSession: "me" }, /the whole id/],
  ])("%p is refused", async (words, message) => {
    await expect(create(words as Record<string, string>)).rejects.toThrow(message);
    expect(world.runtime.sessions()).toEqual([]);
  });

  test("a folder of the other host is not looked for here", async () => {
    const session = await create({ cwd: "/no/such/folder" });
    expect(session.cwd).toBe("/no/such/folder");
    await first(session).configure(keys({ cwd: "/no/other" }));
  });

  test("a session that is to be gone on with is named to the host, and in no file", async () => {
    const id = "0192f0c1-2345-7abc-8def-0123456789ab";
    const session = await create({ remoteSession: id });
    void session.reach.remote;
    expect(host.owners[0]!.attach).toBe(id);
    expect(session.cfg()).not.toContain(id);
  });

  test("the locator is kept, and shown nowhere", async () => {
    const { session, agent, running } = await building();
    await host.owners[0]!.keep({ sessionId: "x", key: "the secret key" });
    running.end(done(""));
    await idle(agent);
    const shown = [session.cfg(), session.env(), agent.cfg(), agent.snapshot(), agent.machine()].join();
    expect(shown).not.toContain("secret");
    await world.stop();
    await world.start();
    void world.runtime.session("s")!.reach.remote;
    expect(host.owners.at(-1)!.locator).toEqual({ sessionId: "x", key: "the secret key" });
  });

  test("verbs go to the way to the host; a session of this one has none", async () => {
    const session = await create();
    await session.ctl("reconnect");
    await session.ctl("sync");
    expect(host.told).toEqual(["reconnect", "sync"]);
    const here = await create({ name: "t", remote: "" });
    await expect(here.ctl("reconnect")).rejects.toThrow(/run on this host/);
    await expect(here.ctl("sync")).rejects.toThrow(/run on this host/);
  });
});

describe("what a tool makes", () => {
  test("is on the same host and in the same folder", async () => {
    const session = await create({ cwd: "/srv" });
    const maker = first(session);
    const child = await world.runtime.createSession(keys({ name: "s__a" }), maker);
    expect([child.target, child.cwd]).toEqual(["me@h1", "/srv"]);
    const inside = world.runtime.createSession(keys({ cwd: "/srv/in" }), maker);
    await expect(inside).rejects.toThrow(/work where it works itself, in \/srv/);
    await expect(world.runtime.createSession(keys({ remote: "h2" }), maker)).rejects.toThrow(
      /cannot set remote/,
    );
    await expect(session.createAgent(keys({ cwd: "/" }), maker)).rejects.toThrow(/work where it works/);
  });
});

describe("the end", () => {
  test("of a session ends what is there; that of the server only lets go", async () => {
    const { agent, running } = await building();
    running.end(done(""));
    await idle(agent);
    await world.stop();
    expect(host.told).toEqual(["close"]);
    await world.start();
    const session = world.runtime.session("s")!;
    void session.reach.remote;
    await session.remove();
    await eventually("it is removed there", () => host.told.includes("destroy"));
  });

  test("metrics count sessions by the state of the way to their hosts", async () => {
    await create();
    expect(world.runtime.metrics()).toMatch(/ollie_remotes\{state="\w+"\} 1/);
  });
});
