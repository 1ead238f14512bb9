/**
 * The 9P library beside a bare echo server, both in a process of their own, on unix sockets, in one run. Prints a table; the ratios
 * are what counts, the absolute figures are the machine's.
 *
 *     bun test/bench/ninep.ts [seconds per figure]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../../src/ninep/client.ts";
import { encode } from "../../src/ninep/codec.ts";
import { dial } from "../../src/ninep/dial.ts";
import * as m from "../../src/ninep/messages.ts";

const seconds = Number(process.argv[2] ?? 2);
const folder = mkdtempSync(join(tmpdir(), "ninep-bench-"));
const echoPath = join(folder, "echo");
const ninePath = join(folder, "9p");
const turns = 5;
const large = 100 * 1024 * 1024;

type Row = [figure: string, value: string, ratio: string];

async function measure(): Promise<Row[]> {
  const client = await dial(`unix!${ninePath}`);
  const stat = encode({ type: m.Tstat, tag: 1, fid: 1 });
  const rows = await compared([
    ["echo, 100 bytes", () => roundTrips(echoPath, [], frame(100))],
    ["Tread of 100 bytes", () => roundTrips(ninePath, opened, read(0, 100))],
    ["Twrite of 100 bytes", () => roundTrips(ninePath, opened, write(100))],
    ["Tstat", () => roundTrips(ninePath, opened, stat)],
    ["read of 100 bytes by our client", () => clientReads(client, 1)],
    ["64 reads of 100 bytes at once", () => clientReads(client, 64)],
  ]);
  rows.push(
    await throughput("readFile of 100 MiB", () => client.readFile("large").then((data) => data.length)),
  );
  rows.push(
    await throughput("readStream of 100 MiB", async () => {
      let sum = 0;
      for await (const piece of client.readStream("large")) sum += piece.length;
      return sum;
    }),
  );
  rows.push(
    await throughput("writeFile of 100 MiB", () =>
      client.writeFile("sink", Buffer.alloc(large)).then(() => large),
    ),
  );
  const small = await dial(`unix!${ninePath}`, { msize: 8192 });
  rows.push(
    await throughput("readFile at msize 8192", () => small.readFile("large").then((data) => data.length)),
  );
  client.close();
  small.close();
  return rows;
}

/** In turns, so that all meet the same weather; the best turn of each, and its ratio to that of the first. */
async function compared(figures: [figure: string, perSecond: () => Promise<number>][]): Promise<Row[]> {
  const best = figures.map(() => 0);
  for (let turn = 0; turn < turns; turn++) {
    for (const [i, [, perSecond]] of figures.entries()) best[i] = Math.max(best[i]!, await perSecond());
  }
  return figures.map(([figure], i) => [
    figure,
    `${Math.round(best[i]!)}/s`,
    (best[i]! / best[0]!).toFixed(2),
  ]);
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
        if (passed > (seconds * 1000) / turns) resolve((count * 1000) / passed);
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
    while (passed < (seconds * 1000) / turns) {
      await fid.read(0, 100);
      count++;
      passed = performance.now() - start;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  await fid.clunk();
  return (count * 1000) / passed;
}

/** The best of some runs: what the machine does besides is no property of ours. */
async function throughput(figure: string, run: () => Promise<number>): Promise<Row> {
  let best = 0;
  for (let i = 0; i < turns; i++) {
    const start = performance.now();
    const bytes = await run();
    best = Math.max(best, bytes / (performance.now() - start) / 1000);
  }
  return [figure, `${Math.round(best)} MB/s`, ""];
}

function table(rows: Row[]): string {
  const all: Row[] = [["figure", "value", "ratio to echo"], ...rows];
  return all
    .map(([figure, value, ratio]) => `${figure.padEnd(36)}${value.padStart(14)}${ratio.padStart(16)}`)
    .join("\n");
}

const server = Bun.spawn(
  [process.execPath, join(import.meta.dir, "ninep-server.ts"), echoPath, ninePath, String(large)],
  {
    stdio: ["ignore", "pipe", "inherit"],
  },
);
try {
  await server.stdout.getReader().read();
  console.log(table(await measure()));
} finally {
  server.kill();
  await server.exited;
  rmSync(folder, { recursive: true });
}
