/** The client, against our server and against servers that behave badly. */
import { afterEach, describe, expect, test } from "bun:test";
import { Client } from "../../src/ninep/client.ts";
import { DMAPPEND, DMDIR, type OpenFile, ORDWR, OWRITE } from "../../src/ninep/file.ts";
import * as m from "../../src/ninep/messages.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import type { Server } from "../../src/ninep/server.ts";
import { greet, Scripted } from "./scripted.ts";
import { cleanUp, serve } from "./serve.ts";
import { Blocking, TestDir, TestFile } from "./trees.ts";

afterEach(cleanUp);

const message = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: Error) => error.message,
  );

describe("files", () => {
  test("are made, written, read, listed, renamed, changed and removed", async () => {
    const { connect, server } = await serve(ramfs());
    const client = await connect();
    await client.mkdir("dir");
    await (await client.create("dir/file", 0o644, OWRITE)).clunk();
    await client.writeFile("dir/file", "content");
    await client.appendFile("dir/file", ", more");
    expect(await client.readText("dir/file")).toBe("content, more");
    await client.writeFile("/dir/./file", "new");
    expect(await client.readText("dir/file")).toBe("new");
    await client.rename("dir/file", "name");
    expect((await client.readDir("dir")).map(({ name, length }) => [name, length])).toEqual([["name", 3]]);
    await client.wstat("dir/name", { mode: 0o600, mtime: 1_700_000_000 });
    expect(await client.stat("dir/name")).toMatchObject({ mode: 0o600, mtime: 1_700_000_000 });
    await client.remove("dir/name");
    expect(await client.readDir("dir")).toEqual([]);
    expect(await message(client.stat("dir/name"))).toBe("file does not exist: /dir/name");
    await client.remove("dir");
    // All fids but that of the root have been given back.
    expect(fidsOf(server)).toBe(1);
  });

  test.each([0, 1, 100, 8168, 8169, 5_000_000])("of %d bytes come back as they were sent", async (length) => {
    const root = ramfs();
    root.add("f", 0o644);
    const { connect } = await serve(root);
    const client = await connect({ msize: 8192 });
    const content = Buffer.alloc(length, "0123456789abcdef\0\xff", "latin1");
    await client.writeFile("f", content);
    expect((await client.readFile("f")).equals(content)).toBe(true);
    const large = await connect();
    expect((await large.readFile("f")).equals(content)).toBe(true);
  });

  test("many names deep", async () => {
    const root = ramfs();
    let directory = root;
    const path = Array.from({ length: 40 }, (_, i) => `level${i}`);
    for (const name of path) directory = directory.add(name, (DMDIR | 0o755) >>> 0);
    directory.add("f", 0o644, "deep");
    const { connect, server } = await serve(root);
    const client = await connect();
    expect(await client.readText([...path, "f"].join("/"))).toBe("deep");
    expect(await message(client.readText([...path, "g"].join("/")))).toStartWith(
      "file does not exist: /level0/",
    );
    expect(await message(client.readText([...path.slice(0, 20), "none", "f"].join("/")))).toContain(
      "file does not exist",
    );
    expect(fidsOf(server)).toBe(1);
  });

  test("a walk that fails on its way says why, in the server's words", async () => {
    const sub = new TestDir("sub", []);
    sub.walk = () => {
      throw new Error("the disk is asleep");
    };
    const { connect, server } = await serve(new TestDir("/", [sub]));
    const client = await connect();
    expect(await message(client.stat("sub/x/y"))).toBe("i/o error: the disk is asleep");
    expect(fidsOf(server)).toBe(1);
  });

  test("a directory of thousands, in many messages", async () => {
    const root = ramfs();
    const names = Array.from({ length: 3000 }, (_, i) => `file${i}`);
    for (const name of names) root.add(name, 0o644);
    const { connect } = await serve(root);
    const client = await connect({ msize: 4096 });
    expect((await client.readDir("")).map((entry) => entry.name)).toEqual(names);
  });

  test("a failed close fails writeFile, and its fid is free", async () => {
    const file = new TestFile("prompt", {
      write: (_offset, data) => data.length,
      close() {
        throw new Error("nobody listens");
      },
    });
    const { connect, server } = await serve(new TestDir("/", [file]));
    const client = await connect();
    expect(await message(client.writeFile("prompt", "hello"))).toBe("i/o error: nobody listens");
    expect(fidsOf(server)).toBe(1);
  });

  test("the error of a write is not hidden by that of the close", async () => {
    const file = new TestFile("ctl", {
      write() {
        throw new Error("unknown command");
      },
      close() {
        throw new Error("nothing was written");
      },
    });
    const { connect } = await serve(new TestDir("/", [file]));
    expect(await message((await connect()).writeFile("ctl", "x"))).toBe("i/o error: unknown command");
  });
});

describe("reading ahead", () => {
  /** Serves `content` and notes which offsets were asked for. */
  function noted(length: number, read: (offset: number, count: number) => Uint8Array | Promise<Uint8Array>) {
    const offsets: number[] = [];
    const opened: OpenFile = {
      read(offset, count) {
        offsets.push(offset);
        return read(offset, count);
      },
    };
    const file = new TestFile("f", opened);
    const stat = file.stat.bind(file);
    file.stat = () => ({ ...(stat() as object), length }) as never;
    return { root: new TestDir("/", [file]), offsets };
  }

  test("happens only within the stated length", async () => {
    const content = Buffer.alloc(100_000, "x");
    const { root, offsets } = noted(content.length, (offset, count) =>
      content.subarray(offset, offset + count),
    );
    const { connect } = await serve(root);
    expect((await (await connect({ msize: 8192 })).readFile("f")).length).toBe(100_000);
    expect(Math.max(...offsets)).toBe(100_000);
    expect(offsets).toHaveLength(Math.ceil(100_000 / 8168) + 1);
  });

  test("ends at a short read: nothing is skipped or read twice", async () => {
    const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i % 251));
    // Every third read gives less than was asked for.
    let reads = 0;
    const { root } = noted(content.length, (offset, count) =>
      content.subarray(offset, offset + (++reads % 3 === 0 ? Math.ceil(count / 2) : count)),
    );
    const { connect } = await serve(root);
    expect((await (await connect({ msize: 4096 })).readFile("f")).equals(content)).toBe(true);
  });

  test("never happens on a file that answers in small pieces, whatever length it states", async () => {
    let running = 0;
    let most = 0;
    const { root } = noted(1_000_000, async (offset) => {
      most = Math.max(most, ++running);
      await Bun.sleep(1);
      running--;
      return Buffer.from(offset < 50 ? "event " : "");
    });
    const { connect } = await serve(root);
    expect(await (await connect()).readText("f")).toBe("event ".repeat(9));
    expect(most).toBe(1);
  });

  test("a stream that is left early closes its file", async () => {
    const closed: string[] = [];
    const file = new TestFile("f", {
      read: (_offset, count) => Buffer.alloc(count),
      close: (reason) => void closed.push(reason),
    });
    const { connect } = await serve(new TestDir("/", [file]));
    const client = await connect({ msize: 4096 });
    for await (const piece of client.readStream("f")) if (piece.length > 0) break;
    expect(closed).toEqual(["clunk"]);
  });
});

describe("an aborted signal", () => {
  async function blocked() {
    const event = new Blocking();
    const { connect, server } = await serve(new TestDir("/", [new TestFile("event", event)]));
    const client = await connect();
    return { client, event, server };
  }

  test("ends a blocked read on the server too", async () => {
    const { client, event } = await blocked();
    const abort = new AbortController();
    const text = message(client.readText("event", abort.signal));
    while (event.waiting.length === 0) await Bun.sleep(1);
    abort.abort();
    expect(await text).toBe("Interrupted system call");
    expect(event.interrupted).toBe(1);
    expect(event.closed).toEqual(["clunk"]);
  });

  test("sends nothing when it was aborted before", async () => {
    const { client, server } = await blocked();
    const before = server.counters.received;
    expect(await message(client.stat("event", AbortSignal.abort()))).toBe("Interrupted system call");
    await client.stat("event");
    expect(server.counters.ops[m.Tflush]).toBe(0);
    expect(server.counters.received).toBeGreaterThan(before);
  });

  test("does not take away an answer that came first", async () => {
    const answer = Promise.withResolvers<Uint8Array>();
    const file = new TestFile("event", { read: () => answer.promise });
    const { connect, server } = await serve(new TestDir("/", [file]));
    const client = await connect();
    const fid = await client.openFile("event");
    const abort = new AbortController();
    const read = fid.read(0, 100, abort.signal);
    await client.stat("event");
    abort.abort();
    while (server.counters.ops[m.Tflush] === 0) await Bun.sleep(1);
    answer.resolve(Buffer.from("data"));
    expect((await read).toString()).toBe("data");
    // The tag is free again only now; many more requests do not get into its way.
    for (let i = 0; i < 10; i++) await client.stat("event");
  });

  test("keeps the tag of the request from being used again before the Rflush", async () => {
    const seen: m.Message[] = [];
    const stream = new Scripted((request) => {
      seen.push(request);
      // The read is answered when its Tflush comes, and the Tflush not at all.
      if (request.type === m.Tflush) return { type: m.Rread, tag: request.oldtag, data: Buffer.from("x") };
      if (request.type === m.Tstat) return { type: m.Rstat, tag: request.tag, stat: m.dontTouch };
      return greet(request);
    });
    const client = await Client.open(stream);
    const abort = new AbortController();
    const read = client.root.read(0, 1, abort.signal);
    abort.abort();
    expect((await read).toString()).toBe("x");
    for (let i = 0; i < 5; i++) await client.root.stat();
    const oldtag = seen.find((request) => request.type === m.Tread)!.tag;
    expect(seen.filter((request) => request.type === m.Tstat).map((request) => request.tag)).not.toContain(
      oldtag,
    );
    client.close();
  });

  test("leaves the connection usable, thousands of times", async () => {
    const { client, event, server } = await blocked();
    const fid = await client.openFile("event", ORDWR);
    for (let i = 0; i < 2000; i++) {
      const abort = new AbortController();
      const read = message(fid.read(0, 10, abort.signal));
      abort.abort();
      expect(await read).toBe("Interrupted system call");
    }
    expect(await client.stat("event")).toMatchObject({ name: "event" });
    expect(server.counters.connections).toBe(1);
    expect(event.waiting.length).toBe(2000);
  });
});

describe("what cannot be sent", () => {
  test("is an error of its own, and the connection lives on", async () => {
    const { connect } = await serve(ramfs());
    const client = await connect({ msize: 512 });
    expect(await message(client.stat("n".repeat(600)))).toContain("does not fit the msize of 512");
    expect(await message(client.stat("a\0b"))).toContain("NUL");
    expect(await message(client.stat("half \ud83d"))).toContain("not valid Unicode");
    expect(await client.stat("")).toMatchObject({ name: "/" });
    // A message that was not sent keeps no tag and no fid.
    for (let i = 0; i < 70_000; i++) await client.stat("a\0b").catch(() => {});
    expect(await client.stat("")).toMatchObject({ name: "/" });
  });
});

describe("a lost connection", () => {
  test("rejects what waits and what comes after it", async () => {
    const { connect, server } = await serve(new TestDir("/", [new TestFile("event", new Blocking())]));
    const client = await connect();
    const fid = await client.openFile("event");
    const read = message(fid.read(0));
    await client.stat("event");
    await server.close();
    expect(await read).toBe("Broken pipe: the connection to the server is closed");
    await client.ended;
    expect(await message(fid.read(0))).toBe("Broken pipe: the connection to the server is closed");
  });

  test("by our own close, too", async () => {
    const { connect } = await serve(ramfs());
    const client = await connect();
    const waiting = message(client.stat(""));
    client.close();
    expect(await waiting).toStartWith("Broken pipe");
    await client.ended;
  });
});

describe("bad servers", () => {
  const greeting = (reply: { msize?: number; version?: string }) => {
    const stream = new Scripted((request) => ({
      type: m.Rversion,
      tag: request.tag,
      msize: 8192,
      version: "9P2000",
      ...reply,
    }));
    return { stream, opened: message(Client.open(stream, { msize: 8192 })) };
  };

  test.each([
    [{ version: "unknown" }, "Protocol error: the server speaks unknown, not 9P2000"],
    [{ msize: 8193 }, "Protocol error: the server wants messages of 8193 bytes, 8192 were offered"],
    [{ msize: 10 }, "Protocol error: the server wants messages of 10 bytes, 8192 were offered"],
  ])("greeting %j is refused, and the stream closed", async (reply, error) => {
    const { stream, opened } = greeting(reply);
    expect(await opened).toBe(error);
    expect(stream.closed).toBe(true);
  });

  test.each<[string, (tag: number) => m.Message | Buffer]>([
    ["to a tag that nobody uses", (tag) => ({ type: m.Rclunk, tag: tag + 1 })],
    ["of the wrong type", (tag) => ({ type: m.Rclunk, tag })],
    ["that is a request", (tag) => ({ type: m.Tclunk, tag, fid: 0 })],
    ["that is cut short", (tag) => Buffer.from([8, 0, 0, 0, m.Rstat, tag, 0, 1])],
    ["that is too large", () => Buffer.from([255, 255, 255, 255, m.Rstat, 0, 0])],
  ])("a reply %s ends the connection and rejects what waits", async (_what, reply) => {
    const stream = new Scripted((request) => greet(request) ?? reply(request.tag));
    const client = await Client.open(stream);
    expect(await message(client.root.stat())).toStartWith("Protocol error");
    await client.ended;
    expect(stream.closed).toBe(true);
  });

  test("one that says nothing is not waited for", async () => {
    const stream = new Scripted(() => undefined);
    expect(await message(Client.open(stream, { patience: 20 }))).toBe(
      "Connection timed out: no answer in 20 ms, is it a 9P server?",
    );
    expect(stream.closed).toBe(true);
  });

  test("more data than asked for is an error", async () => {
    const stream = new Scripted((request) => {
      if (request.type === m.Tread) return { type: m.Rread, tag: request.tag, data: Buffer.alloc(11) };
      return greet(request);
    });
    const client = await Client.open(stream);
    expect(await message(client.root.read(0, 10))).toBe("Protocol error: 11 bytes answer a read of 10");
  });

  test("qids and lengths of 64 bits come through exactly", async () => {
    const path = 0xffff_ffff_ffff_fffen;
    const stat: m.Dir = { ...m.dontTouch, name: "f", qid: { type: 0, vers: 1, path }, length: 2n ** 60n };
    const stream = new Scripted((request) =>
      request.type === m.Tstat ? { type: m.Rstat, tag: request.tag, stat } : greet(request),
    );
    const client = await Client.open(stream);
    expect(await client.root.stat()).toMatchObject({ qid: { path }, length: 2n ** 60n });
  });

  test("an error text that is not UTF-8 is still an error", async () => {
    const stream = new Scripted(
      (request) => greet(request) ?? Buffer.from([11, 0, 0, 0, m.Rerror, request.tag, 0, 2, 0, 0xff, 0x6e]),
    );
    expect(await message((await Client.open(stream)).root.stat())).toBe("\uFFFDn");
  });
});

test("many clients at once, each with many requests at once", async () => {
  const root = ramfs();
  root.add("log", (DMAPPEND | 0o666) >>> 0);
  const { connect, server } = await serve(root);
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect()));
  await Promise.all(
    clients.flatMap((client, i) =>
      Array.from({ length: 20 }, (_, j) => client.appendFile("log", `${i}.${j}\n`)),
    ),
  );
  const lines = (await clients[0]!.readText("log")).trim().split("\n");
  expect(new Set(lines).size).toBe(400);
  for (const client of clients) client.close();
  while (server.counters.connections > 0) await Bun.sleep(1);
});

function fidsOf(server: Server): number {
  const [connection] = server.connections;
  return connection!.fids.size;
}
