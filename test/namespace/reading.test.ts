import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Noticed } from "../../src/namespace/stamps.ts";
import { agentPath, refusal, type Served, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const length = async (path: string) => Number((await served.client.stat(path)).length);

describe("a generated file", () => {
  test("is read from one snapshot, byte by byte as well", async () => {
    served.agent.replyText = "the first answer";
    const fid = await served.client.openFile(`${agentPath}/reply`);
    let read = await take(fid, 0, 1);
    served.agent.replyText = "another, longer answer";
    for (;;) {
      const more = await take(fid, read.length, 1);
      if (more === "") break;
      read += more;
    }
    expect(read).toBe("the first answer\n");
  });

  test("stays what it was for as long as it is open", async () => {
    const fid = await served.client.openFile(`${agentPath}/state`);
    served.agent.become("thinking");
    expect(await take(fid)).toBe("thinking\n");
    served.agent.become("idle");
    expect(await take(fid)).toBe("thinking\n");
    expect(await take(fid, 9)).toBe("");
  });

  test("can be read backwards", async () => {
    served.agent.replyText = "0123456789";
    const fid = await served.client.openFile(`${agentPath}/reply`);
    expect(await take(fid, 5)).toBe("56789\n");
    served.agent.replyText = "changed";
    expect(await take(fid, 0, 5)).toBe("01234");
    expect(await take(fid, 1e12)).toBe("");
  });

  test("that could not be made is made when it is asked for again", async () => {
    const fid = await served.client.openFile(`${agentPath}/cfg`);
    served.agent.keys.set("agent", "gone");
    expect(await refusal(take(fid))).toStartWith("file does not exist");
    served.agent.keys.set("agent", "default");
    expect(await take(fid)).toBe("agent=default\n");
  });

  test("shows one content to each open file", async () => {
    const before = await served.client.openFile(`${agentPath}/state`);
    await take(before, 0, 1);
    served.agent.become("thinking");
    const after = await served.client.openFile(`${agentPath}/state`);
    expect(await take(after)).toBe("thinking\n");
    expect(await take(before, 1)).toBe("dle\n");
  });

  test("ends with a newline", async () => {
    for (const name of ["state", "offset", "cost", "usage", "ctxsz", "systemprompt", "models", "machine"])
      expect(await served.client.readText(`${agentPath}/${name}`)).toEndWith("\n");
    for (const name of ["version", "backends", "models", "agents", "tools", "metrics", "help"])
      expect(await served.client.readText(name)).toEndWith("\n");
  });
});

describe("lengths", () => {
  test("are those of the contents", async () => {
    served.agent.replyText = "grüße";
    served.agent.chat.add("hello");
    served.agent.trace.add("{}\n");
    await served.client.writeFile("session/a/plan", "a plan");
    await served.agent.submit("x");
    const folders = ["", "session", "session/a", "session/a/agent", agentPath, "s", "s/a"];
    let checked = 0;
    for (const folder of folders)
      for (const { name, mode, length: told } of await served.client.readDir(folder)) {
        if (!(mode & 0o400) || mode & 0x80000000 || /^(new|.*wait)$/.test(name)) continue;
        const content = await served.client.readFile(`${folder}/${name}`);
        expect([folder, name, Number(told)]).toEqual([folder, name, content.length]);
        checked++;
      }
    expect(checked).toBeGreaterThan(50);
  });

  test("of blocking files leave room for any answer, of clone files are 0", async () => {
    expect(await length(`${agentPath}/statewait`)).toBeGreaterThan(256);
    expect(await length(`${agentPath}/idlewait`)).toBeGreaterThan(256);
    expect(await length("session/new")).toBe(0);
    expect(await length("session/a/agent/new")).toBe(0);
    expect(await length(`${agentPath}/ctl`)).toBe(0);
  });

  test("of a costly file are found out once as long as nothing changes", async () => {
    const path = `${agentPath}/context`;
    expect(await length(path)).toBe(0);
    expect(await length(path)).toBe(0);
    expect(served.agent.contexts).toBe(1);
    await served.agent.submit("x");
    expect(await length(path)).toBe((await served.client.readFile(path)).length);
  });
});

describe("a log", () => {
  test("is read as it is at that moment", async () => {
    const { chat } = served.agent;
    const fid = await served.client.openFile(`${agentPath}/chat`);
    expect(await take(fid)).toBe("");
    chat.add("one\n");
    expect(await take(fid)).toBe("one\n");
    chat.add("two\n");
    expect(await take(fid, 4)).toBe("two\n");
    expect(await take(fid, 8)).toBe("");
    expect(await take(fid, 2, 3)).toBe("e\nt");
  });

  test("that has dropped its beginning is read on from what is kept, without repeats", async () => {
    const { trace } = served.agent;
    trace.add("aa\nbb\ncc\n");
    trace.drop(3);
    const fid = await served.client.openFile(`${agentPath}/trace`);
    expect(await take(fid, 0, 4)).toBe("bb\nc");
    trace.add("dd\n");
    expect(await take(fid, 4)).toBe("c\ndd\n");
    expect(await take(fid, 9)).toBe("");
    trace.add("ee\n");
    expect(await take(fid, 9)).toBe("ee\n");
    expect(await length(`${agentPath}/trace`)).toBe(15);
  });

  test("that has dropped its beginning can be read from its own offsets", async () => {
    const { trace } = served.agent;
    trace.add("aa\nbb\ncc\n");
    trace.drop(3);
    const fid = await served.client.openFile(`${agentPath}/trace`);
    expect(await take(fid, 6)).toBe("cc\n");
  });
});

describe("mtime and version", () => {
  const moved = async (path: string, change: () => unknown) => {
    const before = await served.client.stat(path);
    await change();
    const after = await served.client.stat(path);
    return [after.mtime !== before.mtime, after.qid.vers !== before.qid.vers];
  };

  test("move when the content does", async () => {
    expect(await moved(`${agentPath}/state`, () => served.agent.become("thinking"))).toEqual([true, true]);
    expect(await moved("session/a/plan", () => served.session.writePlan(Buffer.from("x")))).toEqual([
      true,
      true,
    ]);
    expect(await moved("session/a", () => served.session.createAgent(new Map([["name", "b"]])))).toEqual([
      true,
      true,
    ]);
    expect((await moved("session", () => served.runtime.createSession(new Map())))[1]).toBe(true);
  });

  test("move also for files that only their content speaks for", async () => {
    const change = () => {
      served.runtime.modelList += "\nbackend=script model=n";
    };
    expect((await moved("models", change))[1]).toBe(true);
    expect((await moved("session/idx", () => served.agent.become("calling: shell")))[1]).toBe(true);
  });

  test("stay when it does", async () => {
    for (const path of [
      "help",
      "models",
      "session/idx",
      `${agentPath}/state`,
      `${agentPath}/machine`,
      "session/a",
    ])
      expect(await moved(path, () => served.client.readDir(""))).toEqual([false, false]);
  });
});

test("what is noticed again unchanged keeps its time", async () => {
  const noticed = new Noticed();
  const first = noticed.see(1, 5);
  await Bun.sleep(3);
  expect(noticed.see(1, 5)).toEqual(first);
  expect(noticed.see(1, 6).mtime).toBeGreaterThan(first.mtime);
});

test("idx has one line an agent, sorted by session", async () => {
  await served.runtime.createSession(new Map([["name", "Z"]]));
  await served.session.createAgent(new Map([["name", "b"]]));
  served.session.agents()[0]?.keys.set("cwd", "/with\ttab");
  served.agent.become("calling: shell");
  expect(await served.client.readText("session/idx")).toBe(
    "Z\tdefault\tidle\tscript\tm\t/\n" +
      "a\tdefault\tcalling: shell\tscript\tm\t/with?tab\n" +
      "a\tb\tidle\tscript\tm\t/\n",
  );
});

test("a file that cannot be made is listed all the same, and says why when it is read", async () => {
  served.agent.keys.set("agent", "gone");
  const entries = await served.client.readDir(agentPath);
  expect(entries.map((entry) => entry.name)).toContain("cfg");
  expect(await refusal(served.client.readText(`${agentPath}/cfg`))).toBe(
    "file does not exist: no agent config gone",
  );
});

test("an open file says that its session is gone", async () => {
  const fid = await served.client.openFile(`${agentPath}/chat`);
  await served.session.remove();
  expect(await refusal(take(fid))).toBe("file does not exist: session removed");
  await fid.clunk();
});
