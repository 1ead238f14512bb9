import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ORDWR, OTRUNC, OWRITE } from "../../src/ninep/file.ts";
import { refusal, type Served, send, serve, take } from "./serve.ts";

const path = "session/a/plan";
let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const text = () => served.client.readText(path);
const open = (mode = OWRITE) => served.client.openFile(path, mode);
const put = (plan: string) => served.client.writeFile(path, plan);

describe("a plan", () => {
  test("is replaced as a whole, to the byte, when the file is clunked", async () => {
    await put("old plan, rather long\n");
    const fid = await open(OWRITE | OTRUNC);
    await send(fid, "  new ");
    expect(await text()).toBe("old plan, rather long\n");
    await send(fid, "plan  \n\n", 6);
    await fid.clunk();
    expect(await text()).toBe("  new plan  \n\n");
  });

  test("stays what it was when the connection is lost", async () => {
    await put("old\n");
    const client = await served.connect();
    const fid = await client.openFile(path, OWRITE | OTRUNC);
    await send(fid, "half");
    client.close();
    await client.ended;
    await served.server.close();
    expect(Buffer.from(served.session.plan()).toString()).toBe("old\n");
  });

  test("is emptied by a truncation alone", async () => {
    await put("old\n");
    await (await open(OWRITE | OTRUNC)).clunk();
    expect(await text()).toBe("");
  });

  test("is not touched by an open alone", async () => {
    await put("old\n");
    await (await open()).clunk();
    await (await open(ORDWR)).clunk();
    expect(await text()).toBe("old\n");
  });

  test("is written from the start when a mount truncates it by path after the open", async () => {
    await put("old plan\n");
    const fid = await open();
    await served.client.wstat(path, { length: 0 });
    expect(await text()).toBe("old plan\n");
    await send(fid, "new\n");
    await fid.clunk();
    expect(await text()).toBe("new\n");
  });

  test("is cut by a length alone", async () => {
    await put("one two\n");
    await served.client.wstat(path, { length: 3 });
    expect(await text()).toBe("one");
    await served.client.wstat(path, { length: 0 });
    expect(await text()).toBe("");
    expect(await refusal(served.client.wstat(path, { length: 5 }))).toStartWith(
      "Invalid argument: 5 is past",
    );
  });

  test("is added to at its end", async () => {
    await put("one\n");
    await served.client.appendFile(path, "two\n");
    const fid = await open();
    await send(fid, "three", 8);
    await send(fid, "\n", 13);
    await fid.clunk();
    expect(await text()).toBe("one\ntwo\nthree\n");
  });

  test("keeps what two writers add at once", async () => {
    await put("start\n");
    const one = await open();
    const two = await (await served.connect()).openFile(path, OWRITE);
    await send(one, "one\n", 6);
    await send(two, "two\n", 6);
    await Promise.all([one.clunk(), two.clunk()]);
    expect((await text()).split("\n").sort()).toEqual(["", "one", "start", "two"]);
  });

  test("keeps what was added after another's file was opened", async () => {
    await put("start\n");
    const late = await open();
    await served.client.appendFile(path, "one\n");
    await send(late, "two\n", 6);
    await late.clunk();
    expect(await text()).toBe("start\none\ntwo\n");
  });

  test("keeps what was added while a writer asked for the length, or before a mount asks again", async () => {
    await put("start\n");
    const waiting = await open();
    await served.client.appendFile(path, "one\n");
    const told = Number((await waiting.stat()).length);
    await served.client.appendFile(path, "two\n");
    await send(waiting, "three\n", told);
    await waiting.clunk();
    const cached = await open();
    await send(cached, "four\n", told);
    await cached.clunk();
    expect(await text()).toBe("start\none\ntwo\nthree\nfour\n");
  });

  test("is not cut through the open file of another connection", async () => {
    await put("start\n");
    const fid = await open();
    await send(fid, "more\n", 6);
    await (await served.connect()).wstat(path, { length: 0 });
    expect(await text()).toBe("");
    await fid.clunk();
    expect(await text()).toBe("more\n");
  });

  test("is what the last of two writers made of it", async () => {
    const one = await open(OWRITE | OTRUNC);
    const two = await (await served.connect()).openFile(path, OWRITE | OTRUNC);
    await send(one, "aaaaaaaa");
    await send(two, "bb");
    await two.clunk();
    await one.clunk();
    expect(await text()).toBe("aaaaaaaa");
  });

  test("is changed in the middle", async () => {
    await put("one two three\n");
    const fid = await open();
    await send(fid, "TWO", 4);
    await send(fid, "more\n", 14);
    await fid.clunk();
    expect(await text()).toBe("one TWO three\nmore\n");
  });

  test("is changed and cut through one open file", async () => {
    await put("hello world\n");
    const fid = await open(ORDWR);
    expect(await take(fid)).toBe("hello world\n");
    await send(fid, "HELLO");
    await served.client.wstat(path, { length: 5 });
    await fid.clunk();
    expect(await text()).toBe("HELLO");
  });

  test("takes an addition and then a change", async () => {
    await put("one\n");
    const fid = await open();
    await send(fid, "two\n", 4);
    await send(fid, "O", 0);
    await fid.clunk();
    expect(await text()).toBe("One\ntwo\n");
  });

  test("refuses offsets past its end, and then keeps what it was", async () => {
    await put("one\n");
    for (const offset of [5, 2 ** 40, 2 ** 53 - 1]) {
      const fid = await open();
      expect(await refusal(send(fid, "x", offset))).toStartWith(
        `Invalid argument: ${offset} is past the end of plan`,
      );
      expect(await refusal(send(fid, "x", 4))).toStartWith("Invalid argument: an earlier part");
      await fid.clunk();
    }
    const fid = await open();
    expect(await refusal(fid.write(2n ** 63n, Buffer.from("x")))).toStartWith("Invalid argument");
    await fid.clunk();
    expect(await text()).toBe("one\n");
  });

  test("of a session that has gone cannot be written", async () => {
    const fid = await open();
    await send(fid, "text");
    await served.session.remove();
    expect(await refusal(fid.clunk())).toBe("file does not exist: session removed");
  });
});
