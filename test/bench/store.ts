/** The store by itself: what appending, opening and reading cost, and what an idle agent takes up. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { Store } from "../../src/store/store.ts";
import { type Figure, median } from "./figure.ts";

const sessions = 2000;
const megabyte = 2 ** 20;

export async function store(): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "ollie-bench-store-"));
  try {
    return [...(await oneAgent(join(folder, "one"))), ...(await manySessions(join(folder, "many")))];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function oneAgent(folder: string): Promise<Figure[]> {
  const { store } = await Store.open(folder);
  const session = await store.createSession("s", {}, [{ name: "a", config: "default" }]);
  const [agent] = session.agents();
  const accept = await accepting(agent!);
  const deltas = streaming(agent!);
  const read = reading(agent!);
  const written = fillJournal(agent!);
  await store.release();
  const { store: next } = await Store.open(folder);
  const began = performance.now();
  await next.loadSession("s");
  const opening = written / megabyte / ((performance.now() - began) / 1000);
  await next.release();
  return [
    { name: "a prompt on disk", value: accept, unit: "ms" },
    { name: "deltas of 20 bytes streamed into chat in a second", value: deltas, unit: "/s" },
    { name: "chat read from the store in pieces of 64 KiB", value: read, unit: "MB/s", least: 500 },
    { name: "journal read at a start", value: opening, unit: "MB/s" },
  ];
}

/** Milliseconds from a text to its being on disk. */
async function accepting(agent: AgentStore): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 200; i++) {
    const began = performance.now();
    agent.append({ t: "prompt", id: `p${i}`, text: "a prompt of some words", how: "queue" });
    await agent.sync();
    times.push(performance.now() - began);
    agent.append({ t: "dequeue", id: `p${i}` });
  }
  return median(times);
}

function streaming(agent: AgentStore): number {
  const count = 50_000;
  const block = agent.chat.open("assistant", {});
  const began = performance.now();
  for (let i = 0; i < count; i++) block.append("twenty bytes of text");
  const rate = (count * 1000) / (performance.now() - began);
  block.close();
  return rate;
}

function reading({ chat }: AgentStore): number {
  while (chat.length < 100 * megabyte) chat.block("tool", {}, "all work and no play\n".repeat(50_000));
  const rates: number[] = [];
  for (let run = 0; run < 5; run++) {
    const began = performance.now();
    for (let at = 0; at < chat.length; ) at += chat.read(at, 65536).length;
    rates.push(chat.length / 1000 / (performance.now() - began));
  }
  return median(rates);
}

/** Returns its bytes. */
function fillJournal(agent: AgentStore): number {
  const text = "the output of a tool\n".repeat(200);
  let bytes = 0;
  for (let i = 0; bytes < 50 * megabyte; i++, bytes += text.length)
    agent.append({ t: "result", id: `c${i}`, name: "shell", ok: true, text, how: "done" });
  return bytes;
}

async function manySessions(folder: string): Promise<Figure[]> {
  const { store } = await Store.open(folder);
  const names = Array.from({ length: sessions }, (_, i) => `s${i}`);
  for (let i = 0; i < sessions; i += 50)
    await Promise.all(
      names
        .slice(i, i + 50)
        .map((name) => store.createSession(name, {}, [{ name: "default", config: "default" }])),
    );
  await store.release();
  const { store: next } = await Store.open(folder);
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  const began = performance.now();
  for (const name of next.names()) await next.loadSession(name);
  const opening = performance.now() - began;
  Bun.gc(true);
  const each = (process.memoryUsage().rss - before) / sessions;
  await next.release();
  return [
    { name: "an idle session opened at a start", value: opening / sessions, unit: "ms" },
    { name: "memory of an idle session in the store alone", value: each / 1000, unit: "kB" },
  ];
}

if (import.meta.main)
  for (const { name, value, unit } of await store()) console.log(name, value.toFixed(2), unit);
