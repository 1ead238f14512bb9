/** `state`, `statewait` and `idlewait`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Fid } from "../../src/ninep/client.ts";
import { until } from "./harness.ts";
import { Barrier, later, refusal, type Session, take, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const open = ({ agent }: Session, file = "statewait") => world.client.openFile(`${agent}/${file}`);

/** A read of which the server has nothing to answer yet: it has taken requests that were sent after it. */
async function blocked(fid: Fid): Promise<{ answer: Promise<string> }> {
  let answered = false;
  const answer = later(fid).then((text) => {
    answered = true;
    return text;
  });
  for (let i = 0; i < 3; i++) await world.client.stat("");
  expect(answered).toBe(false);
  return { answer };
}

describe("state", () => {
  test("is idle at first, and has left it when the prompt is closed", async () => {
    const { agent } = await world.session();
    expect(await world.read(`${agent}/state`)).toBe("idle\n");
    await world.write(`${agent}/prompt`, "forever\n");
    expect(await world.read(`${agent}/state`)).toBe("thinking\n");
    await world.write(`${agent}/ctl`, "stop\n");
    await world.idle(agent);
    expect(await world.read(`${agent}/state`)).toBe("idle\n");
  });

  test("comes back only when all of the turn is in chat and in the context", async () => {
    const { agent } = await world.session();
    for (let i = 0; i < 20; i++) {
      await world.write(`${agent}/prompt`, `turn ${i}\n`);
      while ((await world.read(`${agent}/state`)) !== "idle\n");
      expect(await world.read(`${agent}/chat`)).toEndWith(`You said: turn ${i}\n[[[end]]]\n`);
      expect(await world.read(`${agent}/reply`)).toBe(`You said: turn ${i}\n`);
      expect(await world.read(`${agent}/context`)).toContain(`You said: turn ${i}`);
    }
  });

  test("names the tools that run, in call order, each once", async () => {
    const { agent } = await world.session();
    const [one, two] = [new Barrier(world.home), new Barrier(world.home)];
    await world.tool("pause_one", one.command());
    await world.tool("pause_two", two.command());
    await world.write(`${agent}/tools`, "pause_one pause_two\n");
    await world.write(`${agent}/prompt`, "side by side\n");
    await world.becomes(agent, "calling: pause_two, pause_one");
    two.go();
    await world.becomes(agent, "calling: pause_one");
    one.go();
    await world.becomes(agent, "idle");
  });
});

describe("statewait", () => {
  test("that was opened before the prompt cannot miss the turn, however short it is", async () => {
    const session = await world.session();
    for (let i = 0; i < 10; i++) {
      const fid = await open(session);
      await world.turn(session.agent, "short\n");
      // The turn is long over.
      expect(await take(fid)).toBe("idle\n");
      await fid.clunk();
    }
  });

  test("answers at the first change after the open", async () => {
    const session = await world.session();
    const { answer } = await blocked(await open(session));
    const barrier = await world.calling(session.agent);
    expect(await answer).toBe("thinking\n");
    barrier.go();
    await world.idle(session.agent);
  });

  test("counts from the open, not from the first read or from another's open", async () => {
    const session = await world.session();
    const early = await open(session);
    const barrier = await world.calling(session.agent);
    const late = await blocked(await open(session));
    expect(await take(early)).toBe("calling: shell\n");
    barrier.go();
    await late.answer;
    await world.idle(session.agent);
  });

  test("ends after its answer, byte by byte as well, and then waits for the next change", async () => {
    const session = await world.session();
    const fid = await open(session);
    const barrier = await world.calling(session.agent);
    let text = "";
    for (let byte = await take(fid, 0, 1); byte !== ""; byte = await take(fid, text.length, 1)) text += byte;
    expect(text).toBe("calling: shell\n");
    expect(await take(fid, 4096)).toBe("");
    const { answer } = await blocked(fid);
    barrier.go();
    expect(await answer).toMatch(/^(thinking|idle)\n$/);
    await world.idle(session.agent);
    await until(
      "the last change is told",
      async () => (await world.read(`${session.agent}/state`)) === "idle\n",
    );
  });

  test("read again and again sees the turn to its end, and never twice the same", async () => {
    const session = await world.session();
    const fid = await open(session);
    await world.write(`${session.agent}/prompt`, "run true\n");
    const seen: string[] = [];
    while (seen.at(-1) !== "idle\n") seen.push(await take(fid));
    for (let i = 1; i < seen.length; i++) expect(seen[i]).not.toBe(seen[i - 1]!);
    await blocked(fid);
  });

  test("never returns without a change", async () => {
    const session = await world.session();
    const { agent, path } = session;
    const { answer } = await blocked(await open(session));
    await world.write(`${agent}/queue`, "waits\n");
    await world.write(`${agent}/cfg`, "seed=1\n");
    await world.write(`${agent}/prompt`, "/help\n");
    await world.write(`${path}/plan`, "x\n");
    await world.client.rename(agent, "renamed");
    await world.p9(["write", `${path}/ctl`], { stdin: "nonsense\n" });
    const none = Symbol();
    expect(await Promise.race([answer, world.client.stat("").then(() => none)])).toBe(none as never);
    await world.write(`${path}/agent/renamed/prompt`, "go\n");
    expect(await answer).toBe("thinking\n");
  });

  test("holds up nothing else on its connection, and wakes everybody", async () => {
    const session = await world.session();
    const fids = await Promise.all(Array.from({ length: 200 }, () => open(session)));
    const answers = fids.map((fid) => later(fid));
    expect(await world.read(`${session.agent}/state`)).toBe("idle\n");
    expect((await world.client.readDir(session.agent)).length).toBeGreaterThan(20);
    const barrier = await world.calling(session.agent);
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["thinking\n"]));
    barrier.go();
    await world.idle(session.agent);
  });

  test("is ended by a flush, which takes no change away", async () => {
    const session = await world.session();
    const fid = await open(session);
    const control = new AbortController();
    const answer = later(fid, control.signal);
    await world.client.stat("");
    control.abort();
    expect(await answer).toBe("Interrupted system call");
    const barrier = await world.calling(session.agent);
    expect(await take(fid)).toBe("calling: shell\n");
    barrier.go();
    await world.idle(session.agent);
  });

  test("is ended by Ctrl-C of the one who waits", async () => {
    const { agent } = await world.session();
    const child = Bun.spawn(
      [`${import.meta.dir}/../../dist/ollie-9p`, "read", `${agent}/state`, `${agent}/statewait`],
      {
        env: world.home.env,
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const reader = child.stdout.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("idle\n");
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
  });

  test("is ended by the clunk of its file", async () => {
    const fid = await open(await world.session());
    const { answer } = await blocked(fid);
    await fid.clunk();
    expect(await answer).toBe("Interrupted system call");
  });

  test("is ended by the end of its connection, and leaves the agent alone", async () => {
    const session = await world.session();
    const other = await world.connect();
    const fid = await other.openFile(`${session.agent}/statewait`);
    void later(fid);
    await other.stat("");
    await world.drop(other);
    await world.turn(session.agent, "still there\n");
    expect(await world.read(`${session.agent}/reply`)).toBe("You said: still there\n");
  });

  test("is ended by the removal of what it waits for", async () => {
    for (const end of [
      async ({ path }: Session) => world.write(`${path}/ctl`, "kill\n"),
      async ({ path }: Session) => world.client.remove(path),
      async ({ path }: Session) => void (await world.p9(["rm", "-r", path])),
      async ({ agent }: Session) => world.write(`${agent}/ctl`, "kill\n"),
      async ({ agent }: Session) => world.client.remove(agent),
    ]) {
      const session = await world.session();
      const state = await blocked(await open(session));
      await end(session);
      expect(await state.answer).toMatch(/^file does not exist: (agent or )?session removed$/);
    }
  });
});

describe("idlewait", () => {
  test("answers at once when the agent is idle, also with a text in its queue", async () => {
    const session = await world.session();
    await world.write(`${session.agent}/queue`, "waits\n");
    const fid = await open(session, "idlewait");
    expect(await take(fid)).toBe("idle\n");
    expect(await take(fid, 5)).toBe("");
    expect(await take(fid)).toBe("idle\n");
    expect(await world.read(`${session.agent}/queue`)).toBe('"waits"\n');
  });

  test("waits for the end of the turn and of all that waits behind it", async () => {
    const session = await world.session();
    const barrier = await world.calling(session.agent);
    for (const text of ["second", "third"]) await world.write(`${session.agent}/prompt`, `${text}\n`);
    const { answer } = await blocked(await open(session, "idlewait"));
    barrier.go();
    expect(await answer).toBe("idle\n");
    expect(await world.read(`${session.agent}/chat`)).toEndWith("You said: third\n[[[end]]]\n");
    expect(await world.read(`${session.agent}/queue`)).toBe("");
  });

  test("is ended by flush, clunk and removal as well", async () => {
    const session = await world.session();
    const barrier = await world.calling(session.agent);
    const control = new AbortController();
    const flushed = later(await open(session, "idlewait"), control.signal);
    const fid = await open(session, "idlewait");
    const clunked = await blocked(fid);
    control.abort();
    await fid.clunk();
    expect([await flushed, await clunked.answer]).toEqual([
      "Interrupted system call",
      "Interrupted system call",
    ]);
    const removed = await blocked(await open(session, "idlewait"));
    await world.client.remove(session.path);
    expect(await removed.answer).toBe("file does not exist: session removed");
    barrier.go();
  });

  test("of an agent that has gone cannot be opened", async () => {
    const { agent, path } = await world.session();
    await world.client.remove(agent);
    expect(await refusal(world.client.openFile(`${agent}/idlewait`))).toContain(`has no agent default`);
    expect(await refusal(world.client.openFile(`s/${path.slice(8)}/idlewait`))).toStartWith(
      "file does not exist",
    );
  });
});
