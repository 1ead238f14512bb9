/** open(5), create and remove(5), on the ramfs. */
import { describe, test } from "bun:test";
import { after } from "./conformance.ts";
import { converse } from "./trace.ts";
import { TestDir, TestFile } from "./trees.ts";
import { Wire } from "./wire.ts";

describe("open", () => {
  test("checks the owner's bits, and says what cannot be done", () =>
    after(`
      Twalk fid 0 newfid 1 wname readonly
      Rwalk wqid 0.1.7
      Topen fid 1 mode 1
      Rerror ename "permission denied: readonly cannot be written"
      Topen fid 1 mode 2
      Rerror ename "permission denied: readonly cannot be written"
      Topen fid 1 mode 3
      Rerror ename "permission denied: readonly cannot be executed"
      # truncating is writing
      Topen fid 1 mode 10
      Rerror ename "permission denied: readonly cannot be written"
      # ... and after all that the fid can still be opened
      Topen fid 1 mode 0
      Ropen qid 0.1.7 iounit 8168
      Topen fid 1 mode 0
      Rerror ename "Device or resource busy: the fid is open already"
      Twalk fid 0 newfid 2 wname writeonly
      Rwalk wqid 0.1.8
      Topen fid 2 mode 0
      Rerror ename "permission denied: writeonly cannot be read"
      Topen fid 2 mode 11
      Ropen qid 0.2.8 iounit 8168
    `));
  test("directories are for reading only", () =>
    after(`
      Topen fid 0 mode 1
      Rerror ename "Is a directory: / can be opened for reading only"
      Topen fid 0 mode 10
      Rerror ename "Is a directory: ...
      Topen fid 0 mode 40
      Rerror ename "Is a directory: ...
      Topen fid 0 mode 0
      Ropen qid 80.6.0 iounit 8168
    `));
  test("OTRUNC empties a file, but not one that only grows", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode 11
      Ropen qid 0.2.1 iounit 8168
      Tstat fid 1
      Rstat stat name=hello qid=0.2.1 mode=644 length=0 uid=owner gid=owner muid=owner
      Twalk fid 0 newfid 2 wname log
      Rwalk wqid 40.1.6
      Topen fid 2 mode 11
      Ropen qid 40.1.6 iounit 8168
      Tstat fid 2
      Rstat stat name=log qid=40.1.6 mode=10000000644 length=4 uid=owner gid=owner muid=owner
    `));
  test("mode is bits, not an enumeration: OCEXEC and bits of dialects mean nothing here", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode a0
      Ropen qid 0.1.1 iounit 8168
    `));
  test("ORCLOSE removes at the clunk, if the directory may be changed", () =>
    after(`
      Twalk fid 0 newfid 1 wname dir a
      Rwalk wqid 80.3.2 0.1.3
      Topen fid 1 mode 40
      Ropen qid 0.1.3 iounit 8168
      Tclunk fid 1
      Rclunk
      Twalk fid 0 newfid 1 wname dir a
      Rwalk wqid 80.4.2
      Twalk fid 0 newfid 2 wname closed fixed
      Rwalk wqid 80.1.9 0.0.10
      Topen fid 2 mode 40
      Rerror ename "permission denied: in closed, which is read-only, nothing can be removed when closed"
    `));
  test("ORCLOSE also acts when the connection is lost", async () => {
    const wire = await after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode 40
      Ropen qid 0.1.1 iounit 8168
    `);
    wire.vanish();
    const second = await new Wire(wire.server).attached();
    await converse(
      second,
      `
      Twalk fid 0 newfid 1 wname hello
      Rerror ename "file does not exist: /hello"
    `,
    );
  });
  test("an exclusive file is open once, and free again after the clunk and the loss of the connection", async () => {
    const wire = await after(`
      Tcreate fid 0 name lock perm 4000000666 mode 2
      Rcreate qid 20.0.11 iounit 8168
    `);
    const second = await new Wire(wire.server).attached();
    await converse(
      second,
      `
      Twalk fid 0 newfid 1 wname lock
      Rwalk wqid 20.0.11
      Topen fid 1 mode 0
      Rerror ename "exclusive use file already open"
    `,
    );
    await converse(
      wire,
      `
      Tclunk fid 0
      Rclunk
    `,
    );
    await converse(
      second,
      `
      Topen fid 1 mode 0
      Ropen qid 20.0.11 iounit 8168
    `,
    );
    second.vanish();
    const third = await new Wire(wire.server).attached();
    await converse(
      third,
      `
      Twalk fid 0 newfid 1 wname lock
      Rwalk wqid 20.0.11
      Topen fid 1 mode 0
      Ropen qid 20.0.11 iounit 8168
    `,
    );
  });
});

test("an exclusive file that could not be opened is not taken", async () => {
  const file = new TestFile("lock", {}, 0x2000_0000 | 0o666);
  let attempts = 0;
  file.open = () => {
    if (attempts++ === 0) throw new Error("not yet");
    return {};
  };
  await converse(
    await new Wire(new TestDir("/", [file])).attached(),
    `
      Twalk fid 0 newfid 1 wname lock
      Rwalk wqid ...
      Topen fid 1 mode 0
      Rerror ename "i/o error: not yet"
      Topen fid 1 mode 0
      Ropen qid ...
    `,
  );
});

describe("create", () => {
  test("makes a file with the permissions that the directory allows, and opens it", () =>
    after(`
      Twalk fid 0 newfid 1 wname dir
      Rwalk wqid 80.3.2
      Tcreate fid 1 name new perm 666 mode 1
      Rcreate qid 0.0.11 iounit 8168
      Twrite fid 1 offset 0 data abc
      Rwrite count 3
      Tstat fid 1
      Rstat stat name=new qid=0.1.11 mode=644 length=3 uid=owner gid=owner muid=owner
      Twalk fid 0 newfid 2 wname dir
      Rwalk wqid 80.4.2
      Tcreate fid 2 name sub perm 20000000777 mode 0
      Rcreate qid 80.0.12 iounit 8168
      Tstat fid 2
      Rstat stat name=sub qid=80.0.12 mode=20000000755 length=0 uid=owner gid=owner muid=owner
    `));
  test("what is there, what is no name, and where nothing can be made", () =>
    after(`
      Tcreate fid 0 name hello perm 644 mode 0
      Rerror ename "file already exists"
      Tcreate fid 0 name . perm 644 mode 0
      Rerror ename "Invalid argument: \\".\\" is no file name"
      Tcreate fid 0 name .. perm 644 mode 0
      Rerror ename "Invalid argument: \\"..\\" is no file name"
      Tcreate fid 0 name a/b perm 644 mode 0
      Rerror ename "Invalid argument: \\"a/b\\" is no file name"
      Tcreate fid 0 name sub perm 20000000777 mode 1
      Rerror ename "Is a directory: a directory can be opened for reading only"
      # a symbolic link of 9P2000.u
      Tcreate fid 0 name link perm 200000777 mode 0
      Rerror ename "Invalid argument: 9P2000 has no mode bit 0x2000000"
      Twalk fid 0 newfid 1 wname closed
      Rwalk wqid 80.1.9
      Tcreate fid 1 name new perm 644 mode 0
      Rerror ename "permission denied: closed is read-only"
      Twalk fid 0 newfid 2 wname hello
      Rwalk wqid 0.1.1
      Tcreate fid 2 name new perm 644 mode 0
      Rerror ename "not a directory: /hello"
    `));
});

describe("remove and clunk", () => {
  test("a removed file is gone, its fid too, and its qid is not given again", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Tremove fid 1
      Rremove
      Tstat fid 1
      Rerror ename "fid unknown or out of range"
      Twalk fid 0 newfid 1 wname hello
      Rerror ename "file does not exist: /hello"
      Tcreate fid 0 name hello perm 644 mode 0
      Rcreate qid 0.0.11 iounit 8168
    `));
  test("a remove that fails ends the fid all the same", () =>
    after(`
      Twalk fid 0 newfid 1 wname dir
      Rwalk wqid 80.3.2
      Tremove fid 1
      Rerror ename "directory is not empty"
      Tstat fid 1
      Rerror ename "fid unknown or out of range"
      Twalk fid 0 newfid 1 wname closed fixed
      Rwalk wqid 80.1.9 0.0.10
      Tremove fid 1
      Rerror ename "permission denied: in closed, which is read-only, nothing can be removed"
      Tremove fid 0
      Rerror ename "permission denied: the root cannot be removed"
      Tremove fid 0
      Rerror ename "fid unknown or out of range"
    `));
  test("what is open lives on when it is removed", () =>
    after(`
      Twalk fid 0 newfid 1 wname hello
      Rwalk wqid 0.1.1
      Topen fid 1 mode 0
      Ropen qid 0.1.1 iounit 8168
      Twalk fid 0 newfid 2 wname hello
      Rwalk wqid 0.1.1
      Tremove fid 2
      Rremove
      Tread fid 1 offset 0 count 10
      Rread data hello
      Tclunk fid 1
      Rclunk
      Tclunk fid 1
      Rerror ename "fid unknown or out of range"
    `));
});
