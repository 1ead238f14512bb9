import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { type JournalRecord, recordSchema } from "../../src/store/records.ts";
import { Store } from "../../src/store/store.ts";
import { chatText, folder, invalidity, parseChat } from "./helper.ts";

const rounds = 25;

/** Lets a server live for a moment; returns what it has promised until it was killed. */
async function killedLife(path: string): Promise<string[][]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "kill.child.ts"), path], {
    stdout: "pipe",
  });
  let said = "";
  const decoder = new TextDecoder();
  for await (const bytes of child.stdout) {
    const first = said === "";
    said += decoder.decode(bytes, { stream: true });
    if (first) setTimeout(() => child.kill("SIGKILL"), Math.random() * 80);
  }
  await child.exited;
  return said.split("\n").map((line) => line.split(" "));
}

function recordsOf(agent: AgentStore): JournalRecord[] {
  const lines = readFileSync(join(agent.folder, "journal.jsonl"), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => recordSchema.parse(JSON.parse(line)));
}

/** Every accepted prompt either waits or has begun one turn. */
function promptsAreIntact(agent: AgentStore, acked: string[]): void {
  const records = recordsOf(agent);
  const accepted = records.flatMap((one) => (one.t === "prompt" ? [one.id] : []));
  const begun = records.flatMap((one) => (one.t === "turn" ? [one.prompt] : []));
  const waiting = agent.state.waiting.map(({ id }) => id);
  expect(accepted).toEqual(expect.arrayContaining(acked));
  expect([...begun, ...waiting].sort()).toEqual(accepted.sort());
}

async function isWhole(agent: AgentStore, chatBefore: string): Promise<void> {
  expect(agent.state.running).toBeUndefined();
  expect(invalidity(await agent.history())).toBeUndefined();
  const text = chatText(agent);
  expect(text.startsWith(chatBefore)).toBe(true);
  const users = parseChat(text).filter(({ type }) => type === "user");
  const records = recordsOf(agent);
  const turns = records.flatMap((one) => (one.t === "turn" ? [one] : []));
  expect(users.map(({ text }) => text.split("\n")[0])).toEqual(turns.map(({ prompt }) => `prompt ${prompt}`));
  const bytes = Buffer.from(text);
  for (const { chatAt, offset } of turns) {
    const [block] = parseChat(bytes.subarray(chatAt, offset).toString());
    expect(block!.type).toBe("user");
  }
  const ends = records.flatMap((one) => (one.t === "end" ? [one.turn] : []));
  expect(ends).toEqual(turns.map(({ id }) => id));
}

test(`after ${rounds} kills at random moments nothing promised is lost, run twice or half there`, async () => {
  const path = folder();
  const promised: string[][] = [];
  const chats = new Map<string, string>();
  for (let round = 0; round < rounds; round++) {
    promised.push(...(await killedLife(path)));
    const { store } = await Store.open(path);
    for (const name of store.names()) {
      const { session } = await store.loadSession(name);
      expect(session.agents().map((agent) => agent.name)).toEqual(name === "s" ? ["a", "b"] : ["c"]);
      if (name !== "s") await session.remove();
    }
    for (const agent of (await store.loadSession("s")).session.agents()) {
      const of = (what: string) => promised.filter((one) => one[0] === what && one[1] === agent.name);
      promptsAreIntact(
        agent,
        of("acked").map((one) => one[2]!),
      );
      const done = recordsOf(agent).flatMap((one) =>
        one.t === "end" && one.how === "done" ? [one.turn] : [],
      );
      expect(done).toEqual(expect.arrayContaining(of("ended").map((one) => one[2]!)));
      await isWhole(agent, chats.get(agent.name) ?? "");
      chats.set(agent.name, chatText(agent));
    }
    await store.release();
  }
  expect(promised.filter(([what]) => what === "ended").length).toBeGreaterThan(rounds);
}, 60_000);
