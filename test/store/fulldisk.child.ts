/** Runs on a file system of 4 MiB and says, as JSON, what a store does when it is full. */
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../src/fault.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import type { NewRecord } from "../../src/store/records.ts";
import { Store } from "../../src/store/store.ts";
import { chatText, parseChat } from "./helper.ts";

const path = process.argv[2]!;
const filler = join(path, "filler");

function fill(): void {
  for (const size of [4096, 1])
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
    } catch {
      // Full now.
    }
}

function free(): void {
  rmSync(filler, { force: true });
}

async function kind(job: () => unknown): Promise<string> {
  try {
    await job();
    return "none";
  } catch (error) {
    return error instanceof Fault ? error.kind : String(error);
  }
}

const prompt = (id: string, size = 900): NewRecord => ({
  t: "prompt",
  id,
  text: "x".repeat(size),
  how: "queue",
});
const waiting = (agent: AgentStore) => agent.state.waiting.map(({ id }) => id);

async function reopen(store: Store) {
  await store.release();
  const { store: next } = await Store.open(path);
  const { session, report } = await next.loadSession("s");
  return { store: next, session, agent: session.agents()[0]!, report };
}

const facts: Record<string, unknown> = {};
const first = await Store.open(path);
let store = first.store;
let session = await store.createSession("s", { cfg: { cwd: "/1" } }, [{ name: "a", config: "x" }]);
let agent = session.agents()[0]!;
await session.writePlan(Buffer.from("old plan"));

// The journal: refused records change nothing.
fill();
let accepted = 0;
while ((await kind(() => agent.append(prompt(`p${accepted}`)))) === "none") accepted++;
facts.journalRefusal = await kind(() => agent.append(prompt("big", 9000)));
facts.journalState = waiting(agent).length === accepted;
facts.journalEndsInNewline = readFileSync(join(agent.folder, "journal.jsonl"), "utf8").endsWith("\n");

// What is replaced as a whole stays as it was.
facts.planRefusal = await kind(() => session.writePlan(Buffer.alloc(9000, "n")));
facts.updateRefusal = await kind(() =>
  session.update((json) => Object.assign(json.cfg, { cwd: "n".repeat(9000) })),
);
facts.createRefusal = await kind(() =>
  store.createSession("t", {}, [{ name: "b".repeat(99), config: "x".repeat(9000) }]),
);
facts.agentRefusal = await kind(() => session.createAgent("b", "x".repeat(9000)));
({ store, session, agent } = await reopen(store));
facts.kept = [
  Buffer.from(session.plan()).toString(),
  session.json.cfg.cwd,
  store.names(),
  waiting(agent).length - accepted,
];

// Chat: what the disk refuses comes later, and the length is always true.
const length = () => agent.chat.length === statSync(join(agent.folder, "chat")).size;
writeFileSync(filler, Buffer.alloc(2 ** 21));
const block = agent.chat.open("assistant", {});
while (!agent.chat.fault) block.append("0123456789\n".repeat(100));
const until = agent.chat.length;
block.append("while it is full\n");
agent.chat.block("info", {}, "an info");
facts.chat = [agent.chat.fault?.kind, length()];
facts.turnRefusal = await kind(() => agent.beginTurn("t", waiting(agent)[0]!));
facts.noTurn = agent.state.running === undefined;
free();
block.append("after it was full\n");
block.close();
facts.chatAfter = [agent.chat.fault, length(), agent.chat.length > until];
const [long, info] = parseChat(chatText(agent)).slice(-2);
facts.chatWhole =
  /^(0123456789\n)+while it is full\nafter it was full\n$/.test(long!.text) && info!.text === "an info\n";

// More than may wait: told where it is missing, and the blocks stay whole.
fill();
const lossy = agent.chat.open("tool", {});
lossy.append("begin\n");
for (let i = 0; i < 1200; i++) lossy.append("z".repeat(1024));
facts.lossyLength = length();
free();
lossy.append("[[[end]]]");
lossy.close();
facts.lossy = parseChat(chatText(agent)).at(-1)!.text.replace(/z+/g, "z").replace(/\d{6}/, "N");

// A crash while the disk is full: a turn had begun.
agent.beginTurn("t", waiting(agent)[0]!);
const cut = agent.chat.open("assistant", {});
cut.append("half");
fill();
({ store, session, agent } = await reopen(store));
facts.recovered = [
  agent.state.running,
  agent.state.last?.how,
  agent.state.waiting.length - accepted,
  length(),
];
free();
for (let i = 0; i < 2; i++) agent.append({ t: "clear" });
facts.ends = readFileSync(join(agent.folder, "journal.jsonl"), "utf8").split('{"t":"end"').length - 1;
agent.chat.block("info", {}, "goes on");
({ store, session, agent } = await reopen(store));
facts.afterRecovery = [agent.state.last?.how, agent.state.waiting.length - accepted];
facts.blocks = parseChat(chatText(agent))
  .slice(-3)
  .map(({ type, text }) => `${type} ${text.slice(0, 11)}`);

// Damage that cannot be mended for want of room: what there is can be read, and is mended at the next start.
fill();
for (const name of ["session.json", "agents/a/journal.jsonl"]) truncateSync(join(session.folder, name));
fill();
({ store, session, agent } = await reopen(store));
facts.damaged = [
  agent.state.config,
  chatText(agent).includes("goes on"),
  await kind(() => session.update(() => {})),
];
free();
({ store, session, agent } = await reopen(store));
facts.mended = [
  parseChat(chatText(agent))
    .slice(-2)
    .map(({ text }) => text.slice(0, 28)),
  readdirSync(session.folder).filter((name) => name.includes("damaged")).length,
];
({ store, session, agent, report: facts.reportWhole } = await reopen(store));
await store.release();
facts.leftovers = readdirSync(path).filter((name) => name.startsWith("."));
console.log(JSON.stringify(facts));
