/** stat(5), on the ramfs. */
import { describe, test } from "bun:test";
import * as m from "../../src/ninep/messages.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { after, frame } from "./conformance.ts";
import { converse } from "./trace.ts";
import { Wire } from "./wire.ts";

describe("stat and wstat", () => {
  const hello = `
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1`;

  test("the root, a directory and a file", () =>
    after(`
      Tstat fid 0
      Rstat stat name=/ qid=80.6.0 mode=20000000777 length=0 uid=owner gid=owner muid=owner
      ${hello}
      Tstat fid 1
      Rstat stat name=hello qid=0.1.1 mode=644 length=5 uid=owner gid=owner muid=owner
    `));
  test("a stat that does not fit msize is an error", async () => {
    const name = "n".repeat(200);
    const root = ramfs();
    root.add(name, 0o644);
    await converse(
      await new Wire(root).attached(256),
      `
      Twalk fid 0 newfid 1 wname ${name}
      Rwalk wqid 0.0.1
      Tstat fid 1
      Rerror ename "i/o error: the reply does not fit the msize of 256"
    `,
    );
  });
  test("all don't touch is fsync and succeeds, also where nothing can be changed", () =>
    after(`
      Twalk fid 0 newfid 1 wname closed fixed
      Rwalk wqid 80.1.9 0.0.10
      Twstat fid 1 stat
      Rwstat
      Twstat fid 0 stat
      Rwstat
    `));
  test("length 0 with times, as shells send it for >", () =>
    after(`
      ${hello}
      Twstat fid 1 stat length=0 mtime=1700000000
      Rwstat
      Tstat fid 1
      Rstat stat name=hello qid=0.2.1 mode=644 length=0 uid=owner gid=owner muid=owner
      Twalk fid 0 newfid 2 wname readonly
      Rwalk wqid 0.1.7
      Twstat fid 2 stat length=0
      Rerror ename "permission denied: readonly cannot be written"
      Twstat fid 0 stat length=0
      Rwstat
      Twalk fid 0 newfid 3 wname log
      Rwalk wqid 40.1.6
      Twstat fid 3 stat length=0 mtime=1700000000
      Rwstat
      Tstat fid 3
      Rstat stat name=log qid=40.1.6 mode=10000000644 length=4 uid=owner gid=owner muid=owner
      Twstat fid 3 stat mode=10000000444
      Rwstat
      Twstat fid 3 stat length=0
      Rerror ename "permission denied: log cannot be written"
      Twstat fid 0 stat length=1
      Rerror ename "Is a directory: / has no length"
    `));
  test("rename, also with the muid that Linux sends along", () =>
    after(`
      ${hello}
      Twstat fid 1 stat name=goodbye muid=glenda
      Rwstat
      Tstat fid 1
      Rstat stat name=goodbye qid=0.1.1 mode=644 length=5 uid=owner gid=owner muid=owner
      Twstat fid 1 stat name=dir
      Rerror ename "file already exists"
      Twstat fid 1 stat name=goodbye
      Rwstat
      Twstat fid 1 stat name=a/b
      Rerror ename "Invalid argument: \\"a/b\\" is no file name"
      Twstat fid 0 stat name=x
      Rerror ename "permission denied: the root cannot be renamed"
      Twalk fid 0 newfid 2 wname closed fixed
      Rwalk wqid 80.1.9 0.0.10
      Twstat fid 2 stat name=loose
      Rerror ename "permission denied: in closed, which is read-only, nothing can be renamed"
    `));
  test("owners stay: equal ones pass, others do not", () =>
    after(`
      ${hello}
      Twstat fid 1 stat uid=owner gid=owner muid=owner
      Rwstat
      Twstat fid 1 stat uid=glenda
      Rwstat
      Twstat fid 1 stat uid=rob
      Rerror ename "Operation not permitted: the owner cannot be changed"
      Twstat fid 1 stat gid=rob
      Rerror ename "Operation not permitted: the group cannot be changed"
      Twstat fid 1 stat muid=rob
      Rerror ename "Operation not permitted: the last writer cannot be changed"
    `));
  test("mode without the directory bit; type and dev are nobody's business", () =>
    after(`
      ${hello}
      Twstat fid 1 stat mode=600 type=77 dev=4
      Rwstat
      Tstat fid 1
      Rstat stat name=hello qid=0.1.1 mode=600 length=5 uid=owner gid=owner muid=owner
      Twstat fid 1 stat mode=20000000600
      Rerror ename "Operation not permitted: being a directory or not cannot be changed"
      Twstat fid 1 stat mode=4600
      Rerror ename "Invalid argument: 9P2000 has no mode bit 0x800"
    `));
  test("all or nothing", () =>
    after(`
      ${hello}
      Twstat fid 1 stat name=dir length=0 mode=600
      Rerror ename "file already exists"
      Twstat fid 1 stat length=99999999999999 mode=600
      Rerror ename "No space left on device: ...
      Tstat fid 1
      Rstat stat name=hello qid=0.1.1 mode=644 length=5 uid=owner gid=owner muid=owner
    `));
  test("sizes that contradict each other are refused", async () => {
    const wire = await after(hello);
    wire.sendBytes(frame(m.Twstat, Buffer.from([1, 0, 0, 0, 5, 0, 1, 0])));
    await converse(wire, `Rerror ename "Protocol error: a stat runs past the end of the message"`);
  });
});
