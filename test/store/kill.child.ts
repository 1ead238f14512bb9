/**
 * A server's busy life: two agents that take prompts and run turns with calls, as fast as the disk lets them, until it is killed. Says
 * on stdout what it has promised: `acked AGENT PROMPT` and `ended AGENT TURN`.
 */
import { writeSync } from "node:fs";
import { newId } from "../../src/ids.ts";
import type { AgentStore } from "../../src/store/agent-store.ts";
import { Store } from "../../src/store/store.ts";

function say(...words: string[]): void {
  writeSync(1, `${words.join(" ")}\n`);
}

async function accept(agent: AgentStore): Promise<void> {
  const id = newId();
  agent.append({
    t: "prompt",
    id,
    text: `prompt ${id}\n${"[[[x\n".repeat(Math.random() * 3000)}`,
    how: "prompt",
  });
  await agent.sync();
  say("acked", agent.name, id);
}

async function turn(agent: AgentStore): Promise<void> {
  const id = newId();
  agent.beginTurn(id, agent.state.waiting[0]!.id);
  await agent.sync();
  for (const last of [false, true]) {
    const block = agent.chat.open("assistant", {});
    for (let i = 0; i < 20; i++) block.append("some words and\n");
    block.close();
    const calls = last ? [] : [newId(), newId()].map((call) => ({ id: call, name: "shell", args: "{}" }));
    agent.append({ t: "assistant", text: "some words", calls });
    for (const call of calls) agent.append({ t: "call", id: call.id });
    await agent.sync();
    for (const call of calls.reverse()) {
      agent.chat.block("tool", { name: "shell", id: call.id }, "output");
      agent.append({
        t: "result",
        id: call.id,
        name: "shell",
        ok: true,
        text: "y".repeat(5000),
        how: "done",
      });
    }
  }
  agent.append({ t: "end", turn: id, how: "done" });
  await agent.sync();
  say("ended", agent.name, id);
}

async function live(agent: AgentStore): Promise<void> {
  for (;;) {
    await accept(agent);
    if (Math.random() < 0.3) await accept(agent);
    await turn(agent);
  }
}

const { store } = await Store.open(process.argv[2]!);
const session =
  store.names().length > 0
    ? (await store.loadSession("s")).session
    : await store.createSession("s", {}, [
        { name: "a", config: "x" },
        { name: "b", config: "x" },
      ]);
say("ready");
// What is made and removed besides must never be found half there.
let n = 0;
const churn = async () => {
  for (;;) {
    const extra = await store.createSession(`extra${n++}`, {}, [{ name: "c", config: "x" }]);
    await extra.writePlan(Buffer.from("plan"));
    await extra.remove();
    await Bun.sleep(5);
  }
};
await Promise.all([...session.agents().map(live), churn()]);
