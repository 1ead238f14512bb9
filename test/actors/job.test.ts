import { describe, expect, test } from "bun:test";
import { getShortestPaths } from "@xstate/graph";
import { type AnyActorRef, createActor, fromPromise, SimulatedClock } from "xstate";
import { type JobEnding, jobLine, jobMachine } from "../../actors/job.ts";
import { sessionMachine } from "../../actors/session.ts";

/** A machine whose world does what the test says, and when. */
function start(ending?: JobEnding) {
  const watch = Promise.withResolvers<JobEnding>();
  const trees: PromiseWithResolvers<boolean>[] = [];
  const told: (JobEnding | "gave up")[] = [];
  const work = { hasEnded: (how: JobEnding) => told.push(how), giveUp: () => told.push("gave up") };
  const clock = new SimulatedClock();
  const machine = jobMachine.provide({
    actors: {
      watchEnd: fromPromise<JobEnding, { work: object }>(() => watch.promise) as never,
      endTree: fromPromise<boolean, { work: object }>(() => {
        trees.push(Promise.withResolvers<boolean>());
        return trees.at(-1)!.promise;
      }) as never,
    },
  });
  const actor = createActor(machine, { input: { work, ending }, clock }).start();
  const value = () => actor.getSnapshot().value;
  const line = () => jobLine(actor.getSnapshot());
  return { actor, clock, watch, trees, told, value, line };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

const endings: [JobEnding, string][] = [
  [{ how: "exited", detail: "0" }, "exited: 0"],
  [{ how: "exited", detail: "3" }, "exited: 3"],
  [{ how: "killed", detail: "SIGTERM" }, "killed: SIGTERM"],
  [{ how: "lost" }, "lost"],
];

describe("a job", () => {
  test.each(endings)("that runs ends as its supervisor says: %j", async (ending, line) => {
    const job = start();
    expect(job.line()).toBe("running");
    job.watch.resolve(ending);
    await settle();
    expect(job.value()).toBe(ending.how);
    expect(job.line()).toBe(line);
    expect(job.told).toEqual([ending]);
    expect(job.actor.getSnapshot().status).toBe("done");
  });

  test.each(endings)("that had ended before is that at once: %j", (ending, line) => {
    const job = start(ending);
    expect(job.line()).toBe(line);
    expect(job.told).toEqual([ending]);
  });

  test("that cannot be watched is lost", async () => {
    const job = start();
    job.watch.reject(new Error("no /proc"));
    await settle();
    expect(job.line()).toBe("lost");
    expect(job.told).toEqual([{ how: "lost" }]);
  });
});

describe("a job that is told to end", () => {
  test("has all its processes ended, once however often it is told, and waits for its supervisor's word", async () => {
    const job = start();
    job.actor.send({ type: "KILL" });
    job.actor.send({ type: "KILL" });
    expect(job.trees).toHaveLength(1);
    expect(job.value()).toEqual({ running: "ending" });
    job.trees[0]!.resolve(true);
    await settle();
    expect(job.value()).toEqual({ running: "noticing" });
    expect(job.line()).toBe("running");
    job.watch.resolve({ how: "killed", detail: "SIGKILL" });
    await settle();
    expect(job.line()).toBe("killed: SIGKILL");
    expect(job.told).toEqual([{ how: "killed", detail: "SIGKILL" }]);
  });

  test("may end while its processes are being ended", async () => {
    const job = start();
    job.actor.send({ type: "KILL" });
    job.watch.resolve({ how: "exited", detail: "0" });
    await settle();
    expect(job.line()).toBe("exited: 0");
  });

  test("whose supervisor does not notice has that ended too", async () => {
    const job = start();
    job.actor.send({ type: "KILL" });
    job.trees[0]!.resolve(true);
    await settle();
    job.clock.increment(2999);
    expect(job.told).toEqual([]);
    job.clock.increment(1);
    expect(job.told).toEqual(["gave up"]);
    job.watch.resolve({ how: "lost" });
    await settle();
    expect(job.line()).toBe("lost");
  });

  test.each(["something is left", "the search fails"])(
    "goes on where %s, and can be told again",
    async (what) => {
      const job = start();
      job.actor.send({ type: "KILL" });
      if (what === "something is left") job.trees[0]!.resolve(false);
      else job.trees[0]!.reject(new Error("no /proc"));
      await settle();
      expect(job.value()).toEqual({ running: "free" });
      job.clock.increment(10_000);
      expect(job.told).toEqual([]);
      job.actor.send({ type: "KILL" });
      expect(job.trees).toHaveLength(2);
    },
  );
});

test("every state but the last three leads to an end", () => {
  const events = [
    { type: "KILL" },
    { type: "xstate.done.actor.0.job.running", output: { how: "exited", detail: "0" } },
    { type: "xstate.done.actor.0.job.running", output: { how: "killed", detail: "SIGTERM" } },
    { type: "xstate.done.actor.0.job.running", output: { how: "lost" } },
    { type: "xstate.error.actor.0.job.running", error: new Error("x") },
    { type: "xstate.done.actor.0.job.running.ending", output: true },
    { type: "xstate.done.actor.0.job.running.ending", output: false },
  ] as never[];
  const input = { work: { hasEnded: () => {}, giveUp: () => {} } };
  const paths = getShortestPaths(jobMachine, {
    events,
    input,
    serializeState: ({ value }) => JSON.stringify(value),
  });
  const reached = paths.map(({ state }) => JSON.stringify(state.value)).sort();
  expect(reached).toEqual(
    [
      '"exited"',
      '"killed"',
      '"lost"',
      '{"running":"ending"}',
      '{"running":"free"}',
      '{"running":"noticing"}',
    ].sort(),
  );
});

describe("a session", () => {
  const session = () => {
    const never = fromPromise(() => new Promise(() => {})) as never;
    const job = jobMachine.provide({ actors: { watchEnd: never, endTree: never } });
    const actor = createActor(sessionMachine.provide({ actors: { job } })).start();
    const child = (id: string): AnyActorRef | undefined => actor.getSnapshot().children[id];
    actor.send({ type: "ADD JOB", id: "job:1", work: { hasEnded: () => {}, giveUp: () => {} } });
    return { actor, child };
  };

  test("has jobs that a stop does not reach", () => {
    const { actor, child } = session();
    actor.send({ type: "STOP" });
    expect(child("job:1")!.getSnapshot().value).toEqual({ running: "free" });
  });

  test("forgets a job whose files are removed, and only that", () => {
    const { actor, child } = session();
    actor.send({ type: "ADD JOB", id: "job:2", work: { hasEnded: () => {}, giveUp: () => {} } });
    actor.send({ type: "REMOVE JOB", id: "job:1" });
    expect(child("job:1")).toBeUndefined();
    expect(child("job:2")!.getSnapshot().status).toBe("active");
  });
});
