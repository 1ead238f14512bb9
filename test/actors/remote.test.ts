/** The way to another host, with a world that does what the test says. */
import { describe, expect, test } from "bun:test";
import { getShortestPaths } from "@xstate/graph";
import { createActor, type EventFromLogic, fromPromise, SimulatedClock } from "xstate";
import { remoteLine, remoteMachine } from "../../actors/remote.ts";
import { CodedFault, Fault } from "../../src/fault.ts";

const refused = new CodedFault("unavailable", "ssh.refused", "nothing accepts connections at h1", {
  retry: true,
});
const dropped = new CodedFault("unavailable", "ssh.dropped", "the connection has been lost");
const auth = new CodedFault("denied", "ssh.auth", "h1 takes none of the keys");

/** A world in which nothing happens unless a test says so. */
class Puppet {
  readonly clock = new SimulatedClock();
  readonly told: string[] = [];
  readonly left: string[] = [];
  random = 0.5;
  #pending: { resolve(): void; reject(error: unknown): void } | undefined;
  readonly actor = createActor(
    remoteMachine.provide({
      actors: {
        connect: this.#step("connect"),
        bootstrap: this.#step("bootstrap"),
        attach: this.#step("attach"),
        sync: this.#step("sync"),
      },
    }),
    {
      clock: this.clock,
      input: {
        work: {
          target: "alice@h1",
          now: () => this.clock.now(),
          random: () => this.random,
          stands: (how, fault) => void this.told.push(fault ? `${how}: ${fault.message}` : how),
        },
      },
    },
  ).start();

  #step(name: string) {
    return fromPromise<void, object>(({ signal }) => {
      signal.addEventListener("abort", () => this.left.push(name));
      return new Promise((resolve, reject) => (this.#pending = { resolve, reject }));
    }) as never;
  }

  get state(): string {
    return JSON.stringify(this.actor.getSnapshot().value).replaceAll('"', "");
  }

  get line(): string {
    return remoteLine(this.actor.getSnapshot());
  }

  send(...events: EventFromLogic<typeof remoteMachine>[]): void {
    for (const event of events) this.actor.send(event);
  }

  async done(steps = 1): Promise<void> {
    for (; steps > 0; steps--) {
      this.#pending!.resolve();
      await Bun.sleep(0);
    }
  }

  async fails(error: unknown): Promise<void> {
    this.#pending!.reject(error);
    await Bun.sleep(0);
  }

  /** Makes happen in the world what the machine will be told as `event`. */
  async enact(event: { type: string; error?: unknown }): Promise<void> {
    const { type } = event;
    if (type.startsWith("xstate.done.actor")) await this.done();
    else if (type.startsWith("xstate.error.actor")) await this.fails(event.error);
    else if (type.startsWith("xstate.after.next")) this.clock.increment(60_000);
    else if (type.startsWith("xstate.after.silence")) this.clock.increment(120_000);
    else if (type.startsWith("xstate.after.steady")) this.clock.increment(10_000);
    else this.send(event as never);
    await Bun.sleep(0);
  }
}

async function ready() {
  const world = new Puppet();
  world.send({ type: "CONNECT" });
  await world.done(3);
  return world;
}

describe("the way to another host", () => {
  test("is gone step by step, each shown with what is known of it", async () => {
    const world = new Puppet();
    expect(world.line).toBe("idle alice@h1");
    world.send({ type: "CONNECT" });
    expect(world.line).toBe("connecting alice@h1");
    await world.done();
    expect(world.line).toBe("bootstrapping alice@h1");
    const progress = { doing: "uploading", done: 12_345_678, total: 51_300_000, rate: 4_100_000, left: 8.2 };
    world.send({ type: "PROGRESS", progress });
    expect(world.line).toBe("bootstrapping alice@h1: uploading 12.3 of 51.3 MB, 4.1 MB/s, 9 s left");
    await world.done();
    expect(world.line).toBe("attaching alice@h1");
    await world.done();
    expect(world.line).toBe("ready alice@h1");
    expect(world.told).toEqual(["ready"]);
  });

  test("is tried again by itself, at once, and then at longer and longer intervals, without an end", async () => {
    const world = await ready();
    world.clock.increment(10_000);
    world.send({ type: "LOST", fault: dropped });
    expect(world.told).toEqual(["ready", "away: the connection has been lost"]);
    const waits: number[] = [];
    for (let i = 0; i < 20; i++) {
      const from = world.clock.now();
      while (world.state === "reconnecting") world.clock.increment(100);
      waits.push(world.clock.now() - from);
      await world.fails(refused);
    }
    expect(waits.slice(0, 9)).toEqual([100, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    expect(new Set(waits.slice(8))).toEqual(new Set([30_000]));
    world.clock.increment(30_000);
    await world.done(3);
    expect(world.line).toBe("ready alice@h1");
  });

  test("says when it is tried next, and why", async () => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    for (const _ of [1, 2, 3]) {
      await world.fails(refused);
      world.clock.increment(500);
    }
    expect(world.line).toBe(
      "reconnecting alice@h1: next try at 1970-01-01T00:00:02Z: nothing accepts connections at h1",
    );
  });

  test("is not tried by all clients at the same time", async () => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    await world.fails(refused);
    world.random = 1;
    world.clock.increment(0);
    await world.fails(refused);
    world.clock.increment(599);
    expect(world.state).toBe("reconnecting");
    world.clock.increment(1);
    expect(world.state).toBe("connecting");
  });

  test("that is lost again as soon as it is there does not begin to count anew", async () => {
    const world = await ready();
    for (const _ of [1, 2, 3]) {
      world.send({ type: "LOST", fault: dropped });
      world.clock.increment(1000);
      await world.done(3);
      expect(world.state).toBe("{ready:steady}");
    }
    world.send({ type: "LOST", fault: dropped });
    world.clock.increment(1999);
    expect(world.state).toBe("reconnecting");
  });

  test("is tried at once when somebody says so", async () => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    for (const wait of [0, 500, 1000]) {
      await world.fails(refused);
      world.clock.increment(wait);
    }
    await world.fails(refused);
    world.send({ type: "RECONNECT" });
    expect(world.state).toBe("connecting");
  });

  test("that stands is made anew when somebody says so", async () => {
    const world = await ready();
    world.send({ type: "RECONNECT" });
    expect(world.told.at(-1)).toBe("away");
    world.clock.increment(0);
    await world.done(3);
    expect(world.told.at(-1)).toBe("ready");
  });

  test.each([
    auth,
    new CodedFault("denied", "ssh.hostkey_changed", "the key has changed"),
    new CodedFault("missing", "session.absent", "there is no such session"),
    new CodedFault("denied", "session.policy_broader", "the policy is broader"),
    new CodedFault("invalid", "session.envref", "other references"),
    new CodedFault("unavailable", "caps.missing", "it cannot do op.detach"),
    new CodedFault("unavailable", "boot.unsupported", "no program for that machine"),
    new Fault("denied", "the store cannot be written"),
  ])("that only a person can mend has failed, until somebody says reconnect: %p", async (fault) => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    await world.done(2);
    await world.fails(fault);
    expect(world.line).toBe(`failed alice@h1: ${fault.message}`);
    world.clock.increment(3_600_000);
    expect(world.state).toBe("failed");
    world.send({ type: "RECONNECT" });
    await world.done(3);
    expect(world.line).toBe("ready alice@h1");
    expect(world.told).toEqual([`failed: ${fault.message}`, `away: ${fault.message}`, "ready"]);
  });

  test("brings the tools there again, and stays ready where that fails", async () => {
    const world = await ready();
    world.send({ type: "SYNC" });
    expect(world.line).toBe("ready alice@h1");
    world.send({ type: "PROGRESS", progress: { doing: "sending tools", done: 1e6, total: 2e6 } });
    expect(world.line).toBe("ready alice@h1: sending tools 1.0 of 2.0 MB");
    await world.fails(new Fault("full", "no space left there"));
    expect(world.line).toBe("ready alice@h1: no space left there");
    world.send({ type: "SYNC" });
    world.send({ type: "SYNC" });
    expect(world.left).toContain("sync");
    await world.done();
    expect(world.line).toBe("ready alice@h1");
  });

  test("leaves what it is at when it is closed", async () => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    world.send({ type: "CLOSE" });
    expect([world.line, world.left, world.told]).toEqual(["closed alice@h1", ["connect"], ["closed"]]);
    expect(world.actor.getSnapshot().status).toBe("done");
  });

  test("gives up a host that says nothing more, and one that does say something later", async () => {
    const world = new Puppet();
    world.send({ type: "CONNECT" });
    await world.done();
    world.clock.increment(119_999);
    world.send({ type: "PROGRESS", progress: { doing: "installing" } });
    world.clock.increment(119_999);
    expect(world.state).toBe("{bootstrapping:booting}");
    world.clock.increment(1);
    expect(world.state).toBe("reconnecting");
    expect(world.left).toEqual(["bootstrap"]);
  });
});

const steps = ["connecting", "bootstrapping", "attaching", "ready.syncing"];
const events = [
  ...["CONNECT", "RECONNECT", "SYNC", "CLOSE"].map((type) => ({ type })),
  { type: "LOST", fault: dropped },
  { type: "PROGRESS", progress: { doing: "x" } },
  ...steps.flatMap((step) => [
    { type: `xstate.done.actor.0.remote.${step}` },
    { type: `xstate.error.actor.0.remote.${step}`, error: refused },
    { type: `xstate.error.actor.0.remote.${step}`, error: auth },
  ]),
  ...["bootstrapping.booting", "attaching.entering", "ready.syncing.bringing"].map((state) => ({
    type: `xstate.after.silence limit.remote.${state}`,
  })),
  { type: "xstate.after.next try.remote.reconnecting" },
  { type: "xstate.after.steady time.remote.ready" },
] as unknown as EventFromLogic<typeof remoteMachine>[];

const paths = getShortestPaths(remoteMachine, {
  events,
  input: { work: { target: "alice@h1", now: () => 0, random: () => 0.5, stands: () => {} } },
  serializeState: ({ value }) => JSON.stringify(value),
});

describe("every path through the statechart", () => {
  test("reaches every state in which something can be waited for", () => {
    const reached = new Set(paths.map(({ state }) => JSON.stringify(state.value).replaceAll('"', "")));
    expect([...reached].sort()).toEqual(
      [
        "idle",
        "connecting",
        "{bootstrapping:booting}",
        "{attaching:entering}",
        "{ready:steady}",
        "{ready:{syncing:bringing}}",
        "reconnecting",
        "failed",
        "closed",
      ].sort(),
    );
  });

  for (const path of paths) {
    const told = path.steps.map(({ event }) => event.type as string).filter((type) => type !== "xstate.init");
    test(`${told.join(" → ") || "at the start"} ⇒ ${JSON.stringify(path.state.value)}`, async () => {
      const world = new Puppet();
      for (const { event } of path.steps)
        if ((event.type as string) !== "xstate.init") await world.enact(event as never);
      expect(world.actor.getSnapshot().value).toEqual(path.state.value as never);
      world.send({ type: "CLOSE" });
      expect(world.actor.getSnapshot().status).toBe("done");
      expect(world.told.at(-1)).toBe("closed");
    });
  }
});
