/**
 * `kill -9` costs nothing: a busy server with several agents is killed at random instants, again and again, and after each restart
 * everything that was acknowledged must be there, once.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../../src/backends/backend.ts";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { build, Home, TestServer } from "./harness.ts";

const kills = 200;
const sessions = ["a", "b", "c"];
/** Milliseconds until the kill; long enough for some turns, short enough to hit the beginning of things as often as their middle. */
const lifetimes = { shortest: 1, longest: 120 };

/** A model that streams, calls a tool that leaves a mark, and answers. */
const scenario = {
  rules: [
    {
      match: { user: "/(P\\d+)/" },
      do: [
        { text: "Working on $1 now, piece by piece.", chunk: 6, delay: 2 },
        { calls: [{ name: "shell", args: { command: "echo $1 >> ran; sleep 0.01" } }] },
      ],
    },
    { match: { tool: "shell" }, do: [{ text: "That has run.", chunk: 4, delay: 1 }] },
  ],
};

let home: Home;
let server: TestServer;
/** What the server has acknowledged, by session. */
const acknowledged = new Map<string, string[]>(sessions.map((name) => [name, []]));
const plans = new Map<string, { acknowledged: string; pending: string }>();
/** The longest chat that anybody has read so far. */
const seen = new Map<string, Buffer>();
let count = 0;

beforeAll(async () => {
  await build();
  home = new Home();
  const file = join(home.folder, "scenario.json");
  writeFileSync(file, JSON.stringify(scenario));
  Object.assign(home.env, { OLLIE_BACKEND: "script", OLLIE_SCRIPT_SCENARIO: file });
  server = new TestServer(home, []);
  await server.start();
  const client = await dial(server.address);
  for (const name of sessions) await client.writeFile("session/new", `name=${name} cwd="${home.work}"\n`);
  client.close();
});
afterAll(() => server.stop());

/** Prompts, queues and plans without pause until the server is gone. */
async function useUntilDeath(client: Client, name: string): Promise<void> {
  try {
    for (;;) {
      const id = `P${++count}`;
      const file = count % 5 === 0 ? "queue" : "prompt";
      await client.writeFile(`s/${name}/${file}`, file === "queue" ? `${id} later\n` : `do ${id}\nand tell`);
      acknowledged.get(name)!.push(id);
      const plan = { acknowledged: plans.get(name)?.acknowledged ?? "", pending: `plan with ${id}\n` };
      plans.set(name, plan);
      await client.writeFile(`session/${name}/plan`, plan.pending);
      plans.set(name, { acknowledged: plan.pending, pending: plan.pending });
      seen.set(name, await client.readFile(`s/${name}/chat`));
      if (acknowledged.get(name)!.length % 3 === 0) await client.readText(`s/${name}/idlewait`);
    }
  } catch {
    // The kill came.
  }
}

async function check(client: Client): Promise<void> {
  for (const name of sessions) {
    // In this order: turns go on meanwhile, and a text may move from the queue into chat, never back.
    const queue = await client.readText(`s/${name}/queue`);
    const chat = await client.readFile(`s/${name}/chat`);
    const context = await client.readText(`s/${name}/context`);
    const plan = await client.readText(`session/${name}/plan`);
    const before = seen.get(name) ?? Buffer.alloc(0);
    expect(chat.subarray(0, before.length).equals(before)).toBe(true);
    seen.set(name, chat);
    checkBlocks(chat.toString());
    const waiting = lines(queue).map((line) => idOf(JSON.parse(line)));
    const run = userBlocks(chat.toString()).map(idOf);
    for (const ids of [waiting, run]) expect(new Set(ids).size).toBe(ids.length);
    const ids = new Set([...waiting, ...run]);
    for (const id of acknowledged.get(name)!) expect([id, ids.has(id)]).toEqual([id, true]);
    checkHistory(lines(context).map((line) => JSON.parse(line)));
    const { acknowledged: sure, pending } = plans.get(name) ?? { acknowledged: "", pending: "" };
    expect([sure, pending]).toContain(plan);
    plans.set(name, { acknowledged: plan, pending: plan });
  }
  const ran = existsSync(join(home.work, "ran")) ? lines(readFileSync(join(home.work, "ran"), "utf8")) : [];
  expect(new Set(ran).size).toBe(ran.length);
}

/** Blocks follow each other; none is inside another, and only the last may be open. */
function checkBlocks(chat: string): void {
  let open = false;
  for (const line of chat.split("\n")) {
    if (!line.startsWith("[[[")) continue;
    expect(line).toMatch(/^\[\[\[.*\]\]\]$/);
    expect(open).toBe(line === "[[[end]]]");
    open = !open;
  }
}

function lines(text: string): string[] {
  return text.split("\n").filter(Boolean);
}

function idOf(text: string): string {
  return /P\d+/.exec(text)![0];
}

function userBlocks(chat: string): string[] {
  return [...chat.matchAll(/^\[\[\[user[^\n]*\n(.*?)^\[\[\[end\]\]\]$/gms)].map((match) => match[1]!);
}

/** What every provider insists on. */
function checkHistory(messages: Message[]): void {
  const owed: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") expect(owed.shift()).toBe(message.id);
    else expect(owed).toEqual([]);
    if (message.role === "assistant") owed.push(...message.calls.map((call) => call.id));
  }
}

describe("a server killed with SIGKILL while it is busy", () => {
  test(`${kills} times keeps every prompt, queue, plan and chat, and runs nothing twice`, async () => {
    for (let kill = 0; kill < kills; kill++) {
      const client = await dial(server.address);
      const users = sessions.map((name) => useUntilDeath(client, name));
      await Bun.sleep(lifetimes.shortest + Math.random() * (lifetimes.longest - lifetimes.shortest));
      await server.kill9();
      await Promise.all(users);
      await server.start();
      const after = await dial(server.address);
      await check(after);
      after.close();
    }
  }, 300_000);

  test("still runs all that waits, and ends with an empty queue", async () => {
    const client = await dial(server.address);
    for (const name of sessions) {
      await client.writeFile(`s/${name}/prompt`, `do P${++count} at last`);
      await client.readText(`s/${name}/idlewait`);
      expect(await client.readText(`s/${name}/queue`)).toBe("");
    }
    await check(client);
    expect(readFileSync(join(home.work, "ran"), "utf8").split("\n").length).toBeGreaterThan(kills / 10);
    client.close();
  }, 120_000);
});
