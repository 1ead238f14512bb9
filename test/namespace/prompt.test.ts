import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWRITE } from "../../src/ninep/file.ts";
import { agentPath, refusal, type Served, send, serve } from "./serve.ts";

const path = `${agentPath}/prompt`;
let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const open = () => served.client.openFile(path, OWRITE);

describe("a prompt", () => {
  test("collects until the clunk, which has submitted it", async () => {
    const fid = await open();
    await send(fid, "fix the bug\n");
    await send(fid, "in main.go\n\n", 12);
    expect(served.agent.prompts).toEqual([]);
    await fid.clunk();
    expect(served.agent.prompts).toEqual(["fix the bug\nin main.go\n"]);
    expect(served.agent.state).toBe("thinking");
  });

  test("loses one newline and nothing else", async () => {
    await served.client.writeFile(path, "  a \t\n");
    await served.client.writeFile(path, "no newline");
    expect(served.agent.prompts).toEqual(["  a \t", "no newline"]);
  });

  test("may begin with empty lines", async () => {
    const fid = await open();
    for (const line of ["\n", "\n", "text\n"]) await send(fid, line);
    await fid.clunk();
    expect(served.agent.prompts).toEqual(["\n\ntext"]);
  });

  test("joins characters that messages cut", async () => {
    const fid = await open();
    const bytes = Buffer.from("grüße 🌍");
    for (const [at, byte] of bytes.entries()) await fid.write(at, Buffer.from([byte]));
    await fid.clunk();
    expect(served.agent.prompts).toEqual(["grüße 🌍"]);
  });

  test("is put together from messages of any size", async () => {
    const client = await served.connect(4096);
    const text = "änderung ".repeat(30_000);
    await client.writeFile(path, text);
    expect(served.agent.prompts).toEqual([text]);
  });

  test("does not care about offsets", async () => {
    const fid = await open();
    await send(fid, "one ", 700);
    await send(fid, "two", 700);
    await fid.clunk();
    expect(served.agent.prompts).toEqual(["one two"]);
  });

  test("is what one open file wrote, whoever else writes", async () => {
    const one = await open();
    const two = await (await served.connect()).openFile(path, OWRITE);
    await send(one, "first ");
    await send(two, "second ");
    await send(one, "prompt");
    await send(two, "prompt");
    await two.clunk();
    await one.clunk();
    expect(served.agent.prompts).toEqual(["second prompt", "first prompt"]);
  });

  test("is discarded when its connection is lost", async () => {
    const client = await served.connect();
    const fid = await client.openFile(path, OWRITE);
    await send(fid, "half a thought");
    client.close();
    await client.ended;
    await served.server.close();
    expect(served.agent.prompts).toEqual([]);
  });

  test("is not what an open without a write makes", async () => {
    const fid = await open();
    await fid.clunk();
    expect(served.agent.prompts).toEqual([]);
    expect(served.agent.state).toBe("idle");
  });

  test("that is empty is refused", async () => {
    expect(await refusal(served.client.writeFile(path, "\n"))).toBe("Invalid argument: empty prompt");
    const fid = await open();
    await send(fid, "  ");
    expect(await refusal(fid.clunk())).toBe("Invalid argument: empty prompt");
    expect(served.agent.prompts).toEqual([]);
  });

  test("that is no UTF-8 is refused as a whole", async () => {
    const fid = await open();
    await send(fid, "good ");
    expect(await refusal(fid.write(5, Buffer.from([0xc3, 0x28])))).toBe(
      "Invalid argument: the prompt is not UTF-8",
    );
    expect(await refusal(send(fid, "rest"))).toStartWith("Invalid argument: an earlier part");
    await fid.clunk();
    const cut = await open();
    await cut.write(0, Buffer.from([0x61, 0xc3]));
    expect(await refusal(cut.clunk())).toStartWith("Invalid argument: the prompt is not UTF-8");
    expect(served.agent.prompts).toEqual([]);
  });

  test("with a NUL is refused at the write, and nothing of it is sent", async () => {
    const fid = await open();
    expect(await refusal(send(fid, "a\0b"))).toBe(
      "Invalid argument: the prompt holds a NUL, which no model takes",
    );
    await fid.clunk();
    expect(served.agent.prompts).toEqual([]);
  });

  test("for an agent that has gone is refused", async () => {
    const fid = await open();
    await send(fid, "are you there");
    await served.session.remove();
    expect(await refusal(send(fid, "still"))).toBe("file does not exist: session removed");
    expect(await refusal(fid.clunk())).toBe("file does not exist: session removed");
    expect(served.agent.prompts).toEqual([]);
  });
});

describe("a line that begins with a slash", () => {
  test("is a verb, carried out at its write", async () => {
    const fid = await open();
    await send(fid, "/stop\n");
    expect(served.agent.told).toEqual(["stop"]);
    await send(fid, "/clear", 6);
    await fid.clunk();
    expect(served.agent.told).toEqual(["stop", "clear"]);
    expect(served.agent.prompts).toEqual([]);
  });

  test("is refused at its write when there is no such verb, and what follows it is no prompt", async () => {
    const fid = await open();
    expect(await refusal(send(fid, "/home/me/x.c does not compile\n"))).toStartWith(
      "Invalid argument: unknown verb home/me/x.c",
    );
    expect(await refusal(send(fid, "please mend it\n", 30))).toStartWith(
      "Invalid argument: an earlier part of this prompt was refused",
    );
    await fid.clunk();
    expect(served.agent.prompts).toEqual([]);
  });

  test("may be followed by a prompt", async () => {
    const fid = await open();
    await send(fid, "/model x\n");
    await send(fid, "hello\n", 9);
    await fid.clunk();
    expect(served.agent.told).toEqual(["model x"]);
    expect(served.agent.prompts).toEqual(["hello"]);
  });

  test("is a verb whose newline may come by itself", async () => {
    const fid = await open();
    const line = `/inject ${"x".repeat(10_000)}`;
    await send(fid, line);
    await send(fid, "\n", line.length);
    await fid.clunk();
    expect(served.agent.told).toEqual([line.slice(1)]);
    expect(served.agent.prompts).toEqual([]);
  });

  test("is a verb also where a client had to cut it", async () => {
    const client = await served.connect(4096);
    const text = "x".repeat(9000);
    await client.writeFile(path, `/inject ${text}\n`);
    expect(served.agent.told).toEqual([`inject ${text}`]);
  });

  test("is text when it begins with two slashes or a blank", async () => {
    await served.client.writeFile(path, "//stop\n");
    await served.client.writeFile(path, " /stop\n");
    await served.client.writeFile(path, "//two\nlines");
    await served.client.writeFile(path, "///x");
    expect(served.agent.prompts).toEqual(["/stop", "/stop", "/two\nlines", "//x"]);
    expect(served.agent.told).toEqual([]);
  });

  test("is text when more lines follow, or when it is not the first", async () => {
    await served.client.writeFile(path, "/usr/bin/x says:\nno such file\n");
    const fid = await open();
    await send(fid, "look:\n");
    await send(fid, "/stop\n", 6);
    await fid.clunk();
    expect(served.agent.prompts).toEqual(["/usr/bin/x says:\nno such file", "look:\n/stop"]);
    expect(served.agent.told).toEqual([]);
  });
});

describe("the spool", () => {
  test("leaves nothing behind", async () => {
    const fid = await open();
    await send(fid, "text");
    expect(readdirSync(join(served.dir, "spool"))).toEqual([]);
    await fid.clunk();
    expect(readdirSync(join(served.dir, "spool"))).toEqual([]);
  });

  test("that cannot be written shows at the write, and nothing is submitted", async () => {
    const spool = join(served.dir, "spool");
    rmSync(spool, { recursive: true, force: true });
    writeFileSync(spool, "");
    chmodSync(spool, 0o400);
    const fid = await open();
    expect(await refusal(send(fid, "text"))).toMatch(/^(file already exists|i\/o error|not a directory)/);
    await fid.clunk();
    expect(served.agent.prompts).toEqual([]);
  });
});

test("prompt.prev shows the last prompt as it was written", async () => {
  expect(await served.client.readText(`${agentPath}/prompt.prev`)).toBe("");
  await served.client.writeFile(path, "again\n\n");
  expect(await served.client.readText(`${agentPath}/prompt.prev`)).toBe("again\n\n");
});
