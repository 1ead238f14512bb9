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

const json = async (path: string) =>
  (await world.read(path))
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const queued = (agent: string): Promise<string[]> => json(`${agent}/queue`);
/** What providers get: role and text of each message. */
const context = async (agent: string) =>
  (await json(`${agent}/context`)).map((message) => `${message.role}: ${message.text.trim()}`);
const ctl = (agent: string, line: string) => world.write(`${agent}/ctl`, `${line}\n`);
const becomes = (agent: string, state: string) =>
  until(state, async () => (await world.read(`${agent}/state`)) === `${state}\n`);

/** A turn that waits in a tool call. */
async function calling(agent: string, then?: string): Promise<Barrier> {
  const barrier = new Barrier(world.home);
  await world.write(`${agent}/prompt`, `run ${barrier.command(then)}`);
  await becomes(agent, "calling: shell");
  return barrier;
}

describe("a turn", () => {
  test("leaves prompt, answer and offset behind", async () => {
    const { agent } = await world.session();
    for (const file of ["reply", "prompt.prev", "chat", "context"])
      expect(await world.read(`${agent}/${file}`)).toBe("");
    expect(await world.read(`${agent}/offset`)).toBe("0\n");
    await world.turn(agent, "slowly grüße 🌍\n");
    expect(await world.read(`${agent}/prompt.prev`)).toBe("slowly grüße 🌍\n");
    expect(await world.read(`${agent}/reply`)).toBe("Slow: grüße 🌍\n");
    expect(await context(agent)).toEqual(["user: slowly grüße 🌍", "assistant: Slow: grüße 🌍"]);
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
    const roles = (await context(agent)).map((line) => line.split(":")[0]);
    expect(roles).toEqual(["user", "assistant", "tool", "assistant"]);
  });

  test("keeps the reply of the one before until it has ended", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "first");
    const barrier = await calling(agent);
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
    const barrier = await calling(agent);
    const texts = Array.from({ length: 10 }, (_, i) => `prompt ${i}`);
    for (const text of texts) await world.write(`${agent}/prompt`, `${text}\n`);
    expect(await queued(agent)).toEqual(texts);
    expect(await world.read(`${agent}/fifo.out`)).toBe("prompt 0\n");
    barrier.go();
    await world.idle(agent);
    const said = (await context(agent)).filter((line) => line.startsWith("user: prompt"));
    expect(said).toEqual(texts.map((text) => `user: ${text}`));
    expect(await world.read(`${agent}/queue`)).toBe("");
  });

  test("loses none of many writers at once either", async () => {
    const { agent } = await world.session();
    const clients = await Promise.all(Array.from({ length: 5 }, () => world.connect()));
    const texts = Array.from({ length: 50 }, (_, i) => `prompt ${i}`);
    await Promise.all(texts.map((text, i) => clients[i % 5]!.writeFile(`${agent}/prompt`, text)));
    await world.idle(agent);
    const said = (await context(agent)).filter((line) => line.startsWith("user: "));
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
    const said = (await context(agent)).filter((line) => line.startsWith("user: "));
    expect(said.sort()).toEqual(["user: later", "user: now", "user: two\nlines"]);
  });

  test("is shown, not taken, by fifo.out", async () => {
    const { agent } = await world.session();
    expect(await world.read(`${agent}/fifo.out`)).toBe("");
    await world.write(`${agent}/queue`, "one\n");
    await world.write(`${agent}/queue`, "two\n");
    for (let i = 0; i < 3; i++) expect(await world.read(`${agent}/fifo.out`)).toBe("one\n");
    expect(await queued(agent)).toEqual(["one", "two"]);
  });

  test("gives up one text for each dequeue", async () => {
    const { agent } = await world.session();
    for (const text of ["a", "b", "c", "d"]) await world.write(`${agent}/queue`, `${text}\n`);
    await ctl(agent, "dequeue 3");
    await ctl(agent, "dequeue");
    expect(await queued(agent)).toEqual(["b", "d"]);
    expect(await refusal(ctl(agent, "dequeue 3"))).toBe("Invalid argument: the queue has no entry 3, only 2");
    await world.write(`${agent}/prompt`, "/dequeue 2");
    expect(await world.read(`${agent}/chat`)).toContain("\nTaken out: d\n");
    expect(await queued(agent)).toEqual(["b"]);
  });
});

describe("inject", () => {
  test("reaches the model with the next results", async () => {
    const { agent } = await world.session();
    const barrier = await calling(agent, "echo result");
    await ctl(agent, "inject   look left ");
    expect(await queued(agent)).toEqual(["  look left "]);
    barrier.go();
    await world.idle(agent);
    const messages = await context(agent);
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
    await ctl(agent, "inject afterwards");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: afterwards\n");
    await ctl(agent, "inject by itself");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: by itself\n");
  });
});

describe("stop", () => {
  test("ends a stream and keeps what it said", async () => {
    const { agent } = await world.session();
    await world.write(`${agent}/prompt`, "forever\n");
    await until("it speaks", async () => (await world.read(`${agent}/chat`)).includes("On it."));
    await ctl(agent, "stop");
    await world.idle(agent);
    expect(await world.read(`${agent}/chat`)).toMatch(
      /On it\.\n\[\[\[end\]\]\]\n\[\[\[info [^\n]*\nStopped by the user\.\n\[\[\[end\]\]\]\n$/,
    );
    expect(await context(agent)).toEqual(["user: forever", expect.stringMatching(/^assistant: On it\.\n/)]);
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
    await ctl(agent, "stop");
    await world.idle(agent);
    for (const pid of readFileSync(pids, "utf8").trim().split(" "))
      await until("it is gone", () => !existsSync(`/proc/${pid}`));
    const messages = await context(agent);
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
    await becomes(agent, "calling: pause_one");
    await ctl(agent, "stop");
    await world.idle(agent);
    const messages = await json(`${agent}/context`);
    const calls = messages.flatMap((message) => message.calls ?? []).map((call) => call.id);
    const results = messages.filter((message) => message.role === "tool");
    expect(results.map((message) => message.id)).toEqual(calls);
    expect(results.map((message) => message.text).join()).toMatch(/ran.*ancelled by the user.*ran/s);
  });

  test("lets what waits have its turn", async () => {
    const { agent } = await world.session();
    await calling(agent);
    await world.write(`${agent}/prompt`, "next\n");
    await ctl(agent, "stop");
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: next\n");
  });

  test("of an idle agent is no error and leaves no trace", async () => {
    const { agent, path } = await world.session();
    await ctl(agent, "stop");
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

describe("other verbs", () => {
  test("clear begins a new history; chat, reply and costs stay", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "remember me");
    const before = await world.read(`${agent}/chat`);
    await ctl(agent, "clear");
    const after = await world.read(`${agent}/chat`);
    expect(after).toStartWith(before);
    expect(after.slice(before.length)).toMatch(/^\[\[\[info [^\n]*\n[^[]+\n\[\[\[end\]\]\]\n$/);
    expect(await world.read(`${agent}/context`)).toBe("");
    expect(await world.read(`${agent}/reply`)).toBe("You said: remember me\n");
    await world.turn(agent, "again");
    expect(await context(agent)).toEqual(["user: again", "assistant: You said: again"]);
  });

  test("retry sends the last prompt again", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "twice");
    await ctl(agent, "retry");
    await world.idle(agent);
    expect((await context(agent)).filter((line) => line === "user: twice").length).toBe(2);
  });

  test("save writes the transcript, of an agent or of all of a session", async () => {
    const { agent, path, name } = await world.session();
    await world.write(`${path}/agent/new`, "name=other\n");
    await world.turn(agent, "for the record");
    await world.write(`${agent}/prompt`, "/save\n");
    const file = /Saved to (\S+)\n/.exec(await world.read(`${agent}/chat`))![1]!;
    expect(readFileSync(file, "utf8")).toContain("for the record");
    expect(file).toContain(name);
    await world.write(`${path}/ctl`, "save\n");
  });

  test("that would change the ground under a running turn are refused while it runs", async () => {
    const { agent, path } = await world.session();
    const barrier = await calling(agent);
    const before = await world.read(`${agent}/cfg`);
    for (const [file, text] of [
      [`${agent}/ctl`, "model other"],
      [`${agent}/ctl`, "backend script\nmodel other"],
      [`${agent}/ctl`, "agent tester"],
      [`${agent}/ctl`, "cwd /tmp"],
      [`${agent}/ctl`, "clear"],
      [`${agent}/ctl`, "retry"],
      [`${agent}/prompt`, "/model other"],
      [`${agent}/cfg`, "seed=1 model=other"],
      [`${path}/cfg`, "cwd=/tmp"],
    ] as const)
      expect(await refusal(world.write(file, `${text}\n`))).toStartWith("Device or resource busy: ");
    await ctl(agent, "maxsteps 50");
    expect(await world.read(`${agent}/cfg`)).toBe(before.replace("maxSteps=\n", "maxSteps=50\n"));
    barrier.go();
    await world.idle(agent);
    await ctl(agent, "model other");
    expect(await world.read(`${agent}/cfg`)).toContain("model=other\n");
  });
});

describe("a slash line", () => {
  const chat = (agent: string) => world.read(`${agent}/chat`);

  test("is a verb; its answer is an info block, and no turn begins", async () => {
    const { agent } = await world.session();
    const wait = await world.client.openFile(`${agent}/statewait`);
    for (const [line, answer] of [
      ["/help", "/stop"],
      ["/model", "model=script"],
      ["/model other", "model=other"],
      ["/maxsteps 4", "maxSteps=4"],
      ["/cwd /tmp", "cwd=/tmp"],
      ["/stop", "Nothing is running."],
    ]) {
      const before = (await chat(agent)).length;
      await world.write(`${agent}/prompt`, `${line}\n`);
      const block = (await chat(agent)).slice(before);
      expect(block).toMatch(/^\[\[\[info time=\S+\]\]\]\n.+\n\[\[\[end\]\]\]\n$/s);
      expect(block).toContain(answer!);
    }
    expect(await world.read(`${agent}/context`)).toBe("");
    await world.client.remove(agent);
    expect(await refusal(wait.read(0))).toContain("removed");
  });

  test("is carried out at its write, with the file still open", async () => {
    const { agent } = await world.session();
    await world.write(`${agent}/prompt`, "forever\n");
    const fid = await world.client.openFile(`${agent}/prompt`, 1);
    await fid.write(0, Buffer.from("/stop\n"));
    await world.idle(agent);
    await fid.write(6, Buffer.from("and then\n"));
    await fid.clunk();
    await world.idle(agent);
    expect(await world.read(`${agent}/reply`)).toBe("You said: and then\n");
  });

  test("that is no verb is refused at its write", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/prompt`, 1);
    expect(await refusal(fid.write(0, Buffer.from("/nonesuch at all\n")))).toStartWith(
      "Invalid argument: unknown verb nonesuch; there are stop",
    );
    await fid.clunk();
    expect(await chat(agent)).toBe("");
  });

  test("is a text behind a second slash or a blank, or where more lines follow", async () => {
    const { agent } = await world.session();
    for (const [text, arrives] of [
      ["//stop\n", "/stop"],
      [" /stop\n", "/stop"],
      ["/usr/bin/x says:\nno such file\n", "/usr/bin/x says:\nno such file"],
      ["look at\n/etc/passwd\n", "look at\n/etc/passwd"],
    ]) {
      await world.turn(agent, text!);
      expect(await world.read(`${agent}/prompt.prev`)).toBe(`${arrives}\n`);
    }
  });

  test("kills the agent", async () => {
    const { agent, path } = await world.session();
    await world.write(`${agent}/prompt`, "/kill\n");
    expect((await world.client.readDir(`${path}/agent`)).map((entry) => entry.name)).toEqual(["new"]);
  });
});
