/** What only real sockets and processes show. */
import { afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { encode } from "../../src/ninep/codec.ts";
import * as m from "../../src/ninep/messages.ts";
import { cleanUp, cleanup, serve } from "./serve.ts";
import { Blocking, TestDir, TestFile } from "./trees.ts";

afterEach(cleanUp);

const until = async (condition: () => boolean) => {
  for (let patience = 0; patience < 1000 && !condition(); patience++) await Bun.sleep(5);
  expect(condition()).toBe(true);
};

describe("a client process", () => {
  test("that is killed while its reads are blocked leaves nothing behind", async () => {
    const event = new Blocking();
    const { server, path } = await serve(new TestDir("/", [new TestFile("event", event)]));
    const script = `
      const { dial } = await import(${JSON.stringify(join(import.meta.dir, "../../src/ninep/dial.ts"))});
      const client = await dial("unix!" + ${JSON.stringify(path)});
      for (let i = 0; i < 100; i++) client.readText("event").catch(() => {});`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdout: "ignore", stderr: "inherit" });
    cleanup(() => child.kill("SIGKILL"));
    await until(() => event.waiting.length === 100);
    const [connection] = server.connections;
    child.kill("SIGKILL");
    await until(() => server.counters.connections === 0);
    await connection!.ended();
    expect(event.interrupted).toBe(100);
    expect(event.closed).toEqual(Array(100).fill("dropped"));
    expect(connection!.fids.size).toBe(0);
  });
});

describe("a client that asks and does not read", () => {
  test("is asked to wait: the server makes no more replies than fit its bounds", async () => {
    let reads = 0;
    const file = new TestFile("f", {
      read(_offset, count) {
        reads++;
        return Buffer.alloc(count);
      },
    });
    const { server, path, connect } = await serve(new TestDir("/", [file]));
    const requests: m.Message[] = [
      { type: m.Tversion, tag: m.NOTAG, msize: 1 << 20, version: "9P2000" },
      { type: m.Tattach, tag: 1, fid: 0, afid: m.NOFID, uname: "", aname: "" },
      { type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname: ["f"] },
      { type: m.Topen, tag: 1, fid: 1, mode: 0 },
      ...Array.from(
        { length: 2000 },
        (_, tag): m.Message => ({ type: m.Tread, tag, fid: 1, offset: 0, count: 1 << 20 }),
      ),
    ];
    const socket = await Bun.connect({
      unix: path,
      socket: { data() {}, open: (socket) => void socket.pause() },
    });
    socket.write(Buffer.concat(requests.map(encode)));
    await until(() => reads > 0);
    // Others are served meanwhile, as long as it takes.
    const client = await connect();
    for (let i = 0; i < 50; i++) await client.stat("f");
    expect(reads).toBeLessThan(5);
    // It goes away without ever having read: that is noticed too.
    socket.terminate();
    await until(() => server.counters.connections === 1);
  });
});

test("replies of many megabytes to many clients arrive whole, whatever the sockets take at a time", async () => {
  const content = Buffer.from(Uint32Array.from({ length: 1_500_000 }, (_, i) => i).buffer);
  const file = new TestFile("f", { read: (offset, count) => content.subarray(offset, offset + count) });
  const { connect } = await serve(new TestDir("/", [file]));
  const clients = await Promise.all(
    Array.from({ length: 4 }, (_, i) => connect({ msize: i % 2 ? 1 << 20 : 100_000 })),
  );
  const all = await Promise.all(clients.flatMap((client) => [client.readFile("f"), client.readFile("f")]));
  for (const one of all) expect(one.equals(content)).toBe(true);
});
