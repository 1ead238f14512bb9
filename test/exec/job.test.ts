import { describe, expect, test } from "bun:test";
import { readdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endJob, signalJob } from "../../src/exec/job/control.ts";
import { readFamily } from "../../src/exec/job/folder.ts";
import { JobOutput } from "../../src/exec/job/output.ts";
import { startJob } from "../../src/exec/job/start.ts";
import type { Supervisor } from "../../src/exec/job/supervisor-process.ts";
import { isRunning } from "../../src/exec/job/supervisor-process.ts";
import { lookAt, watchJob } from "../../src/exec/job/watch.ts";
import { plainLaunch } from "../../src/exec/launch.ts";
import { Fault } from "../../src/fault.ts";
import { folder, pidsIn, processesWith, runs, until } from "./helper.ts";

const never = new AbortController().signal;

/** A job that runs a command line with /bin/sh. */
async function start(command: string, where = folder()) {
  let supervisor!: Supervisor;
  const path = { now: where };
  await startJob(
    {
      argv: ["/bin/sh", "-c", command],
      cwd: "/",
      env: { PATH: process.env.PATH!, ANSWER: "42" },
      stdin: "said on stdin",
      launch: plainLaunch(),
    },
    where,
    async (its) => {
      supervisor = its;
    },
  );
  const output = new JobOutput(() => path.now);
  return {
    supervisor,
    output,
    path,
    ended: () => watchJob(() => path.now, supervisor, never),
    text: () => Buffer.from(output.read(0, 1 << 20)).toString(),
    end: (grace = 200) => endJob(path.now, supervisor, grace),
  };
}

describe("a job", () => {
  test("gets its stdin and environment; both outputs and the exit status are kept", async () => {
    const job = await start('cat; echo; echo "$ANSWER" >&2; exit 3');
    expect(await job.ended()).toMatchObject({ how: "exited", exit: { code: 3, bytes: 17, lost: 0 } });
    expect(job.text()).toBe("said on stdin\n42\n");
  });

  test("tells a signal from an exit status that looks like one", async () => {
    const jobs = await Promise.all([start("exit 143"), start("kill $$")]);
    const endings = await Promise.all(jobs.map((job) => job.ended()));
    expect(endings).toMatchObject([
      { how: "exited", exit: { code: 143 } },
      { how: "killed", exit: { signal: "SIGTERM" } },
    ]);
  });

  test("that cannot be started says why, and nothing of it stays", async () => {
    const where = folder();
    const program = { argv: ["/no/such/program"], cwd: "/", env: {}, stdin: "", launch: plainLaunch() };
    let supervisor!: Supervisor;
    const starting = startJob(program, where, async (its) => {
      supervisor = its;
    });
    expect(await starting.catch((error) => error)).toMatchObject({ kind: "missing" });
    await until("the supervisor is gone", () => !isRunning(supervisor));
  });

  test("does not start where it could not be registered", async () => {
    const where = folder();
    const marker = join(where, "ran");
    const argv = ["/bin/sh", "-c", `: >${marker}`];
    let supervisor!: Supervisor;
    const starting = startJob(
      { argv, cwd: "/", env: {}, stdin: "", launch: plainLaunch() },
      where,
      async (its) => {
        supervisor = its;
        throw new Fault("full", "no room");
      },
    );
    expect(await starting.catch((error) => error)).toMatchObject({ kind: "full" });
    await until("the supervisor is gone", () => !isRunning(supervisor));
    expect(readdirSync(where)).toEqual([]);
  });

  test("goes on when its folder is renamed", async () => {
    const where = folder();
    const go = join(folder(), "go");
    const job = await start(`echo before; until [ -e ${go} ]; do sleep 0.02; done; echo after`, where);
    await until("it has begun", () => job.text() === "before\n");
    job.path.now = `${where}-renamed`;
    renameSync(where, job.path.now);
    writeFileSync(go, "");
    expect(await job.ended()).toMatchObject({ how: "exited", exit: { code: 0 } });
    expect(job.text()).toBe("before\nafter\n");
  });
});

describe("ending a job", () => {
  test.each(
    Object.entries({
      "a child": "sleep 411 & echo $! >PIDS; wait",
      "one in a session of its own": "setsid sh -c 'echo $$ >PIDS; exec sleep 412' & wait",
      "one without environment that ignores TERM":
        "env -i setsid sh -c 'trap \"\" TERM HUP; echo $$ >PIDS; while :; do sleep 1; done' & wait",
    }),
  )("ends all of it: %s", async (_what, command) => {
    const file = join(folder(), "pids");
    const job = await start(command.replace("PIDS", file));
    await until("it runs", () => pidsIn(file).length === 1);
    expect(await job.end()).toEqual([]);
    expect(pidsIn(file).filter(runs)).toEqual([]);
    expect(await job.ended()).toMatchObject({ how: "killed", exit: { signal: "SIGTERM" } });
    await until("the supervisor is gone", () => !isRunning(job.supervisor));
  });

  test("a program that exits takes along what it has left in the background, and that is told", async () => {
    const file = join(folder(), "pids");
    const job = await start(`setsid sleep 413 & echo $! >${file}; exit 0`);
    const ending = await job.ended();
    expect(ending).toMatchObject({ how: "exited", exit: { code: 0 } });
    expect(ending.exit!.leftovers).toContain("sleep 413");
    expect(pidsIn(file).filter(runs)).toEqual([]);
  });

  test("a signal reaches the whole process group", async () => {
    const job = await start(
      "trap 'echo usr1' USR1; trap 'exit 5' INT; echo ready; while :; do sleep 60 & wait; done",
    );
    await until("it is ready", () => job.text().includes("ready"));
    signalJob(job.path.now, job.supervisor, 10);
    await until("it has been told", () => job.text().includes("usr1"));
    signalJob(job.path.now, job.supervisor, 2);
    expect(await job.ended()).toMatchObject({ how: "exited", exit: { code: 5 } });
    expect(() => signalJob(job.path.now, job.supervisor, 2)).toThrow(Fault);
  });

  test("a supervisor that is killed takes the program along; the job is lost", async () => {
    const job = await start("setsid sleep 414 & sleep 415");
    const { mark } = readFamily(job.path.now)!;
    await until("all of it runs", () => processesWith(mark, "environ").length > 1);
    process.kill(job.supervisor.pid, "SIGKILL");
    expect(await job.ended()).toEqual({ how: "lost" });
    await until("its processes are gone", () => processesWith(mark, "environ").length === 0);
  });

  test("a supervisor is told from a later process with its pid, and from one of another boot", async () => {
    const job = await start("sleep 416");
    const { now } = job.path;
    expect(lookAt(now, job.supervisor)).toBeUndefined();
    expect(lookAt(now, { ...job.supervisor, start: "1" })).toEqual({ how: "lost" });
    expect(lookAt(now, { ...job.supervisor, boot: "another" })).toEqual({ how: "lost" });
    await job.end();
  });
});

describe("a long output", () => {
  test("keeps its beginning and its newest part, takes 10 MiB of disk at most, and holds nobody up", async () => {
    const size = 50_000_000;
    const job = await start(`yes 0123456789abcde | head -c ${size}; echo the end`);
    expect(await job.ended()).toMatchObject({ how: "exited", exit: { code: 0, bytes: size + 8, lost: 0 } });
    const { now } = job.path;
    const stored = readdirSync(now).reduce((sum, name) => sum + statSync(join(now, name)).size, 0);
    expect(stored).toBeLessThanOrEqual(10 * 1024 * 1024 + 4096);
    expect(job.text().slice(0, 32)).toBe("0123456789abcde\n0123456789abcde\n");
    const { output } = job;
    const text = (at: number, count: number) => Buffer.from(output.read(at, count)).toString();
    expect(text(output.length - 8, 100)).toBe("the end\n");
    const gap = firstGap(output);
    expect(text(gap - 100, 100)).toContain("only the newest 4 to 8 MiB are kept");
    expect(output.read(gap, 100)).toHaveLength(0);
    expect(output.length - output.kept(gap)).toBeGreaterThanOrEqual(4 * 1024 * 1024);
  });
});

function firstGap(output: JobOutput): number {
  let at = 0;
  for (let bytes = output.read(at, 1 << 20); bytes.length > 0; bytes = output.read(at, 1 << 20))
    at += bytes.length;
  return at;
}
