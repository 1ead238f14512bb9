/** Files that carry out what is written to them. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ORDWR, OTRUNC, OWRITE } from "../../src/ninep/file.ts";
import { agentPath, refusal, type Served, send, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

describe("ctl", () => {
  test("has carried out a line when its write is answered", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE | OTRUNC);
    await send(fid, "clear\n");
    expect(served.agent.told).toEqual(["clear"]);
    await send(fid, "model x\n", 6);
    expect(served.agent.told).toEqual(["clear", "model x"]);
  });

  test("takes a line without a newline at its write", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    await send(fid, "stop");
    expect(served.agent.told).toEqual(["stop"]);
    await send(fid, "clear");
    expect(served.agent.told).toEqual(["stop", "clear"]);
  });

  test("refuses an unknown verb at the write, saying what is right", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    expect(await refusal(send(fid, "fly\n"))).toBe(
      "Invalid argument: unknown verb fly; there are stop clear model inject",
    );
    await fid.clunk();
    expect(served.agent.told).toEqual([]);
  });

  test("refuses an empty command", async () => {
    expect(await refusal(served.client.writeFile(`${agentPath}/ctl`, "\n"))).toBe(
      "Invalid argument: empty command",
    );
  });

  test("carries out none of the lines of one write when one is wrong", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    expect(await refusal(send(fid, "clear\n\nfly\nstop\n"))).toContain("unknown verb fly");
    expect(served.agent.told).toEqual([]);
    await send(fid, "clear\n\nstop\n");
    expect(served.agent.told).toEqual(["clear", "stop"]);
  });

  test("carries out no line after one that fails", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    expect(await refusal(send(fid, "clear\nmodel busy\nstop\n"))).toContain("not now");
    expect(served.agent.told).toEqual(["clear"]);
  });

  test("takes the newline of a long line in a write of its own", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    const line = `inject ${"x".repeat(10_000)}`;
    await send(fid, line);
    await send(fid, "\n", line.length);
    expect(served.agent.told).toEqual([line]);
    expect(await refusal(send(fid, "\n"))).toBe("Invalid argument: empty command");
  });

  test("waits for the rest of a character", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    const bytes = Buffer.from("inject 🌍\n");
    await fid.write(0, bytes.subarray(0, 9));
    expect(served.agent.told).toEqual([]);
    await fid.write(9, bytes.subarray(9));
    expect(served.agent.told).toEqual(["inject 🌍"]);
  });

  test("accepts any offset and a length of 0", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    await served.client.wstat(`${agentPath}/ctl`, { length: 0, mtime: 1 });
    await send(fid, "stop\n", 5_000_000_000);
    expect(served.agent.told).toEqual(["stop"]);
  });

  test("puts a line together that a client had to cut", async () => {
    const small = await served.connect(4096);
    const fid = await small.openFile(`${agentPath}/ctl`, OWRITE);
    const line = `inject ${"ü".repeat(5000)}`;
    const bytes = Buffer.from(line);
    expect(fid.iounit).toBe(4072);
    for (let at = 0; at < bytes.length; at += fid.iounit)
      await fid.write(at, bytes.subarray(at, at + fid.iounit));
    expect(served.agent.told).toEqual([line]);
  });

  test("holds back what fills a client's buffer until the rest or the clunk", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    const line = `inject ${"x".repeat(1017)}`;
    await send(fid, line);
    expect(served.agent.told).toEqual([]);
    await send(fid, "y\n", 1024);
    expect(served.agent.told).toEqual([`${line}y`]);
    await send(fid, line);
    await fid.clunk();
    expect(served.agent.told).toEqual([`${line}y`, line]);
  });

  test("drops what was held back when the connection is lost", async () => {
    const client = await served.connect();
    const fid = await client.openFile(`${agentPath}/ctl`, OWRITE);
    await send(fid, `inject ${"x".repeat(1017)}`);
    client.close();
    await client.ended;
    await served.server.close();
    expect(served.agent.told).toEqual([]);
  });

  test("refuses bytes that are no text", async () => {
    const fid = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    expect(await refusal(fid.write(0, Buffer.from([0x73, 0xff, 10])))).toBe(
      "Invalid argument: the text is not UTF-8",
    );
    expect(await refusal(send(fid, "stop\0\n"))).toBe("Invalid argument: the text contains a NUL byte");
  });

  test("keeps two writers apart", async () => {
    const one = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    const two = await (await served.connect()).openFile(`${agentPath}/ctl`, OWRITE);
    const half = `inject ${"x".repeat(1017)}`;
    await send(one, half);
    await send(two, "stop\n");
    await send(one, "z\n");
    expect(served.agent.told).toEqual(["stop", `${half}z`]);
  });

  test("of the session works alike", async () => {
    await served.client.writeFile("session/a/ctl", "save\n");
    expect(served.session.told).toEqual(["save"]);
    expect(await refusal(served.client.writeFile("session/a/ctl", "dance"))).toBe(
      "Invalid argument: unknown verb dance",
    );
  });
});

describe("cfg", () => {
  test("merges, over several lines of one write", async () => {
    await served.client.writeFile(`${agentPath}/cfg`, "temperature=0.5\n");
    await served.client.writeFile(`${agentPath}/cfg`, 'model=x\ncwd="/a b"\n');
    expect([...served.agent.keys]).toEqual([
      ["temperature", "0.5"],
      ["model", "x"],
      ["cwd", "/a b"],
    ]);
    expect(await served.client.readText(`${agentPath}/cfg`)).toBe("temperature=0.5\nmodel=x\ncwd=/a b\n");
  });

  test("changes nothing when a key or a value is wrong", async () => {
    const write = (text: string) => refusal(served.client.writeFile(`${agentPath}/cfg`, text));
    expect(await write("model=x colour=red\n")).toStartWith("Invalid argument: unknown key colour");
    expect(await write("model=x temperature=warm\n")).toBe(
      "Invalid argument: temperature=warm: a number is right",
    );
    expect(await write("model\n")).toStartWith('Invalid argument: "model" is not key=value');
    expect(await write("\n")).toBe("Invalid argument: no key=value given");
    expect(served.agent.keys.size).toBe(0);
  });

  test("of the session is a file of its own", async () => {
    await served.client.writeFile("session/a/cfg", "cwd=/srv");
    expect(served.session.keys.get("cwd")).toBe("/srv");
    expect(served.agent.keys.size).toBe(0);
  });
});

test("tools loads and unloads by name, all or nothing", async () => {
  const path = `${agentPath}/tools`;
  expect(await served.client.readText(path)).toBe("shell\n");
  await served.client.appendFile(path, "file_read\nfile_edit -shell\n");
  expect(await served.client.readText(path)).toBe("file_edit\nfile_read\n");
  expect(await refusal(served.client.writeFile(path, "file_grep nonesuch"))).toStartWith(
    "file does not exist: no tool nonesuch",
  );
  expect(await served.client.readText(path)).toBe("file_edit\nfile_read\n");
  expect(await refusal(served.client.writeFile(path, " \n"))).toStartWith("Invalid argument: no tool named");
});

test("env merges lines and unsets empty values", async () => {
  await served.client.writeFile("session/a/env", "A=one two\nB=2\n");
  await served.client.writeFile("session/a/env", "A=\nC='x'\n");
  expect([...served.session.vars]).toEqual([
    ["B", "2"],
    ["C", "x"],
  ]);
  expect(await refusal(served.client.writeFile("session/a/env", "D=1\nnonsense\n"))).toStartWith(
    "Invalid argument:",
  );
  expect(served.session.vars.has("D")).toBe(false);
});

test("name renames, and refuses a name that is taken", async () => {
  const fid = await served.client.openFile("session/a/name", ORDWR);
  await send(fid, "b\n");
  expect(await take(fid)).toBe("b\n");
  expect(await refusal(send(fid, "x/y\nd\n"))).toStartWith("Invalid argument");
  await served.runtime.createSession(new Map([["name", "c"]]));
  expect(await refusal(send(fid, "c\n"))).toBe("file already exists: session c exists");
  expect(await served.client.readText("session/b/name")).toBe("b\n");
});

describe("queue", () => {
  test("takes one text a write, with its lines", async () => {
    const fid = await served.client.openFile(`${agentPath}/queue`, OWRITE);
    await send(fid, "first\nwith two lines\n");
    await send(fid, "  second  ", 22);
    expect(served.agent.waiting).toEqual(["first\nwith two lines", "  second  "]);
    expect(served.agent.prompts).toEqual([]);
    expect(await served.client.readText(`${agentPath}/queue`)).toBe(
      '"first\\nwith two lines"\n"  second  "\n',
    );
  });

  test("refuses an empty text", async () => {
    expect(await refusal(served.client.writeFile(`${agentPath}/queue`, "\n"))).toBe(
      "Invalid argument: empty prompt",
    );
  });

  test("has fifo.in and fifo.out for older names, and reading takes nothing out", async () => {
    expect(await served.client.readText(`${agentPath}/fifo.out`)).toBe("");
    await served.client.writeFile(`${agentPath}/fifo.in`, "one\n");
    await served.client.writeFile(`${agentPath}/fifo.in`, "two\n");
    for (let i = 0; i < 3; i++) expect(await served.client.readText(`${agentPath}/fifo.out`)).toBe("one\n");
    expect(served.agent.waiting).toEqual(["one", "two"]);
  });
});
