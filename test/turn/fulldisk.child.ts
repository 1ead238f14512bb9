/**
 * Runs on a file system of 4 MiB, which its temporary folder is on. The disk fills up just before a turn writes a record of the kind
 * that is named; says, as JSON, what became of the agent then, once there was room again, and after a restart.
 */
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "../../src/backends/backend.ts";
import type { Agent } from "../../src/session/agent.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { answers, blocks, call, chat, finish, idle, say, World } from "./world.ts";

const at = process.argv[2]!;
const filler = join(tmpdir(), "filler");

/** Leaves no byte: the last page of the journal is used up, too. */
function fill(append: (record: { t: "note"; text: string }) => void): void {
  for (const size of [4096, 1])
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Full now.
    }
  for (const size of [1000, 10, 0])
    try {
      for (;;) append({ t: "note", text: "n".repeat(size) });
    } catch {
      // Not one more.
    }
}

/** From now on the disk is full when a record of that kind is about to be written. */
function fillBefore(kind: string, store: AgentStore): void {
  let filled = false;
  const append = store.append.bind(store);
  const check = (record: { t: string }) => {
    if (record.t !== kind || filled) return;
    filled = true;
    fill(append);
  };
  for (const name of ["append", "appendOrOwe"] as const) {
    const write = store[name].bind(store);
    // biome-ignore lint/suspicious/noExplicitAny: the two methods differ only in what they return
    (store as any)[name] = (record: any) => {
      check(record);
      return write(record);
    };
  }
}

/** Whether providers would take it. */
function valid(messages: Message[]): boolean {
  const owed: string[] = [];
  for (const message of messages) {
    if (message.role === "tool" ? owed.shift() !== message.id : owed.length > 0) return false;
    if (message.role === "assistant") owed.push(...message.calls.map(({ id }) => id));
  }
  return owed.length === 0;
}

/** Whether every block is closed before the next one begins. */
function whole(agent: Agent): boolean {
  const markers = chat(agent)
    .split("\n")
    .filter((line) => line.startsWith("[[["));
  return markers.length % 2 === 0 && markers.every((line, i) => (line === "[[[end]]]") === (i % 2 === 1));
}

const history = async (agent: Agent): Promise<Message[]> =>
  (await agent.context())
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

const errors = (agent: Agent) =>
  [...blocks(agent).matchAll(/\[\[\[error\]\]\]\n(.*)/g)].map((match) =>
    match[1]!.replace(/ENOSPC.*?(;|$)/, "full$1"),
  );

const world = await World.open(
  answers(
    [
      say("Let me see."),
      { type: "usage", usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 1 } },
      call("1", "ok"),
      finish,
    ],
    [say("Seen."), finish],
  ),
);
world.tool("ok", `touch "$OLLIE_CWD/ran"; echo fine`);
const agent = await world.agent({ name: "s" });
fillBefore(at, agent.store);
const submitted = await agent.submit("first").then(
  () => "accepted",
  (error) => error.kind,
);
await idle(agent);
const facts: Record<string, unknown> = { submitted, waits: agent.queue().length };

rmSync(filler);
world.model = answers([say("As before."), finish], [say("As before."), finish]);
await agent.submit("second");
await idle(agent);
facts.errors = errors(agent);
facts.reply = await agent.reply();
facts.whole = whole(agent);
facts.history = valid(await history(agent));
facts.users = [...chat(agent).matchAll(/^\[\[\[user.*\n(.*)/gm)].map((match) => match[1]);
facts.results = (await history(agent)).flatMap((message) =>
  message.role === "tool" ? [message.text.replace(/\n[\s\S]*/, "").replace(/: .*/, "")] : [],
);

const before = chat(agent);
const requests = await agent.context();
await world.stop();
await world.start();
const again = world.runtime.session("s")!.agents()[0]!;
facts.restart = [
  chat(again) === before,
  (await again.context()) === requests,
  again.queue().length,
  again.state,
];
await world.remove();
console.log(JSON.stringify(facts));
