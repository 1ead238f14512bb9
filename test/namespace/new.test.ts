import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ORDWR } from "../../src/ninep/file.ts";
import { refusal, type Served, send, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const names = () => served.runtime.sessions().map((session) => session.name);

describe("session/new", () => {
  test("shows the keys before a write", async () => {
    expect(await served.client.readText("session/new")).toBe(
      "# what the session is called\nname=\ncwd=/srv\n",
    );
    expect(names()).toEqual(["a"]);
  });

  test("has made a session when its write is answered", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await send(fid, 'name=b cwd="/a b"\n');
    expect(served.runtime.session("b")?.keys.get("cwd")).toBe("/a b");
  });

  test("gives the name to the same open file, whatever the offset", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await send(fid, "name=b\n");
    expect(await take(fid, 7, 1)).toBe("b");
    expect(await take(fid, 8)).toBe("\n");
    expect(await take(fid, 9)).toBe("");
    expect(await take(fid, 0)).toBe("b\n");
    const other = await served.client.openFile("session/new", ORDWR);
    expect(await take(other)).toStartWith("# what");
    await send(other, "\n", 44);
    expect(await take(other, 45)).toBe("id1\n");
  });

  test("adds the keys of further writes to what it has made", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await send(fid, "name=b\n");
    await send(fid, "model=x\n", 7);
    expect(await refusal(send(fid, "colour=red\n", 15))).toStartWith("Invalid argument: unknown key colour");
    await send(fid, "temperature=1\n", 15);
    expect(names()).toEqual(["a", "b"]);
    expect(served.runtime.session("b")?.keys.get("model")).toBe("x");
    expect(served.runtime.session("b")?.keys.get("temperature")).toBe("1");
    expect(await take(fid, 29)).toBe("b\n");
  });

  test("takes its own template back", async () => {
    const template = await served.client.readText("session/new");
    await served.client.writeFile("session/new", template.replace("name=", "name=b"));
    expect(served.runtime.session("b")?.keys.get("cwd")).toBe("/srv");
    await served.client.writeFile("session/new", template);
    expect(names()).toEqual(["a", "b", "id1"]);
  });

  test("makes nothing when anything is wrong", async () => {
    const write = (text: string) => refusal(served.client.writeFile("session/new", text));
    expect(await write("name=b colour=red\n")).toStartWith("Invalid argument: unknown key colour");
    expect(await write("name=b stray\n")).toStartWith('Invalid argument: "stray" is not key=value');
    expect(await write("name=x/y\n")).toStartWith("Invalid argument: name=x/y");
    expect(await write("name=a\n")).toBe("file already exists: session a exists");
    expect(names()).toEqual(["a"]);
  });

  test("makes nothing of the lines after one that was refused", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await refusal(send(fid, "name=x/y\n"));
    expect(await refusal(send(fid, "model=x\n", 9))).toStartWith("Invalid argument: the first write");
    expect(await refusal(take(fid))).toStartWith("Invalid argument: the first write");
    await fid.clunk();
    expect(names()).toEqual(["a"]);
  });

  test("answers a read that does not wait for its write", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    const written = send(fid, "name=b\n");
    expect(await take(fid, 7)).toBe("b\n");
    await written;
  });

  test("takes a read for the end of a write that might have gone on", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await send(fid, `name=b model=${"m".repeat(1011)}`);
    expect(names()).toEqual(["a"]);
    expect(await take(fid, 1024)).toBe("b\n");
  });

  test("makes nothing without a write", async () => {
    await (await served.client.openFile("session/new", ORDWR)).clunk();
    expect(names()).toEqual(["a"]);
  });

  test("does not mind that the session has gone since", async () => {
    const fid = await served.client.openFile("session/new", ORDWR);
    await send(fid, "name=b\n");
    await served.client.remove("session/b");
    expect(names()).toEqual(["a"]);
    await fid.clunk();
  });
});

test("agent/new adds an agent to its session", async () => {
  const fid = await served.client.openFile("session/a/agent/new", ORDWR);
  expect(await take(fid)).toBe("name=\n");
  await send(fid, "name=helper\n", 6);
  expect(await take(fid, 18)).toBe("helper\n");
  await send(fid, "model=y\n", 25);
  expect(served.session.agent("helper")?.keys.get("model")).toBe("y");
  expect(await refusal(served.client.writeFile("session/a/agent/new", "name=helper\n"))).toBe(
    "file already exists: agent helper exists",
  );
  expect(await served.client.readText("session/a/agent/helper/state")).toBe("idle\n");
});
