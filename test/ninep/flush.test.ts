/** Requests side by side, and calling them off: flush(5). */
import { describe, expect, test } from "bun:test";
import * as m from "../../src/ninep/messages.ts";
import { Server } from "../../src/ninep/server.ts";
import { converse } from "./trace.ts";
import { Blocking, TestDir, TestFile } from "./trees.ts";
import { Wire } from "./wire.ts";

/** A connection on which fid 1 is open on a file that blocks. */
async function blocked(opened = new Blocking()) {
  const refused: string[] = [];
  const root = new TestDir("/", [new TestFile("event", opened), new TestFile("other")]);
  const server = new Server(root, {
    limits: { grace: 30 },
    onRefused: (_peer, _path, error) => refused.push(error.message),
  });
  const wire = await new Wire(server).attached();
  await wire.ask({ type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname: ["event"] });
  await wire.ask({ type: m.Topen, tag: 1, fid: 1, mode: 2 });
  return { wire, event: opened, refused };
}

describe("a blocked read", () => {
  test("holds up nobody", async () => {
    const { wire, event } = await blocked();
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      tag 8 Tread fid 1 offset 0 count 100
      Twalk fid 0 newfid 2 wname other
      Rwalk wqid ...
      Tclunk fid 2
      Rclunk
    `,
    );
    event.answer("first");
    event.answer("second");
    await converse(
      wire,
      `
      tag 7 Rread data first
      tag 8 Rread data second
    `,
    );
  });

  test("is ended by Tflush: its error first, then Rflush; the tag is free again", async () => {
    const { wire, event, refused } = await blocked();
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      tag 8 Tflush oldtag 7
      tag 7 Rerror ename "Interrupted system call"
      tag 8 Rflush
      tag 7 Tstat fid 0
      tag 7 Rstat stat ...
    `,
    );
    expect(event.interrupted).toBe(1);
    // The client called it off itself: that is no refusal to remember.
    expect(refused).toEqual([]);
  });

  test("that has its data when the Tflush comes loses none", async () => {
    const kept = Promise.withResolvers<Uint8Array>();
    const { wire } = await blocked({ read: () => kept.promise } as unknown as Blocking);
    await converse(wire, "tag 7 Tread fid 1 offset 0 count 100\ntag 8 Tflush oldtag 7");
    kept.resolve(Buffer.from("event"));
    await converse(wire, "tag 7 Rread data event\ntag 8 Rflush");
  });

  test("of a tree that does not listen is given up; what it says later is not sent", async () => {
    const never = Promise.withResolvers<Uint8Array>();
    const { wire } = await blocked({ read: () => never.promise } as unknown as Blocking);
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      tag 8 Tflush oldtag 7
      tag 7 Rerror ename "Interrupted system call"
      tag 8 Rflush
    `,
    );
    never.resolve(Buffer.from("late"));
    expect(await wire.rest()).toEqual([]);
    expect(wire.connection.outstanding).toBe(0);
  });

  test("is ended by the clunk of its fid, and the file is closed after it", async () => {
    const { wire, event } = await blocked();
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      Tclunk fid 1
      tag 7 Rerror ename "Interrupted system call"
      Rclunk
    `,
    );
    expect(event.closed).toEqual(["clunk"]);
  });

  test("is ended without a reply by Tversion, and the file is closed as dropped", async () => {
    const { wire, event } = await blocked();
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      Tversion msize 8192 version 9P2000
      Rversion msize 8192 version 9P2000
    `,
    );
    expect(event).toMatchObject({ interrupted: 1, closed: ["dropped"] });
    expect(wire.connection.outstanding).toBe(0);
  });

  test("is ended by the loss of the connection, and the file is closed as dropped", async () => {
    const { wire, event, refused } = await blocked();
    wire.send({ type: m.Tread, tag: 7, fid: 1, offset: 0, count: 100 });
    wire.vanish();
    await wire.connection.ended();
    expect(event).toMatchObject({ interrupted: 1, closed: ["dropped"] });
    expect(refused).toEqual([]);
    expect(wire.server.counters.connections).toBe(0);
  });

  test("of a tree that does not listen delays the close, but not for ever", async () => {
    const closed: string[] = [];
    const { wire } = await blocked({
      read: () => new Promise(() => {}),
      close: (reason: string) => closed.push(reason),
    } as unknown as Blocking);
    wire.send({ type: m.Tread, tag: 7, fid: 1, offset: 0, count: 100 });
    wire.vanish();
    expect(closed).toEqual([]);
    await wire.connection.ended();
    expect(closed).toEqual(["dropped"]);
  });
});

describe("Tflush", () => {
  test("of what is not there, of itself and of what is answered succeeds", async () => {
    const { wire } = await blocked();
    await converse(
      wire,
      `
      tag 8 Tflush oldtag 99
      tag 8 Rflush
      tag 8 Tflush oldtag 8
      tag 8 Rflush
      tag 7 Tstat fid 0
      tag 7 Rstat stat ...
      tag 8 Tflush oldtag 7
      tag 8 Rflush
    `,
    );
  });

  test("several for one request, and for each other, are answered in their order after it", async () => {
    const slow = Promise.withResolvers<Uint8Array>();
    const { wire } = await blocked({ read: () => slow.promise } as unknown as Blocking);
    wire.send(
      { type: m.Tread, tag: 7, fid: 1, offset: 0, count: 1 },
      { type: m.Tflush, tag: 8, oldtag: 7 },
      { type: m.Tflush, tag: 9, oldtag: 7 },
      { type: m.Tflush, tag: 10, oldtag: 8 },
    );
    expect(await wire.rest()).toEqual([]);
    slow.resolve(Buffer.from("x"));
    await converse(
      wire,
      `
      tag 7 Rread data x
      tag 8 Rflush
      tag 9 Rflush
      tag 10 Rflush
    `,
    );
    expect(wire.connection.outstanding).toBe(0);
  });

  test("of an open that succeeds too late closes what it opened", async () => {
    const closed: string[] = [];
    const late = Promise.withResolvers<object>();
    const file = new TestFile("event");
    file.open = () => late.promise as never;
    const wire = await new Wire(new TestDir("/", [file]), { limits: { grace: 10 } }).attached();
    await converse(
      wire,
      `
      Twalk fid 0 newfid 1 wname event
      Rwalk wqid ...
      tag 7 Topen fid 1 mode 0
      tag 8 Tflush oldtag 7
      tag 7 Rerror ename "Interrupted system call"
      tag 8 Rflush
    `,
    );
    late.resolve({ close: (reason: string) => closed.push(reason) });
    expect(await wire.rest()).toEqual([]);
    expect(closed).toEqual(["dropped"]);
  });

  test("of a walk makes no fid, and its number is free", async () => {
    const late = Promise.withResolvers<TestFile>();
    const root = new TestDir("/", []);
    root.walk = () => late.promise;
    const wire = await new Wire(root, { limits: { grace: 10 } }).attached();
    await converse(
      wire,
      `
      tag 7 Twalk fid 0 newfid 1 wname a
      tag 9 Twalk fid 0 newfid 1 wname b
      tag 9 Rerror ename "fid already in use"
      tag 8 Tflush oldtag 7
      tag 7 Rerror ename "Interrupted system call"
      tag 8 Rflush
    `,
    );
    late.resolve(new TestFile("a"));
    expect(await wire.rest()).toEqual([]);
    await converse(
      wire,
      'Tstat fid 1\nRerror ename "fid unknown or out of range"\nTwalk fid 0 newfid 1\nRwalk wqid',
    );
  });
});

describe("tags", () => {
  test("one that is in use is refused, and the first request still gets its answer", async () => {
    const { wire, event } = await blocked();
    await converse(
      wire,
      `
      tag 7 Tread fid 1 offset 0 count 100
      tag 7 Tstat fid 0
      tag 7 Rerror ename "duplicate tag"
    `,
    );
    event.answer("still");
    await converse(wire, "tag 7 Rread data still");
  });

  test("what comes together and is answered at once goes out together, within the turn", async () => {
    const { wire } = await blocked();
    const requests = Array.from({ length: 100 }, (_, tag): m.Message => ({ type: m.Tstat, tag, fid: 0 }));
    wire.send(...requests);
    expect(wire.writes).toHaveLength(1);
    expect((await wire.rest()).map((reply) => reply.tag)).toEqual(requests.map((request) => request.tag));
  });

  test("what is answered later but together goes out together", async () => {
    const { wire, event } = await blocked();
    wire.send(
      ...Array.from(
        { length: 100 },
        (_, tag): m.Message => ({ type: m.Tread, tag, fid: 1, offset: 0, count: 9 }),
      ),
    );
    while (event.waiting.length > 0) event.answer("x");
    await Bun.sleep(0);
    expect(wire.writes).toHaveLength(1);
    expect(await wire.rest()).toHaveLength(100);
  });
});
