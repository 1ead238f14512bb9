/** Prompts and what becomes of them: turns, the queue, and the verbs that act on both. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./harness.ts";
import { Barrier, refusal, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

describe("a turn", () => {
  test("leaves prompt, answer and offset behind", async () => {
    const { agent } = await world.session();
    for (const file of ["reply", "prompt.prev", "chat", "context"])
      expect(await world.read(`${agent}/${file}`)).toBe("");
    expect(await world.read(`${agent}/offset`)).toBe("0\n");
    await world.turn(agent, "slowly grüße 🌍\n");
    expect(await world.read(`${agent}/prompt.prev`)).toBe("slowly grüße 🌍\n");
    expect(await world.read(`${agent}/reply`)).toBe("Slow: grüße 🌍\n");
    expect(await world.context(agent)).toEqual(["user: slowly grüße 🌍", "assistant: Slow: grüße 🌍"]);
    const offset = Number(await world.read(`${agent}/offset`));
    const chat = await world.client.readFile(`${agent}/chat`);
    expect(chat.subarray(0, offset).toString()).toEndWith("\nslowly grüße 🌍\n[[[end]]]\n");
    const answer = chat.subarray(offset).toString();
    expect(answer.split("\n").filter((line) => !line.startsWith("[[["))).toEqual(["Slow: grüße 🌍", ""]);
  });

  test("has its answer from offset on: all of it, and nothing of another turn", async () => {
    const { agent } = await world.session();
    for (const text of ["one", "slowly two", "run echo three", "four"]) {
      await world.turn(agent, text);
      // As the older scripts do it: tail -c +$((offset+1)) chat.
      const offset = Number(await world.read(`${agent}/offset`));
      const { stdout } = await world.p9(["read", "-o", String(offset), `${agent}/chat`]);
      expect(stdout).toBe((await world.client.readFile(`${agent}/chat`)).subarray(offset).toString());
      expect(stdout.match(/^\[\[\[user/m)).toBeNull();
      expect(stdout).toContain(text.split(" ").at(-1)!);
      expect(stdout).toEndWith("[[[end]]]\n");
    }
  });

  test("calls tools, and their results are in the answer", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "run echo hello; echo world");
    expect(await world.read(`${agent}/reply`)).toMatch(/^Running\.\n+It printed: hello\nworld/);
    const roles = (await world.context(agent)).map((line) => line.split(":")[0]);
    expect(roles).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("keeps the reply of the one before until it has ended", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "first");
    const barrier = await world.calling(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: first\n");
    barrier.go();
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toContain("It printed: done");
  });

  test("that fails is told in chat, and the agent is idle and goes on", async () => {
    const failing = await World.start({
      rules: [
        {
          match: { user: "fail" },
          do: [{ text: "Half an" }, { error: { status: 400, message: "No such thing." } }],
        },
        {
          match: { user: "limit", nth: 1 },
          do: [{ error: { status: 429, message: "Slow down", retryAfter: 1 } }],
        },
        { do: [{ text: "Fine." }] },
      ],
    });
    try {
      const { agent } = await failing.session();
      await failing.turn(agent, "fail\n");
      expect(await failing.read(`${agent}/chat`)).toMatch(
        /\[\[\[error[^\n]*\n[^[]*No such thing\.[^[]*\[\[\[end\]\]\]\n$/,
      );
      const wait = await failing.client.openFile(`${agent}/statewait`);
      await failing.write(`${agent}/prompt`, "limit\n");
      const seen: string[] = [];
      while (seen.at(-1) !== "idle\n") seen.push((await wait.read(0)).toString());
      expect(seen.find((state) => state.startsWith("limitretry"))).toMatch(
        /^limitretry: \d{4}-\d\d-\d\dT[\d:.]+Z\n$/,
      );
      expect(await failing.read(`${agent}/reply`)).toBe("Fine.\n");
      expect(await failing.read(`${agent}/chat`)).toContain("[[[retry ");
    } finally {
      await failing.stop();
    }
  });
});

describe("the queue", () => {
  test("takes prompts while a turn runs, in order, and loses none", async () => {
    const { agent } = await world.session();
    const barrier = await world.calling(agent);
    const texts = Array.from({ length: 10 }, (_, i) => `prompt ${i}`);
    for (const text of texts) await world.write(`${agent}/prompt`, `${text}\n`);
    expect(await world.json(`${agent}/queue`)).toEqual(texts);
    expect(await world.read(`${agent}/fifo.out`)).toBe("prompt 0\n");
    barrier.go();
    await world.idle(agent);
    const said = (await world.context(agent)).filter((line) => line.startsWith("user: prompt"));
    expect(said).toEqual(texts.map((text) => `user: ${text}`));
    expect(await world.read(`${agent}/queue`)).toBe("");
  });

  test("loses none of many writers at once either", async () => {
    const { agent } = await world.session();
    const clients = await Promise.all(Array.from({ length: 5 }, () => world.connect()));
    const texts = Array.from({ length: 50 }, (_, i) => `prompt ${i}`);
    await Promise.all(texts.map((text, i) => clients[i % 5]!.writeFile(`${agent}/prompt`, text)));
    await world.idle(agent);
    const said = (await world.context(agent)).filter((line) => line.startsWith("user: "));
    expect(said.sort()).toEqual(texts.map((text) => `user: ${text}`).sort());
  });

  test("does not start a turn, and is worked off behind the next prompt", async () => {
    const { agent } = await world.session();
    const wait = await world.client.openFile(`${agent}/statewait`);
    await world.write(`${agent}/queue`, "two\nlines\n");
    await world.write(`${agent}/fifo.in`, "later\n");
    expect(await world.read(`${agent}/queue`)).toBe('"two\\nlines"\n"later"\n');
    expect(await world.read(`${agent}/state`)).toBe("idle\n");
    expect(await world.read(`${agent}/chat`)).toBe("");
    await world.turn(agent, "now");
    expect((await wait.read(0)).toString()).toBe("idle\n");
    const said = (await world.context(agent)).filter((line) => line.startsWith("user: "));
    expect(said.sort()).toEqual(["user: later", "user: now", "user: two\nlines"]);
  });

  test("is shown, not taken, by fifo.out", async () => {
    const { agent } = await world.session();
    expect(await world.read(`${agent}/fifo.out`)).toBe("");
    await world.write(`${agent}/queue`, "one\n");
    await world.write(`${agent}/queue`, "two\n");
    for (let i = 0; i < 3; i++) expect(await world.read(`${agent}/fifo.out`)).toBe("one\n");
    expect(await world.json(`${agent}/queue`)).toEqual(["one", "two"]);
  });

  test("gives up one text for each dequeue", async () => {
    const { agent } = await world.session();
    for (const text of ["a", "b", "c", "d"]) await world.write(`${agent}/queue`, `${text}\n`);
    await world.ctl(agent, "dequeue 3");
    await world.ctl(agent, "dequeue");
    expect(await world.json(`${agent}/queue`)).toEqual(["b", "d"]);
    expect(await refusal(world.ctl(agent, "dequeue 3"))).toBe(
      "Invalid argument: the queue has no entry 3, only 2",
    );
    await world.write(`${agent}/prompt`, "/dequeue 2");
    expect(await world.read(`${agent}/chat`)).toContain("\nTaken out: d\n");
    expect(await world.json(`${agent}/queue`)).toEqual(["b"]);
  });
});

describe("inject", () => {
  test("reaches the model with the next results", async () => {
    const { agent } = await world.session();
    const barrier = await world.calling(agent, "echo result");
    await world.ctl(agent, "inject   look left ");
    expect(await world.json(`${agent}/queue`)).toEqual(["  look left "]);
    barrier.go();
    await world.idle(agent);
    const messages = await world.context(agent);
    expect(messages.map((line) => line.split(":")[0])).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
      "assistant",
    ]);
    expect(messages[3]).toBe("user: look left");
    expect(await world.read(`${agent}/chat`)).toMatch(/\[\[\[user [^\n]*\n {2}look left \n\[\[\[end\]\]\]/);
  });

  test("becomes the next prompt where no result follows, or no turn runs", async () => {
    const { agent } = await world.session();
    await world.write(`${agent}/prompt`, `slowly ${"and slowly ".repeat(20)}`);
    await world.ctl(agent, "inject afterwards");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: afterwards\n");
    await world.ctl(agent, "inject by itself");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: by itself\n");
  });
});

describe("stop", () => {
  test("ends a stream and keeps what it said", async () => {
    const { agent } = await world.session();
    await world.write(`${agent}/prompt`, "forever\n");
    await until("it speaks", async () => (await world.read(`${agent}/chat`)).includes("On it."));
    await world.ctl(agent, "stop");
    await world.idle(agent);
    expect(await world.read(`${agent}/chat`)).toMatch(
      /On it\.\n\[\[\[end\]\]\]\n\[\[\[info [^\n]*\nStopped by the user\.\n\[\[\[end\]\]\]\n$/,
    );
    expect(await world.context(agent)).toEqual([
      "user: forever",
      expect.stringMatching(/^assistant: On it\.\n/),
    ]);
    await world.turn(agent, "go on");
    expect(await world.read(`${agent}/reply`)).toBe("You said: go on\n");
  });

  test("ends a tool with all that it started, also one that will not end", async () => {
    const { agent } = await world.session();
    const pids = join(world.home.work, "pids");
    await world.write(
      `${agent}/prompt`,
      `run trap '' TERM; sleep 1000 & echo $$ $! > pids; echo printed; wait; sleep 1000`,
    );
    await until("it runs", () => existsSync(pids) && readFileSync(pids, "utf8").endsWith("\n"));
    await world.ctl(agent, "stop");
    await world.idle(agent);
    for (const pid of readFileSync(pids, "utf8").trim().split(" "))
      await until("it is gone", () => !existsSync(`/proc/${pid}`));
    const messages = await world.context(agent);
    expect(messages.map((line) => line.split(":")[0])).toEqual(["user", "assistant", "tool"]);
    expect(messages[2]).toMatch(/printed.*ancelled by the user/s);
  });

  test("closes every call of the turn with a result of its own", async () => {
    const { agent } = await world.session();
    const barrier = new Barrier(world.home);
    await world.tool("pause_one", barrier.command());
    await world.tool("pause_two", "echo ran");
    await world.write(`${agent}/tools`, "pause_one pause_two\n");
    await world.write(`${agent}/prompt`, "side by side\n");
    await world.becomes(agent, "calling: pause_one");
    await world.ctl(agent, "stop");
    await world.idle(agent);
    const messages = await world.json(`${agent}/context`);
    const calls = messages.flatMap((message) => message.calls ?? []).map((call) => call.id);
    const results = messages.filter((message) => message.role === "tool");
    expect(results.map((message) => message.id)).toEqual(calls);
    expect(results.map((message) => message.text).join()).toMatch(/ran.*ancelled by the user.*ran/s);
  });

  test("lets what waits have its turn", async () => {
    const { agent } = await world.session();
    await world.calling(agent);
    await world.write(`${agent}/prompt`, "next\n");
    await world.ctl(agent, "stop");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: next\n");
  });

  test("of an idle agent is no error and leaves no trace", async () => {
    const { agent, path } = await world.session();
    await world.ctl(agent, "stop");
    await world.write(`${path}/ctl`, "stop\n");
    expect(await world.read(`${agent}/chat`)).toBe("");
    expect(await world.read(`${agent}/state`)).toBe("idle\n");
  });

  test("of a session stops all its agents", async () => {
    const { path, agent } = await world.session();
    await world.write(`${path}/agent/new`, "name=other\n");
    for (const one of [agent, `${path}/agent/other`]) await world.write(`${one}/prompt`, "forever\n");
    await world.write(`${path}/ctl`, "stop\n");
    for (const one of [agent, `${path}/agent/other`]) await world.idle(one);
  });
});
