/** read(5), of files and of directories, on the ramfs. */
import { describe, expect, test } from "bun:test";
import * as m from "../../src/ninep/messages.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { after } from "./conformance.ts";
import { converse } from "./trace.ts";
import { Wire } from "./wire.ts";

describe("read and write", () => {
  test("in pieces, to the end and beyond it", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode 2
      Ropen qid 0.1.1 iounit 8168
      Tread fid 1 offset 0 count 2
      Rread data he
      Tread fid 1 offset 2 count 8192
      Rread data llo
      Tread fid 1 offset 5 count 10
      Rread data ""
      Tread fid 1 offset 18446744073709551615 count 10
      Rread data ""
      Tread fid 1 offset 0 count 0
      Rread data ""
      Twrite fid 1 offset 3 data "p me"
      Rwrite count 4
      Tread fid 1 offset 0 count 4294967295
      Rread data "help me"
      Twrite fid 1 offset 0 data ""
      Rwrite count 0
    `));
  test("a hole reads as zeros; an offset beyond all measure is an error and no allocation", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode 2
      Ropen qid 0.1.1 iounit 8168
      Twrite fid 1 offset 7 data x
      Rwrite count 1
      Tread fid 1 offset 4 count 10
      Rread data "o\\u0000\\u0000x"
      Twrite fid 1 offset 1000000000000 data x
      Rerror ename "No space left on device: a file has at most 268435456 bytes"
      Twrite fid 1 offset 18446744073709551615 data x
      Rerror ename "No space left on device: a file has at most 268435456 bytes"
      Tstat fid 1
      Rstat stat name=hello qid=0.2.1 mode=644 length=8 uid=owner gid=owner muid=owner
    `));
  test("whatever the offset, a file that only grows grows at its end", () =>
    after(`
      Twalk fid 0 newfid 1 wname log
      Rwalk wqid 40.1.6
      Topen fid 1 mode 2
      Ropen qid 40.1.6 iounit 8168
      Twrite fid 1 offset 0 data "two\\n"
      Rwrite count 4
      Twrite fid 1 offset 99999999999999 data "three\\n"
      Rwrite count 6
      Tread fid 1 offset 0 count 100
      Rread data "one\\ntwo\\nthree\\n"
    `));
  test("only through a fid that is open for it", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Tread fid 1 offset 0 count 10
      Rerror ename "Bad file descriptor: the fid is not open"
      Twrite fid 1 offset 0 data x
      Rerror ename "Bad file descriptor: the fid is not open"
      Topen fid 1 mode 1
      Ropen qid 0.1.1 iounit 8168
      Tread fid 1 offset 0 count 10
      Rerror ename "Bad file descriptor: the fid is open for writing only"
      Twalk fid 0 newfid 2 wname hello
      Rwalk wqid 0.1.1
      Topen fid 2 mode 0
      Ropen qid 0.1.1 iounit 8168
      Twrite fid 2 offset 0 data x
      Rerror ename "Bad file descriptor: the fid is open for reading only"
    `));
  test("a reply is never longer than asked for, nor than msize", async () => {
    const root = ramfs();
    root.add("big", 0o644, Buffer.alloc(5000));
    const wire = await new Wire(root).attached(1024);
    await wire.ask({ type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname: ["big"] });
    expect(await wire.ask({ type: m.Topen, tag: 1, fid: 1, mode: 0 })).toMatchObject({ iounit: 1000 });
    const read = (count: number) => wire.ask({ type: m.Tread, tag: 1, fid: 1, offset: 0, count });
    expect(((await read(999)) as m.Message<typeof m.Rread>).data.length).toBe(999);
    expect(((await read(5000)) as m.Message<typeof m.Rread>).data.length).toBe(1024 - 11);
  });
});

describe("directories", () => {
  const sizeOfEntry = 49 + "a".length + 3 * "owner".length;

  test("whole entries only, on from where the last read ended, from the start at offset 0", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname dir
      Rwalk wqid 80.3.2
      Topen fid 1 mode 0
      Ropen qid 80.3.2 iounit 8168
    `);
    const read = async (offset: number, count: number) => {
      const reply = await wire.ask({ type: m.Tread, tag: 1, fid: 1, offset, count });
      return reply.type === m.Rread ? reply.data.length : (reply as m.Message<typeof m.Rerror>).ename;
    };
    expect(await read(0, 8000)).toBe(3 * sizeOfEntry);
    expect(await read(3 * sizeOfEntry, 8000)).toBe(0);
    expect(await read(0, 2 * sizeOfEntry + 1)).toBe(2 * sizeOfEntry);
    // Linux asks with what is left of its buffer: nothing fits, nothing is lost.
    expect(await read(2 * sizeOfEntry, sizeOfEntry - 1)).toBe(0);
    expect(await read(2 * sizeOfEntry, sizeOfEntry)).toBe(sizeOfEntry);
    expect(await read(3 * sizeOfEntry, 8000)).toBe(0);
    expect(await read(sizeOfEntry, 8000)).toBe("bad offset in directory read");
    expect(await read(0, sizeOfEntry)).toBe(sizeOfEntry);
  });
  test("the listing holds still while it is read and is fresh after a rewind", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname dir
      Rwalk wqid 80.3.2
      Topen fid 1 mode 0
      Ropen qid 80.3.2 iounit 8168
    `);
    const read = async (offset: number, count: number) =>
      ((await wire.ask({ type: m.Tread, tag: 1, fid: 1, offset, count })) as m.Message<typeof m.Rread>).data
        .length;
    expect(await read(0, sizeOfEntry)).toBe(sizeOfEntry);
    await converse(
      wire,
      `
      Twalk fid 0 newfid 2 wname dir a
      Rwalk wqid 80.3.2 0.1.3
      Tremove fid 2
      Rremove
    `,
    );
    expect(await read(sizeOfEntry, 8000)).toBe(2 * sizeOfEntry);
    expect(await read(0, 8000)).toBe(2 * sizeOfEntry);
  });
  test("an entry that fits no message is an error, not the end of the listing", async () => {
    const root = ramfs();
    root.add("n".repeat(300), 0o644);
    const wire = await new Wire(root).attached(256);
    await converse(
      wire,
      `
      Topen fid 0 mode 0
      Ropen qid 80.1.0 iounit 232
      Tread fid 0 offset 0 count 200
      Rerror ename "i/o error: the entry ...
      Twalk fid 0 newfid 1
      Rerror ename "Device or resource busy: ...
    `,
    );
  });
});
