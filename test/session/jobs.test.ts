import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Job } from "../../src/session/job.ts";
import type { Session } from "../../src/session/session.ts";
import { answers, call, chat, finish, idle, say, World } from "../turn/world.ts";
import { until } from "../until.ts";

setDefaultTimeout(60_000);

let world: World;
beforeEach(async () => {
  world = await World.open();
});
afterEach(async () => {
  // Jobs outlive their server: they go with their sessions.
  for (const session of world.runtime.sessions()) await session.remove();
  await world.remove();
});

const schema = { type: "object", properties: { detach: { type: "boolean" }, notify: { type: "boolean" } } };

/** A session whose agent has started the script as a job. */
async function started(script: string, args: object = {}): Promise<{ session: Session; job: Job }> {
  world.tool("work", script, { args: schema });
  const session = await world.runtime.createSession(new Map([["name", "a"]]));
  const job = await again(session, args);
  return { session, job };
}

/** The session's agent starts that script once more. */
async function again(session: Session, args: object = {}): Promise<Job> {
  const agent = session.agents()[0]!;
  const text = JSON.stringify({ detach: true, ...args });
  world.model = answers([call("1", "work", text), finish], [say("started"), finish], [say("noted"), finish]);
  await agent.submit("go");
  await idle(agent);
  return session.jobs.all().at(-1)!;
}

const go = () => writeFileSync(join(world.cwd, "go"), "");
const untilGo = "until [ -e go ]; do sleep 0.02; done";
const ended = (job: Job) => until("the job has ended", () => job.ended);
const told = (job: Job) => until("its end is told", () => existsSync(join(job.folder, "told")));
const text = (session: Session) => chat(session.agents()[0]!);
const count = (all: string, part: string) => all.split(part).length - 1;
const theJob = () => world.runtime.session("a")!.jobs.all()[0]!;

describe("a call with detach", () => {
  test("becomes a job that the turn does not wait for", async () => {
    const { session, job } = await started(`echo hello; ${untilGo}; exit 4`);
    expect(text(session)).toContain("Job 1 runs in the background. You are not told when it ends.");
    expect([job.id, job.state, job.exit()]).toEqual(["1", "running", ""]);
    expect(job.cmd()).toBe('work: {"detach":true}');
    go();
    await ended(job);
    await told(job);
    expect([job.state, job.exit()]).toEqual(["exited: 4", "4"]);
    expect(text(session)).toMatch(
      /\[\[\[info job=1 .*\]\]\]\nJob 1 has ended with exit status 4 at .*\nIts output .*; all of it:\nhello\n/,
    );
  });

  test("is refused where the tool's program cannot be run, and no job is left", async () => {
    world.tool("work", "", { args: schema });
    writeFileSync(join(world.toolsFolder, "work"), "#!/no/such/shell\n");
    const session = await world.runtime.createSession(new Map([["name", "a"]]));
    world.model = answers([call("1", "work", '{"detach":true}'), finish], [say("sorry"), finish]);
    await session.agents()[0]!.submit("go");
    await idle(session.agents()[0]!);
    expect(text(session)).toContain("work could not be started");
    expect(session.jobs.all()).toEqual([]);
  });

  test("shows no secret of the session's environment in what it tells", async () => {
    world.tool("work", 'echo "$MY_TOKEN"', { args: schema });
    const session = await world.runtime.createSession(
      new Map([
        ["name", "a"],
        ["env.MY_TOKEN", "abcdefgh12345678"],
      ]),
    );
    await told(await again(session));
    expect(text(session)).toContain("[masked: MY_TOKEN]");
    expect(text(session)).not.toContain("abcdefgh12345678");
  });
});

describe("the end of a job is told once", () => {
  test("by a block, also where the server was killed before it had noted that", async () => {
    const { session, job } = await started("true");
    await told(job);
    expect(count(text(session), "Job 1 has ended")).toBe(1);
    await world.stop();
    rmSync(join(world.folder, "state/sessions/a/jobs/1/told"));
    await world.start();
    await told(theJob());
    expect(count(text(world.runtime.session("a")!), "Job 1 has ended")).toBe(1);
  });

  test("by a message, also where the server was killed before it had noted that", async () => {
    const { session, job } = await started("true", { notify: true });
    await told(job);
    await idle(session.agents()[0]!);
    expect(count(text(session), "Job 1 has ended")).toBe(1);
    expect(world.requests.at(-1)!.messages.findLast(({ role }) => role === "user")).toMatchObject({
      text: expect.stringContaining("[This is a message from ollie.]\nJob 1 has ended with exit status 0"),
    });
    await world.stop();
    rmSync(join(world.folder, "state/sessions/a/jobs/1/told"));
    await world.start();
    await told(theJob());
    await idle(world.runtime.session("a")!.agents()[0]!);
    expect(count(text(world.runtime.session("a")!), "Job 1 has ended")).toBe(1);
  });

  test("also where it came while no server ran", async () => {
    const { job } = await started(untilGo);
    const { folder } = job;
    await world.stop();
    go();
    await until("it has ended", () => existsSync(join(folder, "exit")));
    const report = await world.start();
    expect(report.filter((sentence) => sentence.includes("still runs"))).toEqual([]);
    await told(theJob());
    expect(count(text(world.runtime.session("a")!), "Job 1 has ended")).toBe(1);
  });

  test("to the first agent that is left, where the one that started it is gone", async () => {
    const { session, job } = await started(untilGo, { notify: true });
    const other = await session.createAgent(new Map([["name", "other"]]));
    await session.agents()[0]!.remove();
    go();
    await told(job);
    expect(chat(other)).toContain("Job 1 has ended");
    expect(other.state).toBe("idle");
  });
});

describe("at the next start", () => {
  test("a job that runs is found, watched and told to end", async () => {
    const { job } = await started(`echo $$ >pid; ${untilGo}`);
    await until("it runs", () => existsSync(join(world.cwd, "pid")));
    const pid = Number(readFileSync(join(world.cwd, "pid"), "utf8"));
    expect(job.state).toBe("running");
    await world.stop();
    expect(await world.start()).toContain('session a: job 1 still runs (work: {"detach":true})');
    expect(theJob().state).toBe("running");
    await theJob().ctl("kill");
    expect(theJob().state).toBe("killed: SIGTERM");
    expect(existsSync(`/proc/${pid}`)).toBe(false);
  });

  test("one whose record is damaged is reported and left alone; one that never ran is forgotten", async () => {
    const { session } = await started("true");
    await ended(theJob());
    const jobs = join(session.store.folder, "jobs");
    await world.stop();
    writeFileSync(join(jobs, "1/job.json"), "{");
    mkdirSync(join(jobs, "2"));
    writeFileSync(join(jobs, "last"), "2\n");
    const report = await world.start();
    expect(report.filter((sentence) => sentence.includes("jobs/1/job.json"))).toHaveLength(1);
    expect(world.runtime.session("a")!.jobs.all()).toEqual([]);
    expect(existsSync(join(jobs, "1/exit"))).toBe(true);
    expect((await again(world.runtime.session("a")!)).id).toBe("3");
  });
});
