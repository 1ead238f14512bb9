/** Where a request ends, and what becomes of it: the rules that hold for every file that is written. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { OTRUNC, OWRITE } from "../../src/ninep/file.ts";
import { refusal, type Session, send, World } from "./namespace-world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world.stop());

const queued = async (agent: string): Promise<string[]> =>
  (await world.read(`${agent}/queue`))
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** Sends the pieces as a program that has the file open does: at the offsets that the kernel keeps for it. */
async function write(path: string, pieces: (string | Uint8Array)[], offset = 0): Promise<void> {
  const fid = await world.client.openFile(path, OWRITE | OTRUNC);
  for (const piece of pieces) offset += await send(fid, piece, offset);
  await fid.clunk();
}

describe("a control write", () => {
  test("is carried out when it is answered, with the file still open", async () => {
    const { path, agent } = await world.session();
    for (const [file, text, shown, seen] of [
      [`${agent}/cfg`, "temperature=1\n", `${agent}/cfg`, "temperature=1"],
      [`${agent}/ctl`, "model other\n", `${agent}/cfg`, "model=other"],
      [`${agent}/tools`, "reasoning_think\n", `${agent}/tools`, "reasoning_think"],
      [`${agent}/queue`, "later\n", `${agent}/queue`, '"later"'],
      [`${agent}/fifo.in`, "much later\n", `${agent}/queue`, '"much later"'],
      [`${path}/cfg`, "share=x\n", `${path}/cfg`, "share=x"],
      [`${path}/env`, "A=1\n", `${path}/env`, "A=1"],
      [`${path}/agent/new`, "name=helper\n", "session/idx", "helper"],
    ] as const) {
      const fid = await world.client.openFile(file, OWRITE);
      await send(fid, text);
      expect(await world.read(shown)).toContain(seen);
      await fid.clunk();
    }
    const ctl = await world.client.openFile(`${path}/ctl`, OWRITE);
    await send(ctl, "rename carried-out\n");
    expect(await world.read("session/carried-out/name")).toBe("carried-out\n");
    const name = await world.client.openFile("session/carried-out/name", OWRITE);
    await send(name, "out\n");
    expect(await world.read("session/out/name")).toBe("out\n");
  });

  test("that is refused changes nothing, and says so at the write", async () => {
    const { path, agent } = await world.session("env.A=1");
    const files = [`${agent}/cfg`, `${agent}/tools`, `${agent}/queue`, `${path}/cfg`, `${path}/env`];
    const look = () =>
      Promise.all([...files, "session/idx", `${agent}/chat`].map((file) => world.read(file)));
    const before = await look();
    for (const [file, text, words] of [
      [`${agent}/ctl`, "fly\n", "Invalid argument: unknown verb fly; there are stop kill"],
      [`${agent}/ctl`, "\n", "Invalid argument: empty command"],
      [`${agent}/ctl`, "clear now\n", "Invalid argument: clear takes no argument"],
      [`${agent}/ctl`, "rename\n", "Invalid argument: rename NAME: NAME is missing"],
      [`${agent}/ctl`, "inject   \n", "Invalid argument: inject TEXT: TEXT is missing"],
      [`${agent}/ctl`, "model\n", "Invalid argument: model alone asks"],
      [`${agent}/ctl`, "help\n", "Invalid argument: help alone asks"],
      [`${agent}/ctl`, "maxsteps many\n", "Invalid argument: maxSteps=many: a whole number"],
      [`${agent}/ctl`, "dequeue x\n", "Invalid argument: dequeue x: a number from 1 up"],
      [`${agent}/ctl`, "dequeue\n", "Invalid argument: the queue is empty"],
      [`${agent}/ctl`, "retry\n", "Invalid argument: retry: there was no prompt yet"],
      [`${agent}/ctl`, "model other\nfly\n", "Invalid argument: unknown verb fly"],
      [`${agent}/cfg`, "temperature=1 colour=red\n", "Invalid argument: unknown key colour"],
      [`${agent}/cfg`, "seed=1\ntemperature=warm\n", "Invalid argument: temperature=warm"],
      [`${agent}/cfg`, "\n", "Invalid argument: no key=value given"],
      [`${agent}/cfg`, "name=x\n", "Invalid argument: unknown key name"],
      [`${agent}/tools`, "reasoning_think nonesuch\n", "file does not exist: no tool nonesuch"],
      [`${agent}/tools`, "-nonesuch\n", "file does not exist: tool nonesuch is not loaded"],
      [`${agent}/queue`, "\n", "Invalid argument: empty prompt"],
      [
        `${path}/ctl`,
        "save\nfly\n",
        "Invalid argument: unknown verb fly; there are stop kill save reconnect sync rename",
      ],
      [`${path}/cfg`, "share=x colour=red\n", "Invalid argument: unknown key colour"],
      [`${path}/cfg`, "cwd=/nowhere/at/all\n", "file does not exist: cwd=/nowhere/at/all"],
      [`${path}/env`, "B=2\nno equals sign\n", 'Invalid argument: "no equals sign" is not KEY=VALUE'],
      [`${path}/env`, "B=2\nOLLIE_SESSION=x\n", "permission denied: OLLIE_SESSION is set by ollie"],
      [`${path}/name`, "a/b\n", "Invalid argument: the name"],
      [`${path}/name`, "one\ntwo\n", "Invalid argument: the name"],
      [`${path}/name`, "new\n", "Invalid argument: the name"],
    ] as const) {
      const fid = await world.client.openFile(file, OWRITE);
      expect([text, await refusal(send(fid, text))]).toEqual([text, expect.stringContaining(words)]);
      await fid.clunk();
      // To a ctl the client of the command line sends each line by itself.
      if (text.trimEnd().includes("\n")) continue;
      const { status, stderr } = await world.p9(["write", file], { stdin: text });
      expect([text, status]).toEqual([text, 1]);
      expect(stderr).toContain(words);
    }
    expect(await look()).toEqual(before);
  });

  test("may leave out its newline", async () => {
    const { agent } = await world.session();
    await write(`${agent}/queue`, ["no newline"]);
    await write(`${agent}/ctl`, ["maxsteps 3"]);
    await write(`${agent}/cfg`, ["seed=4"]);
    expect(await queued(agent)).toEqual(["no newline"]);
    expect(await world.read(`${agent}/cfg`)).toMatch(/^maxSteps=3$.*^seed=4$/ms);
  });

  test("is taken at any offset, and appending is no different", async () => {
    const { path, agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/queue`, OWRITE);
    await send(fid, "a\n", 52);
    await send(fid, "b\n", 0);
    await fid.write(2n ** 63n, Buffer.from("c\n"));
    expect(await queued(agent)).toEqual(["a", "b", "c"]);
    for (const [file, text] of [
      [`${agent}/ctl`, "dequeue"],
      [`${path}/env`, "A=1"],
      [`${agent}/prompt`, "hello"],
      ["session/new", "name=appended"],
    ] as const)
      expect((await world.p9(["write", "-a", file], { stdin: `${text}\n` })).status).toBe(0);
    await world.idle(agent);
    expect(await world.read(`${agent}/chat`)).toContain("You said: hello");
    expect(await world.read("session/appended/name")).toBe("appended\n");
  });

  test("loses one newline and nothing else", async () => {
    const { agent } = await world.session();
    await write(`${agent}/queue`, ["  blanks \t \n"]);
    await write(`${agent}/queue`, ["two\n\n"]);
    await write(`${agent}/queue`, ["crlf\r\n"]);
    expect(await queued(agent)).toEqual(["  blanks \t ", "two\n", "crlf\r"]);
  });

  test("of two writers stays whole", async () => {
    const { agent } = await world.session();
    const other = await world.connect();
    const fids = [
      await world.client.openFile(`${agent}/queue`, OWRITE),
      await other.openFile(`${agent}/queue`, OWRITE),
    ];
    const texts = Array.from({ length: 40 }, (_, i) => `${i}-${"x".repeat(1022 * (i % 3))}`);
    await Promise.all(texts.map((text, i) => send(fids[i % 2]!, `${text}\n`)));
    expect((await queued(agent)).sort()).toEqual([...texts].sort());
  });
});

describe("a text that arrives in several messages", () => {
  const long = (length: number) => "0123456789".repeat(length / 10 + 1).slice(0, length);

  // What a program sends was seen with strace(1); below, a mount cuts it into pages.
  for (const [who, pieces, texts] of [
    ["bash: printf 'one\\ntwo\\n'", ["one\n", "two\n"], ["one", "two"]],
    ["dash: printf 'one\\ntwo\\n'", ["one\ntwo\n"], ["one\ntwo"]],
    ["bash: a line of 10,000 bytes", [long(8192), `${long(1808)}\n`], [long(8192) + long(1808)]],
    ["dash: a line of 10,000 bytes", [long(10_000), "\n"], [long(10_000)]],
    [
      "dash through pages",
      [long(4096), long(4096), long(1808), "\n"],
      [long(4096) + long(4096) + long(1808)],
    ],
    ["stdio, whole buffers", [long(4096), long(4096)], [long(4096) + long(4096)]],
    ["9p write", [long(1024), long(1024), `${long(77)}\n`], [long(1024) + long(1024) + long(77)]],
    ["python: one write", [`${long(9000)}\n`], [long(9000)]],
  ] as const)
    test(`is one request as the writer meant it (${who})`, async () => {
      const { agent } = await world.session();
      await write(`${agent}/queue`, [...pieces]);
      expect(await queued(agent)).toEqual([...texts]);
    });

  test("is cut by the iounit of its connection", async () => {
    const { agent } = await world.session();
    const small = await world.connect({ msize: 4096 });
    const text = `${"größer 🌍 ".repeat(3000)}.`;
    await small.writeFile(`${agent}/queue`, text);
    await small.writeFile(`${agent}/cfg`, `seed=1 stop='${"ü".repeat(4000)}' topK=3`);
    expect(await queued(agent)).toEqual([text]);
    expect(await world.read(`${agent}/cfg`)).toMatch(/^topK=3$.*^seed=1$/ms);
  });

  test("may be cut within a character", async () => {
    const { path, agent } = await world.session();
    const bytes = Buffer.from("grüße 🌍\n");
    await write(`${agent}/queue`, [bytes.subarray(0, 3), bytes.subarray(3, 10), bytes.subarray(10)]);
    expect(await queued(agent)).toEqual(["grüße 🌍"]);
    await write(`${path}/env`, [
      Buffer.from("A=\u00fc").subarray(0, 3),
      Buffer.from("A=\u00fc\n").subarray(3),
    ]);
    expect(await world.read(`${path}/env`)).toBe("A=ü\n");
  });

  test("that is held back is carried out by the clunk, which tells what is wrong with it", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/queue`, OWRITE);
    await send(fid, long(2048));
    expect(await queued(agent)).toEqual([]);
    await fid.clunk();
    expect(await queued(agent)).toEqual([long(2048)]);
    const bad = await world.client.openFile(`${agent}/ctl`, OWRITE);
    await send(bad, long(1024));
    expect(await refusal(bad.clunk())).toStartWith("Invalid argument: unknown verb 0123");
  });

  test("that is held back is discarded with its connection", async () => {
    const { agent } = await world.session();
    const other = await world.connect();
    const fid = await other.openFile(`${agent}/queue`, OWRITE);
    await send(fid, long(1024));
    await world.drop(other);
    expect(await queued(agent)).toEqual([]);
  });

  test("may be a mebibyte of control text and no more", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/queue`, OWRITE);
    for (let i = 0; i < 16; i++) await send(fid, long(65_536));
    expect(await refusal(send(fid, "x\n"))).toStartWith(
      "Invalid argument: a request of more than 1048576 bytes",
    );
    await fid.clunk();
    expect(await queued(agent)).toEqual([]);
  });
});

describe("a prompt", () => {
  /** What the agent was asked, as the model saw it. */
  const asked = async (agent: string): Promise<string[]> =>
    (await world.read(`${agent}/context`))
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line))
      .filter((message) => message.role === "user")
      .map((message) => message.text);

  const prompt = async ({ agent }: Session, pieces: (string | Uint8Array)[]): Promise<void> => {
    await write(`${agent}/prompt`, pieces);
    await world.idle(agent);
  };

  test("collects until the file is closed, however it is cut", async () => {
    const session = await world.session();
    const bytes = Buffer.from("für\n\n🌍\n");
    await prompt(
      session,
      Array.from(bytes, (byte) => Buffer.from([byte])),
    );
    await prompt(session, ["\n", "bash begins with an empty line\n", "and goes on\n"]);
    await prompt(session, ["dash ends a long line", "\n"]);
    await prompt(session, ["  trims nothing \t\n\n"]);
    expect(await asked(session.agent)).toEqual([
      "für\n\n🌍",
      "\nbash begins with an empty line\nand goes on",
      "dash ends a long line",
      "  trims nothing \t\n",
    ]);
  });

  test("may be large", async () => {
    const session = await world.session();
    const text = "A line of a large text.\n".repeat(100_000);
    await world.turn(session.agent, text);
    expect(await world.read(`${session.agent}/prompt.prev`)).toBe(text);
  });

  test("is not what an open, a truncation or an interrupted connection makes", async () => {
    const { agent } = await world.session();
    await (await world.client.openFile(`${agent}/prompt`, OWRITE | OTRUNC)).clunk();
    await world.client.wstat(`${agent}/prompt`, { length: 0 });
    const other = await world.connect();
    await send(await other.openFile(`${agent}/prompt`, OWRITE), "half a thought\n");
    await world.drop(other);
    expect(await world.read(`${agent}/state`)).toBe("idle\n");
    expect(await world.read(`${agent}/chat`)).toBe("");
  });

  test("that is empty is refused when the file is closed", async () => {
    const { agent } = await world.session();
    for (const text of ["\n", "\n\n", "  \n"]) {
      const { status, stderr } = await world.p9(["write", `${agent}/prompt`], { stdin: text });
      expect([status, stderr]).toEqual([1, expect.stringContaining("Invalid argument: empty prompt")]);
    }
    expect(await world.read(`${agent}/chat`)).toBe("");
  });

  test("that is no UTF-8 is refused whole, at the write that shows it", async () => {
    const { agent } = await world.session();
    const fid = await world.client.openFile(`${agent}/prompt`, OWRITE);
    await send(fid, "good\n");
    expect(await refusal(send(fid, Buffer.from([0xc3, 0x28])))).toStartWith(
      "Invalid argument: the prompt is not UTF-8",
    );
    await fid.clunk();
    expect(await world.read(`${agent}/chat`)).toBe("");
  });

  test("of two writers at once stays apart", async () => {
    const { agent } = await world.session();
    const other = await world.connect();
    const one = await world.client.openFile(`${agent}/prompt`, OWRITE);
    const two = await other.openFile(`${agent}/prompt`, OWRITE);
    await send(one, "one ");
    await send(two, "two ");
    await send(one, "one\n", 4);
    await send(two, "two\n", 4);
    await Promise.all([one.clunk(), two.clunk()]);
    await world.idle(agent);
    expect((await asked(agent)).sort()).toEqual(["one one", "two two"]);
  });
});

describe("setting a length of 0", () => {
  test("succeeds wherever writing is allowed, and acts on the plan only", async () => {
    const { path, agent } = await world.session("env.A=1 temperature=1");
    await world.write(`${path}/plan`, "a plan\n");
    await world.write(`${agent}/queue`, "waits\n");
    const kept = [
      `${path}/name`,
      `${path}/cfg`,
      `${path}/env`,
      `${agent}/queue`,
      `${agent}/tools`,
      `${agent}/cfg`,
    ];
    const before = await Promise.all(kept.map((file) => world.read(file)));
    for (const file of [
      ...kept,
      `${path}/ctl`,
      `${agent}/ctl`,
      `${agent}/prompt`,
      `${agent}/fifo.in`,
      `${path}/agent/new`,
      "session/new",
    ]) {
      await world.client.wstat(file, { length: 0 });
      await world.client.wstat(file, { length: 0, mtime: 1_700_000_000, atime: 1_700_000_000 });
      await (await world.client.openFile(file, OWRITE | OTRUNC)).clunk();
      expect(await refusal(world.client.wstat(file, { length: 5 }))).toStartWith("Invalid argument: ");
    }
    expect(await Promise.all(kept.map((file) => world.read(file)))).toEqual(before);
    await (await world.client.openFile(`${path}/plan`, OWRITE | OTRUNC)).clunk();
    expect(await world.read(`${path}/plan`)).toBe("");
  });

  test("is refused where writing is", async () => {
    const { path, agent } = await world.session();
    for (const file of [`${agent}/chat`, `${agent}/state`, `${path}/lasterr`, "help", "session/idx"])
      expect(await refusal(world.client.wstat(file, { length: 0 }))).toStartWith("permission denied");
  });
});
