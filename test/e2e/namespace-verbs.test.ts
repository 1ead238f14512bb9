/** Verbs, in `ctl` and behind a slash in `prompt`, beyond those that act on turns. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { refusal, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

describe("other verbs", () => {
  test("clear begins a new history; chat, reply and costs stay", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "remember me");
    const before = await world.read(`${agent}/chat`);
    await world.ctl(agent, "clear");
    const after = await world.read(`${agent}/chat`);
    expect(after).toStartWith(before);
    expect(after.slice(before.length)).toMatch(/^\[\[\[info [^\n]*\n[^[]+\n\[\[\[end\]\]\]\n$/);
    expect(await world.read(`${agent}/context`)).toBe("");
    expect(await world.read(`${agent}/reply`)).toBe("You said: remember me\n");
    await world.turn(agent, "again");
    expect(await world.context(agent)).toEqual(["user: again", "assistant: You said: again"]);
  });

  test("retry sends the last prompt again", async () => {
    const { agent } = await world.session();
    await world.turn(agent, "twice");
    await world.ctl(agent, "retry");
    await world.idle(agent);
    expect((await world.context(agent)).filter((line) => line === "user: twice").length).toBe(2);
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
    const barrier = await world.calling(agent);
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
    await world.ctl(agent, "maxsteps 50");
    expect(await world.read(`${agent}/cfg`)).toBe(before.replace("maxSteps=\n", "maxSteps=50\n"));
    barrier.go();
    await world.idle(agent);
    await world.ctl(agent, "model other");
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
