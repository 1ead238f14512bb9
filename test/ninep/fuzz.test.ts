/** Clients that are broken or hostile: the connection answers or closes, nothing leaks, and the next client is served. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { encode } from "../../src/ninep/codec.ts";
import { DMAPPEND, DMDIR, type File, type OpenFile, type Request } from "../../src/ninep/file.ts";
import * as m from "../../src/ninep/messages.ts";
import { ramfs } from "../../src/ninep/ramfs.ts";
import { Server } from "../../src/ninep/server.ts";
import { message, request } from "./arbitrary.ts";
import { Blocking, Slow } from "./trees.ts";
import { Wire } from "./wire.ts";

/** A tree that counts what is open in it, and has a file that blocks. */
function counted() {
  let open = 0;
  const root = ramfs({ maxLength: 10_000 });
  root.add("hello", 0o644, "hello");
  root.add("dir", (DMDIR | 0o755) >>> 0).add("a", 0o644, "a");
  root.add("log", (DMAPPEND | 0o644) >>> 0, "one\n");
  root.add("blocked", 0o644);
  const watch = (file: OpenFile): OpenFile => {
    open++;
    return Object.assign(Object.create(file), { close: () => void open-- });
  };
  class Counted implements File {
    constructor(private readonly file: ReturnType<typeof ramfs>) {}
    get qid() {
      return this.file.qid;
    }
    stat() {
      return this.file.stat();
    }
    walk(name: string) {
      const found = this.file.walk(name);
      return found && new Counted(found);
    }
    parent() {
      const parent = this.file.parent();
      return parent && new Counted(parent);
    }
    open(mode: number) {
      return watch(this.stat().name === "blocked" ? new Blocking() : this.file.open(mode));
    }
    create(name: string, perm: number, mode: number) {
      const made = this.file.create(name, perm, mode);
      return { file: new Counted(made.file), open: watch(made.open) };
    }
    remove(_request: Request) {
      this.file.remove();
    }
    wstat(change: object) {
      this.file.wstat(change);
    }
  }
  return { root: new Counted(root), open: () => open };
}

/** The client goes; afterwards nothing of it is left, and another one is served. */
async function leavesNothing(wire: Wire, tree: { open(): number }): Promise<void> {
  if (!wire.ended) wire.vanish();
  await wire.connection.ended();
  // An open that was under way when the client went is closed when it is done.
  for (let turn = 0; turn < 10 && tree.open() > 0; turn++) await Bun.sleep(1);
  expect(wire.connection.fids.size).toBe(0);
  expect(wire.connection.outstanding).toBe(0);
  expect(wire.server.counters.connections).toBe(0);
  expect(tree.open()).toBe(0);
  const next = await new Wire(wire.server).attached();
  expect(await next.ask({ type: m.Tstat, tag: 1, fid: 0 })).toMatchObject({ type: m.Rstat, tag: 1 });
  next.vanish();
}

/** Any way to cut a stream. */
const cuts = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 10 });

function inPieces(wire: Wire, bytes: Buffer, sizes: number[]): void {
  for (let at = 0, i = 0; at < bytes.length && !wire.ended; i++) {
    const end = at + sizes[i % sizes.length]!;
    wire.sendBytes(Buffer.from(bytes.subarray(at, end)));
    at = end;
  }
}

describe.each(["at once", "later"])("with a tree that answers %s", (when) => {
  const served = () => {
    const tree = counted();
    const root = when === "later" ? new Slow(tree.root) : tree.root;
    return { tree, server: new Server(root, { limits: { grace: 20, requests: 50 } }) };
  };

  test("every request gets one reply, in whatever order they come", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 60 }), cuts, async (requests, sizes) => {
        const { tree, server } = served();
        const wire = await new Wire(server).attached();
        inPieces(wire, Buffer.concat(requests.map(encode)), sizes);
        let replies = 0;
        for (let turn = 0; turn < 400 && replies + wire.connection.outstanding < requests.length; turn++) {
          replies += (await wire.rest()).length;
        }
        for (let still = 0; still < 3; still++) replies += (await wire.rest()).length;
        expect(wire.ended).toBe(false);
        expect(replies + wire.connection.outstanding).toBe(requests.length);
        await leavesNothing(wire, tree);
      }),
      { numRuns: 200 },
    );
  }, 60_000);

  test("any messages at all, whole, cut, or with wrong bytes", async () => {
    const damage = fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
    const stream = fc.array(fc.oneof(request, message), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(stream, fc.array(damage, { maxLength: 5 }), cuts, async (messages, damages, sizes) => {
        const { tree, server } = served();
        const wire = await new Wire(server).attached();
        const bytes = Buffer.concat(messages.map((one) => encode(one)));
        for (const { at, byte } of damages) if (bytes.length > 0) bytes[at % bytes.length] = byte;
        inPieces(wire, bytes, sizes);
        await wire.rest();
        await leavesNothing(wire, tree);
      }),
      { numRuns: 300 },
    );
  }, 60_000);

  test("random bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), cuts, async (bytes, sizes) => {
        const { tree, server } = served();
        const wire = await new Wire(server).attached();
        inPieces(wire, Buffer.from(bytes), sizes);
        await leavesNothing(wire, tree);
      }),
      { numRuns: 200 },
    );
  }, 60_000);
});
