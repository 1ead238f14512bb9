import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Fid } from "../../src/ninep/client.ts";
import { agentPath, refusal, type Served, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const open = (name: string) => served.client.openFile(`${agentPath}/${name}`);

/** Starts a read at offset 0 and returns once it waits. */
async function waiting(fid: Fid, signal?: AbortSignal): Promise<{ answer: Promise<string> }> {
  const before = served.agent.watchers;
  const answer = fid.read(0, undefined, signal).then((data) => data.toString());
  answer.catch(() => {});
  while (served.agent.watchers === before) await served.client.stat("");
  return { answer };
}

describe("statewait", () => {
  test("answers with the state when it changes", async () => {
    const { answer } = await waiting(await open("statewait"));
    served.agent.become("thinking");
    expect(await answer).toBe("thinking\n");
  });

  test("answers at once when the state changed after the open", async () => {
    const fid = await open("statewait");
    served.agent.become("thinking");
    served.agent.become("idle");
    expect(await take(fid)).toBe("idle\n");
  });

  test("ends after its answer and then waits for the next change", async () => {
    const fid = await open("statewait");
    served.agent.become("thinking");
    expect(await take(fid, 0, 3)).toBe("thi");
    expect(await take(fid, 3)).toBe("nking\n");
    expect(await take(fid, 9)).toBe("");
    const { answer } = await waiting(fid);
    served.agent.become("calling: shell");
    expect(await answer).toBe("calling: shell\n");
  });

  test("misses no change that came between two reads", async () => {
    const fid = await open("statewait");
    served.agent.become("thinking");
    expect(await take(fid)).toBe("thinking\n");
    served.agent.become("calling: shell");
    served.agent.become("idle");
    expect(await take(fid)).toBe("idle\n");
  });

  test("does not answer without a change", async () => {
    const { answer } = await waiting(await open("statewait"));
    served.agent.notify();
    served.agent.become("idle");
    served.agent.become("thinking");
    expect(await answer).toBe("thinking\n");
  });

  test("counts from the open of each file", async () => {
    const early = await open("statewait");
    served.agent.become("thinking");
    const { answer } = await waiting(await open("statewait"));
    expect(await take(early)).toBe("thinking\n");
    served.agent.become("idle");
    expect(await answer).toBe("idle\n");
  });

  test("holds up nothing else on its connection", async () => {
    const waits = await Promise.all(Array.from({ length: 50 }, () => open("statewait")));
    const answers = waits.map((fid) => take(fid));
    expect(await served.client.readText(`${agentPath}/state`)).toBe("idle\n");
    served.agent.become("thinking");
    expect(await Promise.all(answers)).toEqual(Array(50).fill("thinking\n"));
    expect(served.agent.watchers).toBe(0);
  });

  test("is ended by a flush, and then waits again", async () => {
    const fid = await open("statewait");
    const control = new AbortController();
    const { answer } = await waiting(fid, control.signal);
    control.abort();
    expect(await refusal(answer)).toBe("Interrupted system call");
    while (served.agent.watchers > 0) await served.client.stat("");
    served.agent.become("thinking");
    expect(await take(fid)).toBe("thinking\n");
  });

  test("is ended by the clunk of its file", async () => {
    const fid = await open("statewait");
    const { answer } = await waiting(fid);
    await fid.clunk();
    expect(await refusal(answer)).toBe("Interrupted system call");
    expect(served.agent.watchers).toBe(0);
  });

  test("is ended by the end of its connection", async () => {
    const client = await served.connect();
    await waiting(await client.openFile(`${agentPath}/statewait`));
    client.close();
    while (served.agent.watchers > 0) await served.client.stat("");
  });

  test("is ended by the removal of its session or agent", async () => {
    const other = await served.session.createAgent(new Map([["name", "b"]]));
    const { answer } = await waiting(await open("statewait"));
    const fid = await served.client.openFile("session/a/agent/b/statewait");
    const second = take(fid);
    second.catch(() => {});
    while (other.watchers === 0) await served.client.stat("");
    await other.remove();
    expect(await refusal(second)).toBe("file does not exist: agent or session removed");
    await served.client.remove("session/a");
    expect(await refusal(answer)).toBe("file does not exist: session removed");
  });
});

describe("idlewait", () => {
  test("answers at once while the agent is idle", async () => {
    const fid = await open("idlewait");
    expect(await take(fid)).toBe("idle\n");
    expect(await take(fid, 5)).toBe("");
    expect(await take(fid)).toBe("idle\n");
  });

  test("waits for the end of a turn, and for what starts by itself after it", async () => {
    served.agent.become("thinking");
    const { answer } = await waiting(await open("idlewait"));
    served.agent.become("calling: shell");
    served.agent.become("idle", false);
    served.agent.become("thinking");
    served.agent.become("idle");
    expect(await answer).toBe("idle\n");
  });

  test("is ended by the removal of its session", async () => {
    served.agent.become("thinking");
    const { answer } = await waiting(await open("idlewait"));
    await served.session.remove();
    expect(await refusal(answer)).toBe("file does not exist: session removed");
  });
});

describe("remotewait", () => {
  test("answers with the line of remote when that changes, also between two reads", async () => {
    const { remote } = served.session;
    const fid = await served.client.openFile("session/a/remotewait");
    remote.become("connecting me@h1");
    expect(await take(fid)).toBe("connecting me@h1\n");
    const answer = take(fid);
    while (remote.watchers === 0) await served.client.stat("");
    remote.become("ready me@h1");
    expect(await answer).toBe("ready me@h1\n");
    expect(await served.client.readText("session/a/remote")).toBe("ready me@h1\n");
  });

  test("says that the session is gone to who waits", async () => {
    const fid = await served.client.openFile("session/a/remotewait");
    const answer = take(fid).catch((error: Error) => error.message);
    while (served.session.remote.watchers === 0) await served.client.stat("");
    served.session.removed = true;
    served.session.remote.become("closed me@h1");
    expect(await answer).toContain("session removed");
  });
});
