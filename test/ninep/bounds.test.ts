/** What one client can cost, however it behaves. */
import { describe, expect, test } from "bun:test";
import { encode } from "../../src/ninep/codec.ts";
import type { OpenFile } from "../../src/ninep/file.ts";
import * as m from "../../src/ninep/messages.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import type { ServerOptions } from "../../src/ninep/server.ts";
import { converse } from "./trace.ts";
import { Blocking, TestDir, TestFile } from "./trees.ts";
import { Wire } from "./wire.ts";

const MiB = 1024 * 1024;
const again = "Resource temporarily unavailable";

async function open(file: OpenFile, options?: ServerOptions, msize = MiB) {
  const wire = await new Wire(new TestDir("/", [new TestFile("f", file)]), options).attached(msize);
  await converse(wire, "Twalk fid 0 newfid 1 wname f\nRwalk wqid ...\nTopen fid 1 mode 2\nRopen qid ...");
  return wire;
}

const read = (tag: number, count = MiB): m.Message => ({ type: m.Tread, tag, fid: 1, offset: 0, count });

describe("a reader that does not take its replies", () => {
  test("is not read from any more, and gets everything in order once it does", async () => {
    let reads = 0;
    const wire = await open({
      read(_offset, count) {
        reads++;
        return Buffer.alloc(count);
      },
    });
    wire.room = 0;
    const asked = 200;
    wire.sendBytes(Buffer.concat(Array.from({ length: asked }, (_, tag) => encode(read(tag)))));
    expect(wire.paused).toBe(true);
    expect(reads).toBeLessThanOrEqual(2);
    let received = 0;
    let frames = 0;
    for (let turns = 0; turns < 20_000 && frames < asked; turns++) {
      wire.drain(300_000);
      for (const reply of await wire.rest()) {
        expect(reply.tag).toBe(frames++);
        received += (reply as m.Message<typeof m.Rread>).data.length;
      }
      expect(reads - frames).toBeLessThanOrEqual(3);
    }
    expect(received).toBe(asked * (MiB - 11));
    wire.drain(300_000);
    expect(wire.paused).toBe(false);
  });

  test("is read from again also when the stream has taken all at once", async () => {
    const event = new Blocking();
    const wire = await open(event, { limits: { unsent: 100 } });
    wire.room = 0;
    wire.send(...Array.from({ length: 30 }, (_, tag) => read(tag, 100)));
    for (let i = 0; i < 10; i++) event.answer("x".repeat(50));
    await Bun.sleep(0);
    wire.send(read(99, 100));
    expect(wire.paused).toBe(true);
    wire.room = Number.POSITIVE_INFINITY;
    event.answer("y");
    await Bun.sleep(0);
    expect(wire.paused).toBe(false);
    expect(event.waiting).toHaveLength(20);
  });

  test("that goes away costs nothing any more", async () => {
    const wire = await open({ read: (_offset, count) => Buffer.alloc(count) });
    wire.room = 0;
    wire.send(read(1), read(2), read(3));
    wire.vanish();
    expect(wire.connection.fids.size).toBe(0);
    wire.drain(MiB);
    expect(await wire.rest()).toEqual([]);
  });
});

describe("limits", () => {
  test("fids: one too many is refused, and one clunked makes room", async () => {
    const wire = await new Wire(ramfs(), { limits: { fids: 3 } }).attached();
    await converse(
      wire,
      `
      Twalk fid 0 newfid 1
      Rwalk wqid
      Twalk fid 0 newfid 2
      Rwalk wqid
      Twalk fid 0 newfid 3
      Rerror ename "${again}: 3 fids are in use, clunk some"
      Tclunk fid 1
      Rclunk
      Twalk fid 0 newfid 3
      Rwalk wqid
    `,
    );
  });

  test("requests: one too many is refused, but they can be called off", async () => {
    const wire = await open(new Blocking(), { limits: { requests: 2 } });
    await converse(
      wire,
      `
      Tread fid 1 offset 0 count 1
      tag 2 Tread fid 1 offset 0 count 1
      tag 3 Tread fid 1 offset 0 count 1
      tag 3 Rerror ename "${again}: 2 requests are waiting on this connection"
      tag 4 Tflush oldtag 1
      Rerror ename "Interrupted system call"
      tag 4 Rflush
      tag 5 Tclunk fid 1
      tag 2 Rerror ename "Interrupted system call"
      tag 5 Rclunk
    `,
    );
  });

  test("reads that run: each gets something, all together a bounded number of bytes", async () => {
    const counts: number[] = [];
    const release: (() => void)[] = [];
    const wire = await open(
      {
        read(_offset, count) {
          counts.push(count);
          return new Promise((resolve) => release.push(() => resolve(Buffer.alloc(count))));
        },
      },
      { limits: { running: 4 * MiB } },
    );
    wire.send(...Array.from({ length: 100 }, (_, tag) => read(tag)));
    expect(Math.min(...counts)).toBe(8192);
    expect(counts.reduce((sum, count) => sum + count)).toBeLessThan(5 * MiB);
    for (const answer of release.splice(0)) answer();
    expect(await wire.rest()).toHaveLength(100);
    // What has been answered counts no more.
    wire.send(read(1));
    expect(counts.at(-1)).toBe(MiB - 11);
  });

  test("reads that fail count no more", async () => {
    const counts: number[] = [];
    const wire = await open(
      {
        read(_offset, count) {
          counts.push(count);
          if (counts.length % 2) throw new Error("at once");
          return Promise.reject(new Error("later"));
        },
      },
      { limits: { running: 2 * MiB } },
    );
    for (let i = 0; i < 20; i++) await wire.ask(read(1) as m.TMessage);
    expect(Math.min(...counts)).toBe(MiB - 11);
  });

  test("writes that wait for another on their fid: too many bytes are refused", async () => {
    const wire = await open({ write: () => new Promise(() => {}) }, { limits: { running: 1000 } });
    const write = (tag: number): m.Message => ({
      type: m.Twrite,
      tag,
      fid: 1,
      offset: 0,
      data: Buffer.alloc(400),
    });
    wire.send(write(1), write(2), write(3), write(4));
    await converse(
      wire,
      `tag 4 Rerror ename "${again}: too many bytes wait to be written on this connection"`,
    );
  });
});

test("10,000 open fids", async () => {
  const root = ramfs();
  root.add("f", 0o644, "content");
  const wire = await new Wire(root).attached();
  const count = 10_000;
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  wire.send(...numbers.map((newfid): m.Message => ({ type: m.Twalk, tag: 1, fid: 0, newfid, wname: ["f"] })));
  wire.send(...numbers.map((fid): m.Message => ({ type: m.Topen, tag: 1, fid, mode: 0 })));
  wire.send(...numbers.map((fid): m.Message => ({ type: m.Tread, tag: 1, fid, offset: 0, count: 9 })));
  const replies = await wire.rest();
  expect(replies.filter((reply) => reply.type === m.Rread)).toHaveLength(count);
  expect(wire.connection.fids.size).toBe(count + 1);
  wire.vanish();
  expect(wire.connection.fids.size).toBe(0);
});
