/**
 * The 9P library beside a bare echo server, both in a process of their own, on unix sockets, in one run: the ratios are what counts,
 * the absolute figures are the machine's. By itself: `bun test/bench/ninep.ts`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/ninep/client.ts";
import { encode } from "../../src/ninep/codec.ts";
import { dial } from "../../src/ninep/dial.ts";
import * as m from "../../src/ninep/messages.ts";
import { type Figure, row, table } from "./figure.ts";

/** Every figure is taken so many times, and the best counts: what the machine does besides is no property of ours. */
const turns = 5;
/** Milliseconds of one turn of round trips. */
const turn = 400;
const large = 100 * 1024 * 1024;

export async function ninep(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "ninep-bench-"));
  const paths = { echo: join(folder, "echo"), nine: join(folder, "9p") };
  const script = join(import.meta.dir, "ninep-server.ts");
  const server = Bun.spawn([process.execPath, script, paths.echo, paths.nine, String(large)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await server.stdout.getReader().read();
    return [...(await small(paths)), ...(await whole(paths.nine))];
  } finally {
    server.kill();
    await server.exited;
    rmSync(folder, { recursive: true });
  }
}

/** Round trips of small messages. In turns, so that all meet the same weather. */
async function small(paths: { echo: string; nine: string }): Promise<Figure[]> {
  const client = await dial(`unix!${paths.nine}`);
  const stat = encode({ type: m.Tstat, tag: 1, fid: 1 });
  const measured: [name: string, perSecond: () => Promise<number>, least?: number][] = [
    ["Tread of 100 bytes", () => roundTrips(paths.nine, opened, read(0, 100)), 0.7],
    ["Twrite of 100 bytes", () => roundTrips(paths.nine, opened, write(100)), 0.7],
    ["Tstat", () => roundTrips(paths.nine, opened, stat)],
    ["read of 100 bytes through the client", () => clientReads(client, 1)],
    ["64 reads of 100 bytes at once through the client", () => clientReads(client, 64)],
  ];
  let echo = 0;
  const best = measured.map(() => 0);
  for (let i = 0; i < turns; i++) {
    echo = Math.max(echo, await roundTrips(paths.echo, [], frame(100)));
    for (const [j, [, perSecond]] of measured.entries()) best[j] = Math.max(best[j]!, await perSecond());
  }
  client.close();
  return [
    { name: "echo of 100 bytes", value: echo, unit: "/s" },
    ...measured.map(([name, , least], j) => ({
      name: `${name} to echo`,
      value: best[j]! / echo,
      unit: ": 1",
      least,
    })),
  ];
}

/** Whole files. */
async function whole(path: string): Promise<Figure[]> {
  const client = await dial(`unix!${path}`);
  const narrow = await dial(`unix!${path}`, { msize: 8192 });
  const streamed = async () => {
    let sum = 0;
    for await (const piece of client.readStream("large")) sum += piece.length;
    return sum;
  };
  const figures = [
    await throughput("readFile of 100 MiB", async () => (await client.readFile("large")).length, 500),
    await throughput("readStream of 100 MiB", streamed, 500),
    await throughput("writeFile of 100 MiB", async () => {
      await client.writeFile("sink", Buffer.alloc(large));
      return large;
    }),
    await throughput(
      "readFile of 100 MiB at msize 8192",
      async () => (await narrow.readFile("large")).length,
      100,
    ),
  ];
  client.close();
  narrow.close();
  return figures;
}

/** A length-prefixed message for the echo server. */
function frame(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  bytes.writeUInt32LE(length, 0);
  return bytes;
}

function read(offset: number, count: number): Buffer {
  return encode({ type: m.Tread, tag: 1, fid: 1, offset, count });
}

function write(length: number): Buffer {
  return encode({ type: m.Twrite, tag: 1, fid: 1, offset: 0, data: Buffer.alloc(length) });
}

/** Leaves fid 1 open on the small file. */
const opened = [
  encode({ type: m.Tversion, tag: m.NOTAG, msize: 8192, version: "9P2000" }),
  encode({ type: m.Tattach, tag: 1, fid: 0, afid: m.NOFID, uname: "", aname: "" }),
  encode({ type: m.Twalk, tag: 1, fid: 0, newfid: 1, wname: ["small"] }),
  encode({ type: m.Topen, tag: 1, fid: 1, mode: 2 }),
];

/** Sends one request after the other, each when the reply to the last has come; how many in a second. */
async function roundTrips(path: string, before: Buffer[], request: Buffer): Promise<number> {
  const queue = [...before];
  const { promise, resolve } = Promise.withResolvers<number>();
  let count = 0;
  let start = 0;
  const socket = await Bun.connect({
    unix: path,
    socket: {
      data(socket, chunk) {
        // The replies are far smaller than what a socket delivers at once.
        if (chunk.readUInt32LE(0) !== chunk.length) throw new Error("a reply came in pieces");
        const next = queue.shift();
        if (next) {
          socket.write(next);
          return;
        }
        if (start === 0) start = performance.now();
        const passed = performance.now() - start;
        if (passed > turn) resolve((count * 1000) / passed);
        else {
          count++;
          socket.write(request);
        }
      },
    },
  });
  socket.write(queue.shift() ?? request);
  const result = await promise;
  socket.end();
  return result;
}

async function clientReads(client: Client, atOnce: number): Promise<number> {
  const fid = await client.openFile("small");
  const start = performance.now();
  let count = 0;
  let passed = 0;
  const one = async () => {
    while (passed < turn) {
      await fid.read(0, 100);
      count++;
      passed = performance.now() - start;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  await fid.clunk();
  return (count * 1000) / passed;
}

async function throughput(name: string, run: () => Promise<number>, least?: number): Promise<Figure> {
  let best = 0;
  for (let i = 0; i < turns; i++) {
    const start = performance.now();
    const bytes = await run();
    best = Math.max(best, bytes / (performance.now() - start) / 1000);
  }
  return { name, value: best, unit: "MB/s", least };
}

if (import.meta.main) console.log(table((await ninep()).map(row)));
