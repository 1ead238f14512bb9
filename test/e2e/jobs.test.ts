/** Background jobs, with the compiled server: they outlive turns and the server, and are found again. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { dial } from "../../src/ninep/dial.ts";
import { lacksSandbox } from "../needs.ts";
import { startServer, succeeded, type TestServer, until } from "./harness.ts";

setDefaultTimeout(120_000);

/** `run: COMMAND` starts a job, `notify: COMMAND` one whose end is told by a message. */
const scenario = {
  rules: [
    { match: { user: "/^run: ([^]*)/" }, do: [call({ command: "$1", detach: true })] },
    { match: { user: "/^notify: ([^]*)/" }, do: [call({ command: "$1", detach: true, notify: true })] },
    {
      match: { user: "/^elevated: ([^]*)/" },
      do: [call({ command: "$1", detach: true, elevated: true })],
    },
    { match: { user: "/^\\[This is a message from ollie/" }, do: [{ text: "Noted.\n" }] },
    { match: { tool: "shell" }, do: [{ text: "Started.\n" }] },
  ],
};

function call(args: object) {
  return { calls: [{ name: "shell", args }] };
}

let server: TestServer;

/** A server with a session `a`. */
async function begin(): Promise<void> {
  server = await startServer({ scenario });
  await server.create("name=a");
}

afterEach(async () => {
  // Jobs outlive the server: what is left is ended with its session.
  const { stdout } = await server.p9("read", "session/idx");
  for (const name of new Set(stdout.split("\n").flatMap((line) => line.split("\t")[0] || [])))
    succeeded(await server.p9("rm", "-r", `session/${name}`));
  await server.stop();
});

/** Starts a job through a turn and returns the path of its folder. */
async function job(
  command: string,
  how: "run" | "notify" | "elevated" = "run",
  session = "a",
): Promise<string> {
  const before = await jobs(session);
  await server.ask(session, `${how}: ${command}`);
  const started = (await jobs(session)).filter((id) => !before.includes(id));
  if (started.length !== 1) console.log(await chat());
  expect(started).toHaveLength(1);
  return `session/${session}/job/${started[0]}`;
}

async function jobs(session = "a"): Promise<string[]> {
  return succeeded(await server.p9("ls", `session/${session}/job`))
    .split("\n")
    .filter(Boolean);
}

const read = (path: string) => server.read(path);
const chat = () => read("s/a/chat");
const state = (path: string, wanted: string) =>
  until(`${path} is ${wanted}`, async () => (await read(`${path}/state`)) === `${wanted}\n`);

function runs(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** A file in the folder that tools work in. */
const inWork = (name: string) => join(server.home.work, name);

/** The pids that a job has written to a file of that name. */
async function pids(name: string, count: number): Promise<number[]> {
  const words = () => (existsSync(inWork(name)) ? readFileSync(inWork(name), "utf8").split(/\s+/) : []);
  await until(`${count} pids in ${name}`, () => words().filter(Boolean).length === count);
  return words().filter(Boolean).map(Number);
}

const jobFolder = (path: string) =>
  join(server.home.state, "sessions", path.split("/")[1]!, "jobs", path.split("/").at(-1)!);
const supervisorOf = (path: string): number =>
  JSON.parse(readFileSync(join(jobFolder(path), "job.json"), "utf8")).supervisor.pid;

describe("a job", () => {
  test("starts at once, can be followed, and its end is told", async () => {
    await begin();
    const path = await job("echo begun; until [ -e go ]; do sleep 0.05; done; echo done; exit 3");
    expect(await chat()).toContain("Job 1 runs in the background.");
    expect(await read(`${path}/cmd`)).toStartWith("shell: echo begun;");
    expect(await read(`${path}/state`)).toBe("running\n");
    expect(await read(`${path}/exit`)).toBe("");
    await until("it has begun", async () => (await read(`${path}/out`)) === "begun\n");
    expect(await read("metrics")).toContain("\nollie_jobs_running 1\n");

    const waiting = read(`${path}/statewait`);
    // It has to be open before the state changes.
    await Bun.sleep(300);
    await Bun.write(inWork("go"), "");
    expect(await waiting).toBe("exited: 3\n");
    expect(await read(`${path}/out`)).toBe("begun\ndone\n");
    expect(await read(`${path}/exit`)).toBe("3\n");
    // Opened when it has ended: there will be no other change.
    expect(await read(`${path}/statewait`)).toBe("exited: 3\n");
    await until("it is told", async () => (await chat()).includes("Job 1 has ended with exit status 3"));
    expect(await chat()).toContain("[[[info job=1 ");
    expect(await read("metrics")).toContain("\nollie_jobs_running 0\n");
  });

  test("tells the agent by a message where it asked for that", async () => {
    await begin();
    await job("sleep 0.2; echo the answer is 42", "notify");
    await until("the message is answered", async () => (await chat()).includes("Noted."));
    const text = await chat();
    expect(text).toMatch(
      /\[\[\[user .*\]\]\]\n\[This is a message from ollie\.\]\nJob 1 has ended with exit status 0/,
    );
    expect(text).toContain("the answer is 42");
    expect(text).not.toContain("[[[info job=");
  });

  test("outlives a stop of the agent, and the agent", async () => {
    await begin();
    const path = await job("until [ -e go ]; do sleep 0.05; done");
    succeeded(await server.home.run(["ollie-9p", "write", "s/a/ctl"], { stdin: "stop\n" }));
    await server.write("session/a/agent/new", "name=other");
    succeeded(await server.p9("rm", "-r", "session/a/agent/default"));
    expect(await read(`${path}/state`)).toBe("running\n");
    await Bun.write(inWork("go"), "");
    await state(path, "exited: 0");
    await until("the agent that is left is told", async () => (await chat()).includes("Job 1 has ended"));
  });

  test("is ended with all that it has started, wherever that has gone", async () => {
    await begin();
    const path = await job(
      "setsid sh -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 1; done' & sleep 600 & echo $! >>pids; wait",
    );
    const all = await pids("pids", 2);
    await server.write(`${path}/ctl`, "kill\n");
    expect(all.filter(runs)).toEqual([]);
    expect(await read(`${path}/state`)).toBe("killed: SIGTERM\n");
    expect(await read(`${path}/exit`)).toBe("SIGTERM\n");
    const again = await server.home.run(["ollie-9p", "write", `${path}/ctl`], { stdin: "kill\n" });
    expect(again.stderr).toContain("job 1 has ended (killed: SIGTERM)");
  });

  test("gets signals by name and number; what makes no sense is refused", async () => {
    await begin();
    const path = await job("trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done");
    const out = (text: string) => until(text, async () => (await read(`${path}/out`)).includes(text));
    await out("ready");
    await server.write(`${path}/ctl`, "signal USR1\n");
    await out("usr1");
    for (const [line, words] of Object.entries({
      signal: "signal N: one number or name is right",
      "signal NONE": "no signal NONE; TERM or 15 is right",
      "kill 9": "kill takes no argument",
      pause: "unknown verb pause; there are kill signal",
    })) {
      const { status, stderr } = await server.home.run(["ollie-9p", "write", `${path}/ctl`], { stdin: line });
      expect(status).not.toBe(0);
      expect(stderr).toContain(words);
    }
    await server.write(`${path}/ctl`, "signal 9\n");
    await state(path, "killed: SIGKILL");
  });

  test("is removed with its folder, a running one after it has been ended; its number is not used again", async () => {
    await begin();
    const path = await job("echo $$ >>pids; exec sleep 600");
    const [pid] = await pids("pids", 1);
    succeeded(await server.p9("rm", "-r", path));
    expect(runs(pid!)).toBe(false);
    expect(await jobs()).toEqual([]);
    expect(existsSync(jobFolder(path))).toBe(false);
    expect(await job("true")).toBe("session/a/job/2");
  });

  test("ends with its session", async () => {
    await begin();
    await job("setsid sh -c 'echo $$ >>pids; exec sleep 600' & echo $$ >>pids; wait");
    const all = await pids("pids", 2);
    succeeded(await server.p9("rm", "-r", "session/a"));
    expect(all.filter(runs)).toEqual([]);
  });

  test("that goes on when its session is renamed is found under the new name", async () => {
    await begin();
    const path = await job("until [ -e go ]; do sleep 0.05; done; echo done");
    await server.write("session/a/name", "b");
    await Bun.write(inWork("go"), "");
    const renamed = path.replace("session/a", "session/b");
    await state(renamed, "exited: 0");
    expect(await read(`${renamed}/out`)).toBe("done\n");
    await server.write("session/b/name", "a");
  });
});

describe("the sandbox", () => {
  /** Writes to a file outside of it. */
  const outside = 'echo mine >"$HOME/outside"; echo "status $?"';

  test.skipIf(lacksSandbox())("holds a job as it does a call, also when the server has gone", async () => {
    await begin();
    const path = await job(`until [ -e go ]; do sleep 0.05; done; ${outside}`);
    await server.kill9();
    await Bun.write(inWork("go"), "");
    await server.start();
    await state(path, "exited: 0");
    expect(await read(`${path}/out`)).toMatch(/status [1-9]/);
    expect(existsSync(join(server.home.home, "outside"))).toBe(false);
  });

  test("does not hold a job that was allowed to run without it", async () => {
    await begin();
    const client = await dial(server.address);
    const asked = client.readText("elevate/wait").then(async (request) => {
      await client.writeFile("elevate/ctl", `allow ${request.split("\t")[0]}\n`);
      return request;
    });
    // Somebody has to be there who can answer before the call asks: what was sent first is open by now.
    await client.readText("version");
    const path = await job(outside, "elevated");
    expect(await asked).toContain("/outside");
    await state(path, "exited: 0");
    expect(readFileSync(join(server.home.home, "outside"), "utf8")).toBe("mine\n");
    expect(await chat()).toContain("[elevated: allowed by the user (once)]");
    client.close();
  });
});

describe("many and much", () => {
  test("sixteen run at once, the next is refused in words", async () => {
    await begin();
    for (let i = 0; i < 16; i++) await job(`echo ${i}; exec sleep 600`);
    await server.ask("a", "run: true");
    expect(await chat()).toContain("16 jobs of this session run already; end one first");
    expect(await jobs()).toHaveLength(16);
    await server.create("name=b");
    await job("exec sleep 600", "run", "b");
    await Promise.all((await jobs()).map((id) => server.write(`session/a/job/${id}/ctl`, "kill\n")));
    expect(await job("true")).toBe("session/a/job/17");
  });

  test("of those that have ended the newest 32 are kept", async () => {
    await begin();
    for (let i = 0; i < 36; i++) await state(await job("true"), "exited: 0");
    const kept = (await jobs()).map(Number).sort((a, b) => a - b);
    expect(kept.at(-1)).toBe(36);
    expect(kept.length).toBeLessThanOrEqual(33);
    expect(kept[0]).toBe(36 - kept.length + 1);
  });

  test("of 50 MB of output the beginning and the end are kept", async () => {
    await begin();
    const path = await job("echo first; yes 0123456789abcde | head -c 50000000; echo last");
    await state(path, "exited: 0");
    const out = await read(`${path}/out`);
    expect(out).toStartWith("first\n0123456789abcde\n");
    expect(out).toEndWith("0123456789abcde\nlast\n");
    expect(out).toContain("[… the beginning of the output ends here");
    expect(out.length).toBeGreaterThan(6e6);
    const size = readdirSync(jobFolder(path)).map((name) => statSync(join(jobFolder(path), name)).size);
    expect(size.reduce((a, b) => a + b)).toBeLessThan(10.1 * 1024 * 1024);
  });
});

describe("when the server goes", () => {
  test("by kill -9, a job runs on; the next server finds it, its output and its end", async () => {
    await begin();
    const path = await job(
      "echo before; echo $$ >>pids; until [ -e go ]; do sleep 0.05; done; echo after; exit 7",
    );
    const [pid] = await pids("pids", 1);
    await server.kill9();
    expect(runs(pid!)).toBe(true);
    await server.start();
    expect(server.log).toContain("session a: job 1 still runs");
    expect(await read(`${path}/state`)).toBe("running\n");
    const waiting = read(`${path}/statewait`);
    await Bun.sleep(300);
    await Bun.write(inWork("go"), "");
    expect(await waiting).toBe("exited: 7\n");
    expect(await read(`${path}/out`)).toBe("before\nafter\n");
    await until("it is told", async () => (await chat()).includes("Job 1 has ended with exit status 7"));
    expect(await job("true")).toBe("session/a/job/2");
  });

  test("and a job ends meanwhile, that is told once", async () => {
    await begin();
    const path = await job("until [ -e go ]; do sleep 0.05; done; echo over; kill -KILL $$");
    const asked = await job("until [ -e go ]; do sleep 0.05; done", "notify");
    const supervisors = [path, asked].map(supervisorOf);
    await server.kill9();
    await Bun.write(inWork("go"), "");
    await until("both have ended", () => !supervisors.some(runs));
    await server.start();
    expect(await read(`${path}/state`)).toBe("killed: SIGKILL\n");
    expect(await read(`${asked}/state`)).toBe("exited: 0\n");
    await until("the message is answered", async () => (await chat()).includes("Noted."));
    await until("the other is told", async () => (await chat()).includes("Job 1 was ended by SIGKILL"));
    await server.kill9();
    await server.start();
    await read("s/a/idlewait");
    const text = await chat();
    expect(text.match(/Job 1 was ended by/g)).toHaveLength(1);
    expect(text.match(/Job 2 has ended with/g)).toHaveLength(1);
  });

  test("by a stop, jobs go on, and it says so", async () => {
    await begin();
    const path = await job("echo $$ >>pids; exec sleep 600");
    const [pid] = await pids("pids", 1);
    expect(succeeded(await server.home.olliesrv("stop"))).toContain(
      "1 job goes on: session/a/job/1 (shell: echo",
    );
    expect(runs(pid!)).toBe(true);
    await server.restart();
    expect(await read(`${path}/state`)).toBe("running\n");
    await server.write(`${path}/ctl`, "kill\n");
    expect(runs(pid!)).toBe(false);
  });

  test("and the supervisor is killed as well, the job is lost and its processes are gone", async () => {
    await begin();
    const path = await job("setsid sh -c 'echo $$ >>pids; exec sleep 600' & echo $$ >>pids; wait");
    const all = await pids("pids", 2);
    process.kill(supervisorOf(path), "SIGKILL");
    await state(path, "lost");
    expect(await read(`${path}/exit`)).toBe("lost\n");
    await until("its processes are gone", () => !all.some(runs));
    await until("it is told", async () => (await chat()).includes("Job 1 is lost"));

    const other = await job("echo $$ >>more; exec sleep 600");
    const [pid] = await pids("more", 1);
    await server.kill9();
    process.kill(supervisorOf(other), "SIGKILL");
    await server.start();
    expect(await read(`${other}/state`)).toBe("lost\n");
    await until("its process is gone", () => !runs(pid!));
  });
});
