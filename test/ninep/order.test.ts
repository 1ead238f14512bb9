/** One fid, several requests: writes keep their order, and the end of a fid comes after them. */
import { describe, expect, test } from "bun:test";
import { encode } from "../../src/ninep/codec.ts";
import type { OpenFile } from "../../src/ninep/file.ts";
import * as m from "../../src/ninep/messages.ts";
import { Server } from "../../src/ninep/server.ts";
import { converse } from "./trace.ts";
import { TestDir, TestFile } from "./trees.ts";
import { Wire } from "./wire.ts";

/** A file whose writes take as long as the test wants, and a log of what happened. */
class Writes implements OpenFile {
  readonly log: string[] = [];
  private readonly running: (() => void)[] = [];

  async write(_offset: number, data: Uint8Array): Promise<number> {
    const text = Buffer.from(data).toString();
    this.log.push(`begin ${text}`);
    await new Promise<void>((resolve) => this.running.push(resolve));
    this.log.push(`end ${text}`);
    return data.length;
  }

  close(reason: string): void {
    this.log.push(`close ${reason}`);
  }

  async finish(): Promise<void> {
    while (this.running.length > 0) {
      this.running.shift()!();
      await Bun.sleep(0);
    }
  }
}

async function open(file: OpenFile, limits = {}) {
  const server = new Server(new TestDir("/", [new TestFile("f", file)]), {
    limits: { grace: 30, ...limits },
  });
  const wire = await new Wire(server).attached();
  await converse(wire, "Twalk fid 0 newfid 1 wname f\nRwalk wqid ...\nTopen fid 1 mode 1\nRopen qid ...");
  return wire;
}

const write = (tag: number, text: string): m.Message => ({
  type: m.Twrite,
  tag,
  fid: 1,
  offset: 0,
  data: Buffer.from(text),
});

describe("writes on one fid", () => {
  test("are given to the file one after the other", async () => {
    const file = new Writes();
    const wire = await open(file);
    wire.send(write(1, "a"), write(2, "b"), write(3, "c"));
    await file.finish();
    expect(file.log).toEqual(["begin a", "end a", "begin b", "end b", "begin c", "end c"]);
    expect((await wire.rest()).map((reply) => reply.tag)).toEqual([1, 2, 3]);
  });

  test("keep what they were sent with, however long they wait", async () => {
    const file = new Writes();
    const wire = await open(file);
    const chunk = Buffer.concat([write(1, "first"), write(2, "second")].map(encode));
    wire.sendBytes(chunk);
    chunk.fill(0);
    await file.finish();
    expect(file.log).toContain("begin second");
  });

  test("are done before a clunk that follows at once", async () => {
    const file = new Writes();
    const wire = await open(file);
    wire.send(write(1, "a"), write(2, "b"), { type: m.Tclunk, tag: 3, fid: 1 });
    await file.finish();
    expect(file.log).toEqual(["begin a", "end a", "begin b", "end b", "close clunk"]);
    expect((await wire.rest()).map((reply) => reply.type)).toEqual([m.Rwrite, m.Rwrite, m.Rclunk]);
  });

  test("that are called off while they wait never happen", async () => {
    const file = new Writes();
    const wire = await open(file);
    wire.send(write(1, "a"), write(2, "b"), { type: m.Tflush, tag: 3, oldtag: 2 });
    await file.finish();
    expect(file.log).toEqual(["begin a", "end a"]);
    await converse(wire, 'Rwrite count 1\ntag 2 Rerror ename "Interrupted system call"\ntag 3 Rflush');
  });

  test("that wait when the connection is lost never happen", async () => {
    const file = new Writes();
    const wire = await open(file);
    wire.send(write(1, "a"), write(2, "b"));
    wire.vanish();
    await file.finish();
    await wire.connection.ended();
    expect(file.log).toEqual(["begin a", "end a", "close dropped"]);
  });

  test("one that fails does not stop the next", async () => {
    const texts: string[] = [];
    const wire = await open({
      write: async (_offset, data) => {
        texts.push(Buffer.from(data).toString());
        if (texts.length === 1) throw new Error("disk on fire");
        return data.length;
      },
    });
    wire.send(write(1, "a"), write(2, "b"));
    await converse(wire, 'Rerror ename "i/o error: disk on fire"\ntag 2 Rwrite count 1');
    expect(texts).toEqual(["a", "b"]);
  });

  test("a file that takes nothing is in error, for clients that would try for ever", async () => {
    const wire = await open({ write: () => 0 });
    wire.send(write(1, "a"));
    await converse(wire, 'Rerror ename "i/o error: nothing was written"');
  });
});

describe("a close that fails", () => {
  test("fails the clunk, and the fid is gone", async () => {
    const wire = await open({
      close() {
        throw new Error("disk full");
      },
    });
    await converse(
      wire,
      `
      Tclunk fid 1
      Rerror ename "i/o error: disk full"
      Tclunk fid 1
      Rerror ename "fid unknown or out of range"
    `,
    );
  });
});
