/** version(5), attach(5), walk(5) and what is no message, on the ramfs. */
import { describe, expect, test } from "bun:test";
import * as m from "../../src/ninep/messages.ts";
import { after, frame, tree } from "./conformance.ts";
import { converse } from "./trace.ts";
import { Wire } from "./wire.ts";

describe("version", () => {
  const fresh = (trace: string) => converse(new Wire(tree()), trace);

  test("the smaller msize counts, also one far beyond ours", () =>
    fresh(`
      Tversion msize 8192 version 9P2000
      Rversion msize 8192 version 9P2000
      Tversion msize 1073741824 version 9P2000
      Rversion msize 1048576 version 9P2000
    `));
  test("dialects are answered with the base, foreign versions with unknown", () =>
    fresh(`
      Tversion msize 8192 version 9P2000.L
      Rversion msize 8192 version 9P2000
      Tversion msize 8192 version 9P2000.u
      Rversion msize 8192 version 9P2000
      Tversion msize 8192 version 9P1999
      Rversion msize 8192 version unknown
      Tattach fid 0 afid NOFID uname glenda aname ""
      Rerror ename "Protocol error: a connection begins with Tversion"
    `));
  test("an msize that holds no error text is refused", () =>
    fresh(`
      Tversion msize 255 version 9P2000
      Rerror ename "Invalid argument: ...
      Tversion msize 256 version 9P2000
      Rversion msize 256 version 9P2000
    `));
  test("nothing comes before it", () =>
    fresh(`
      Tattach fid 0 afid NOFID uname glenda aname ""
      Rerror ename "Protocol error: a connection begins with Tversion"
    `));
  test("a second one ends all fids", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Tversion msize 8192 version 9P2000
      Rversion msize 8192 version 9P2000
      Tstat fid 1
      Rerror ename "fid unknown or out of range"
      Tattach fid 0 afid NOFID uname glenda aname ""
      Rattach qid 80.6.0
    `);
    expect(wire.connection.fids.size).toBe(1);
  });
});

describe("auth and attach", () => {
  test("no authentication: Tauth fails and leaves the afid free", () =>
    after(`
      Tauth afid 7 uname glenda aname ""
      Rerror ename "Function not implemented: no authentication is needed"
      Tattach fid 7 afid NOFID uname glenda aname ""
      Rattach qid 80.6.0
      Tattach fid 8 afid 9 uname glenda aname ""
      Rerror ename "fid unknown or out of range: ...
    `));
  test("several attaches, but not on one fid, and not of another tree", () =>
    after(`
      Tattach fid 1 afid NOFID uname rob aname /
      Rattach qid 80.6.0
      Tattach fid 1 afid NOFID uname rob aname ""
      Rerror ename "fid already in use"
      Tattach fid 2 afid NOFID uname rob aname other
      Rerror ename "file does not exist: no tree is named other, leave the aname empty"
      Tattach fid 2 afid NOFID uname rob aname ""
      Rattach qid 80.6.0
    `));
});

describe("walk", () => {
  test("clones, goes down, and up again; the root is its own parent", () =>
    after(`
      Twalk fid 0 newfid 1
      Rwalk wqid
      Twalk fid 1 newfid 2 wname dir a
      Rwalk wqid 80.3.2 0.1.3
      Twalk fid 2 newfid 3 wname ..
      Rerror ename "not a directory: /dir/a"
      Twalk fid 0 newfid 3 wname dir .. .. dir b
      Rwalk wqid 80.3.2 80.6.0 80.6.0 80.3.2 0.1.4
    `));
  test("an error if the first name fails, a short reply if a later one does, and then no newfid", () =>
    after(`
      Twalk fid 0 newfid 1 wname nothing
      Rerror ename "file does not exist: /nothing"
      Twalk fid 0 newfid 1 wname dir nothing a
      Rwalk wqid 80.3.2
      Tstat fid 1
      Rerror ename "fid unknown or out of range"
      Twalk fid 0 newfid 1 wname hello below
      Rwalk wqid 0.1.1
      Twalk fid 0 newfid 1 wname dir
      Rwalk wqid 80.3.2
      # a fid that walks itself stays where it is when it cannot
      Twalk fid 1 newfid 1 wname a nothing
      Rwalk wqid 0.1.3
      Twalk fid 1 newfid 1 wname a
      Rwalk wqid 0.1.3
    `));
  test("newfid must be free, the fid known and not open", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Twalk fid 0 newfid 1 wname dir
      Rerror ename "fid already in use"
      Twalk fid 9 newfid 2
      Rerror ename "fid unknown or out of range"
      Twalk fid 0 newfid NOFID
      Rerror ename "fid already in use"
      Topen fid 1 mode 0
      Ropen qid 0.1.1 iounit 8168
      Twalk fid 1 newfid 2
      Rerror ename "Device or resource busy: ...
    `));
  test("sixteen names are the most, and the connection survives more", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname . . . . . . . . . . . . . . . dir
      Rwalk wqid 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.6.0 80.3.2
    `);
    const names = Buffer.concat(Array.from({ length: 17 }, () => Buffer.from([1, 0, 46])));
    wire.sendBytes(frame(m.Twalk, Buffer.from([0, 0, 0, 0, 2, 0, 0, 0, 17, 0]), names));
    await converse(
      wire,
      `
      Rerror ename "Protocol error: a walk of 17 names, at most 16 are allowed"
      Tstat fid 1
      Rstat stat name=dir qid=80.3.2 mode=20000000755 length=0 uid=owner gid=owner muid=owner
    `,
    );
  });
  test("names are UTF-8, never empty, without slash or NUL", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname dir/a
      Rerror ename "Invalid argument: \\"dir/a\\" is no file name"
      Twalk fid 0 newfid 1 wname ""
      Rerror ename "Invalid argument: \\"\\" is no file name"
    `);
    for (const [bytes, complaint] of [
      [[0xff, 0xfe], "a string is not valid UTF-8"],
      [[0xc0, 0xaf], "a string is not valid UTF-8"],
      [[0x61, 0], "a string contains NUL"],
    ] as const) {
      wire.sendBytes(frame(m.Twalk, Buffer.from([0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0, ...bytes])));
      await converse(wire, `Rerror ename "Protocol error: ${complaint}"`);
    }
  });
});

describe("messages that are none", () => {
  test("a T that does not exist, an R, a cut and an overlong one: an error, and on", async () => {
    const wire = await after("");
    wire.sendBytes(frame(98, Buffer.alloc(4)));
    wire.sendBytes(frame(m.Rclunk));
    wire.sendBytes(frame(m.Tread, Buffer.alloc(15)));
    wire.sendBytes(frame(m.Tclunk, Buffer.alloc(5)));
    wire.sendBytes(frame(m.Twrite, Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255])));
    await converse(
      wire,
      `
      Rerror ename "Protocol error: message type 98 is not one of 9P2000"
      Rerror ename "Protocol error: type 121 is no request"
      Rerror ename "Protocol error: a field runs past the end of the message"
      Rerror ename "Protocol error: 1 bytes too many in the message"
      Rerror ename "Protocol error: a field runs past the end of the message"
      Tstat fid 0
      Rstat stat name=/ ...
    `,
    );
  });
  test("NOTAG is for Tversion", async () => {
    const wire = await after("");
    wire.send({ type: m.Tstat, tag: m.NOTAG, fid: 0 });
    expect(await wire.next()).toMatchObject({ type: m.Rerror, tag: m.NOTAG });
  });
  test.each([0, 6, 8193, 0xffff_ffff])("a frame of %d bytes ends the connection", async (size) => {
    const reasons: string[] = [];
    const wire = await new Wire(tree(), {
      onBadFrame: (_peer, error) => reasons.push(error.message),
    }).attached();
    const bytes = Buffer.alloc(11);
    bytes.writeUInt32LE(size);
    wire.sendBytes(bytes);
    expect(wire.ended).toBe(true);
    expect(reasons).toHaveLength(1);
    expect(wire.connection.fids.size).toBe(0);
    expect(wire.server.counters.connections).toBe(0);
  });
});
