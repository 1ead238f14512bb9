/**
 * What two other clients make of everyday shell commands, message by message, as it was seen on the wire: plan9port's 9pfuse and the 9p
 * client of the Linux kernel.
 */
import { expect } from "bun:test";
import { Wire } from "./namespace-wire.ts";
import { refusal } from "./namespace-world.ts";

const [OREAD, OWRITE, OTRUNC] = [0, 1, 0x10];
const now = () => Math.floor(Date.now() / 1000);
const split = (path: string) => path.split("/");

/** A mount: commands of a shell, each as the messages it becomes. */
export interface Mount {
  wire: Wire;
  /** `echo text > path` */
  overwrite(path: string, text: string): Promise<void>;
  /** `echo text >> path` */
  append(path: string, text: string): Promise<void>;
  /** `cat path` */
  cat(path: string): Promise<string>;
  /** `mv from name` within the folder */
  mv(from: string, name: string): Promise<void>;
}

/** Reads until a message is empty, each at the offset where the last one ended. */
async function readAll(wire: Wire, fid: number, count: number): Promise<Buffer> {
  let all = Buffer.alloc(0);
  for (let more = await wire.read(fid, 0, count); more.length > 0; ) {
    all = Buffer.concat([all, more]);
    more = await wire.read(fid, all.length, count);
  }
  return all;
}

/** Writes a text as one write(2) is cut. */
async function writeAll(wire: Wire, fid: number, offset: number, text: string, count: number): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += count)
    await wire.write(fid, offset + at, bytes.subarray(at, at + count));
}

/** Walks one name a message, as a kernel looks names up, and returns the fid of the last. */
class Lookup {
  #next = 1;

  constructor(readonly wire: Wire) {}

  fid(): number {
    return this.#next++;
  }

  async path(path: string): Promise<number> {
    let fid = 0;
    for (const name of split(path)) {
      const to = this.fid();
      await this.wire.walk(fid, to, name);
      fid = to;
    }
    return fid;
  }

  async clone(fid: number): Promise<number> {
    const to = this.fid();
    await this.wire.walk(fid, to);
    return to;
  }
}

/** plan9port's 9pfuse: opens without OTRUNC, truncates through the fid of the name, asks for the length before it appends. */
export async function fuse(address: string): Promise<Mount> {
  const wire = await Wire.attach(address, 8192);
  const lookup = new Lookup(wire);
  const write = async (path: string, text: string, truncate: boolean) => {
    const node = await lookup.path(path);
    await wire.stat(node);
    const fid = await lookup.clone(node);
    await wire.open(fid, OWRITE);
    if (truncate) await wire.wstat(node, { length: 0n });
    // What a page holds is one message.
    await writeAll(wire, fid, truncate ? 0 : (await wire.stat(node)).length, text, 4096);
    await wire.clunk(fid);
    await wire.clunk(node);
  };
  return {
    wire,
    overwrite: (path, text) => write(path, text, true),
    append: (path, text) => write(path, text, false),
    async cat(path) {
      const node = await lookup.path(path);
      await wire.stat(node);
      const fid = await lookup.clone(node);
      await wire.open(fid, OREAD);
      const text = (await readAll(wire, fid, 4096)).toString();
      await wire.clunk(fid);
      await wire.clunk(node);
      return text;
    },
    async mv(from, name) {
      const node = await lookup.path(from);
      await wire.stat(node);
      await wire.wstat(node, { name });
      await wire.clunk(node);
    },
  };
}

/** Linux v9fs with cache=none: truncates with the open and again with the time, sends its user's name as muid, reads 0 to be sure. */
export async function v9fs(address: string): Promise<Mount> {
  const wire = await Wire.attach(address, 8192, "root");
  const lookup = new Lookup(wire);
  return {
    wire,
    async overwrite(path, text) {
      const fid = await lookup.clone(await lookup.path(path));
      await wire.open(fid, OWRITE | OTRUNC);
      await wire.wstat(fid, { length: 0n, mtime: now() });
      await writeAll(wire, fid, 0, text, 8168);
      await wire.clunk(fid);
    },
    async append(path, text) {
      const node = await lookup.path(path);
      const { length } = await wire.stat(node);
      const fid = await lookup.clone(node);
      await wire.open(fid, OWRITE);
      // For a file of length 0 it was seen to use what it remembered from earlier writes.
      await wire.write(fid, length === 0 && !path.endsWith("plan") ? 52 : length, text);
      await wire.clunk(fid);
    },
    async cat(path) {
      const fid = await lookup.clone(await lookup.path(path));
      await wire.open(fid, OREAD);
      const text = await readAll(wire, fid, 8168);
      expect((await wire.read(fid, text.length, 8168)).length).toBe(0);
      await wire.clunk(fid);
      return text.toString();
    },
    async mv(from, name) {
      const parent = await lookup.path(split(from).slice(0, -1).join("/"));
      // The new name must not be there.
      expect(await refusal(wire.walk(parent, lookup.fid(), name))).toStartWith("file does not exist");
      const node = await lookup.path(from);
      await wire.wstat(node, { name, muid: "root" });
      await wire.clunk(node);
    },
  };
}
