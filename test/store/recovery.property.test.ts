import { describe, expect, test } from "bun:test";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { emptyState, fold } from "../../src/store/agent-state.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { type JournalRecord, type NewRecord, recordSchema } from "../../src/store/records.ts";
import { Agents, chatText, invalidity, meaning, parseChat } from "./helper.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom('{"t":"', "}\n{", "\0", "[[["),
);
const id = fc.constantFrom("a", "b", "c");
const calls = fc.array(fc.record({ id, name: id, args: text }), { maxLength: 3 });

/** Something that happens to an agent: records as the turn writes them, and text in chat. */
type Step = (agent: AgentStore, n: number) => void;

const record = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<Step> =>
  arbitrary.map((one) => (agent) => agent.append(one as NewRecord));

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ text, how: fc.constantFrom("prompt", "queue", "inject") }).map(
    (one): Step =>
      (agent, n) =>
        agent.append({ t: "prompt", id: `p${n}`, ...one } as NewRecord),
  ),
  fc.constant<Step>((agent, n) => {
    const [next] = agent.state.waiting;
    const { running } = agent.state;
    if (running) agent.append({ t: "end", turn: running.id, how: "done" });
    else if (next) agent.beginTurn(`t${n}`, next.id);
  }),
  text.map(
    (one): Step =>
      (agent) =>
        agent.chat.block("assistant", { name: one }, one),
  ),
  record(fc.record({ t: fc.constant("cfg"), set: fc.dictionary(id, fc.option(text)) })),
  record(fc.record({ t: fc.constant("assistant"), text, calls })),
  record(fc.record({ t: fc.constant("call"), id })),
  record(
    fc.record({ t: fc.constant("result"), id, name: id, ok: fc.boolean(), text, how: fc.constant("failed") }),
  ),
  record(fc.record({ t: fc.constant("note"), text })),
  record(fc.constant({ t: "clear" })),
);

const steps = fc.array(step, { maxLength: 25 });
const agents = new Agents();
let runs = 0;

async function lived(
  all: Step[],
): Promise<{ name: string; agent: AgentStore; journal: string; chat: string }> {
  const name = `agent${runs++}`;
  const agent = await agents.create({ name });
  for (const [n, one] of all.entries()) one(agent, n);
  const path = join(agents.agentsFolder, name);
  return { name, agent, journal: join(path, "journal.jsonl"), chat: join(path, "chat") };
}

/** What the records add up to, with a turn that runs at their end closed as interrupted. */
function expectedOf(records: JournalRecord[]): unknown {
  const state = emptyState();
  const place = { at: 0, bytes: 0 };
  for (const one of records) fold(state, one, place);
  const reason = "the server ended while this turn ran";
  if (state.running)
    fold(state, { t: "end", at: 0, turn: state.running.id, how: "interrupted", reason }, place);
  return meaning(state);
}

async function consistent(agent: AgentStore): Promise<void> {
  expect(agent.state.running).toBeUndefined();
  expect(invalidity(await agent.history())).toBeUndefined();
  const { last } = agent.state;
  if (!last) return;
  expect(agent.chat.length).toBeGreaterThanOrEqual(last.offset);
}

describe("after a crash that cut", () => {
  test("the journal anywhere, all whole lines count and nothing else does", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.double({ min: 0, max: 1, noNaN: true }), async (all, where) => {
        const { name, journal } = await lived(all);
        const bytes = readFileSync(journal);
        const first = bytes.indexOf("\n");
        const cut = first + Math.floor(where * (bytes.length - first));
        truncateSync(journal, cut);
        const lines = bytes.subarray(0, cut).toString().split("\n");
        // The last piece counts if only its newline is missing.
        if (bytes[cut] !== 10) lines.pop();
        const records = lines.filter(Boolean).map((line) => recordSchema.parse(JSON.parse(line)));
        const { agent } = await agents.open(name);
        expect(meaning(agent.state)).toEqual(expectedOf(records));
        await consistent(agent);
        const again = await agents.open(name);
        expect(again.report).toEqual([]);
        expect(meaning(again.agent.state)).toEqual(meaning(agent.state));
      }),
      { numRuns: 150 },
    );
  });

  test("the chat anywhere, what stood there still does, its blocks are whole and the last prompt is in its place", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.double({ min: 0, max: 1, noNaN: true }), async (all, where) => {
        const { name, chat, agent: before } = await lived(all);
        const bytes = readFileSync(chat);
        const cut = Math.floor(where * bytes.length);
        truncateSync(chat, cut);
        const { agent } = await agents.open(name);
        await consistent(agent);
        expect(readFileSync(chat).subarray(0, cut).equals(bytes.subarray(0, cut))).toBe(true);
        parseChat(chatText(agent));
        const { last } = agent.state;
        if (last) {
          const block = readFileSync(chat).subarray(last.chatAt, last.offset);
          expect(block.toString()).toBe(bytes.subarray(last.chatAt, last.offset).toString());
        }
        expect(agent.state.waiting).toEqual(before.state.waiting);
        expect((await agents.open(name)).report).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });
});

test("after damage anywhere behind the first line, every untouched line still counts", async () => {
  const damage = fc.record({
    where: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 30 }),
      fc.nat(60).map((size) => new Uint8Array(size + 1)),
    ),
  });
  await fc.assert(
    fc.asyncProperty(steps, damage, async (all, { where, bytes: garbage }) => {
      const { name, journal } = await lived(all);
      const bytes = readFileSync(journal);
      const first = bytes.indexOf("\n") + 1;
      const at = first + Math.floor(where * (bytes.length - first));
      const damaged = Buffer.concat([bytes.subarray(0, at), garbage, bytes.subarray(at + garbage.length)]);
      writeFileSync(journal, damaged);
      const untouched = [
        ...bytes.subarray(0, at).toString().split("\n").slice(0, -1),
        ...bytes
          .subarray(at + garbage.length)
          .toString()
          .split("\n")
          .slice(1, -1),
      ];
      const { agent } = await agents.open(name);
      await consistent(agent);
      const kept = new Set(readFileSync(journal, "utf8").split("\n"));
      for (const line of untouched) expect(kept.has(line)).toBe(true);
      const again = await agents.open(name);
      expect(again.report.filter((line) => !line.includes("unknown shape"))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
