/** The folders: what is in them, with which modes, and how it is removed and renamed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DMDIR, ORDWR, OREAD, OWRITE } from "../../src/ninep/file.ts";
import { agentPath, refusal, type Served, send, serve, take } from "./serve.ts";

let served: Served;
beforeEach(async () => {
  served = await serve();
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

/** `name mode` of all entries, folders with a slash. */
async function listing(path: string): Promise<string[]> {
  const entries = await served.client.readDir(path);
  return entries.map(({ name, mode }) => {
    const bits = (mode & 0o777).toString(8).padStart(4, "0");
    return mode & DMDIR ? `${name}/ ${bits}` : `${name} ${bits}`;
  });
}

/** As `rm -r` does it: what is in a folder first, then the folder. */
async function removeAll(path: string): Promise<void> {
  for (const { name, mode } of await served.client.readDir(path)) {
    if (mode & DMDIR) await removeAll(`${path}/${name}`);
    else await served.client.remove(`${path}/${name}`);
  }
  await served.client.remove(path);
}

describe("listings", () => {
  test("of the root", async () => {
    expect(await listing("")).toEqual([
      "agents 0444",
      "backends 0444",
      "elevate/ 0500",
      "help 0444",
      "lasterr 0444",
      "metrics 0444",
      "models 0444",
      "s/ 0555",
      "session/ 0755",
      "skills 0444",
      "tools 0444",
      "version 0444",
    ]);
    expect((await served.client.stat("")).mode & 0o777).toBe(0o555);
  });

  test("of all sessions", async () => {
    await served.runtime.createSession(new Map([["name", "Z"]]));
    await served.runtime.createSession(new Map([["name", "m"]]));
    const all = ["Z/ 0755", "a/ 0755", "idx 0444", "m/ 0755", "new 0666"];
    expect(await listing("session")).toEqual(all);
    expect(await listing("s")).toEqual(all);
  });

  test("of a session", async () => {
    expect(await listing("session/a")).toEqual([
      "agent/ 0755",
      "cfg 0644",
      "ctl 0200",
      "env 0644",
      "job/ 0755",
      "lasterr 0444",
      "name 0644",
      "plan 0644",
      "remote 0444",
      "remotewait 0444",
    ]);
    expect(await listing("session/a/agent")).toEqual(["default/ 0755", "new 0666"]);
  });

  test("of an agent", async () => {
    expect(await listing(agentPath)).toEqual([
      "cfg 0644",
      "chat 0444",
      "context 0444",
      "cost 0444",
      "ctl 0200",
      "ctxsz 0444",
      "fifo.in 0200",
      "fifo.out 0444",
      "idlewait 0444",
      "machine 0444",
      "machine.mmd 0444",
      "models 0444",
      "offset 0444",
      "prompt 0200",
      "prompt.prev 0444",
      "queue 0644",
      "reply 0444",
      "snapshot 0444",
      "state 0444",
      "statewait 0444",
      "systemprompt 0444",
      "tools 0644",
      "trace 0444",
      "usage 0444",
    ]);
  });

  test("agree with Tstat, and no two files share a qid", async () => {
    const paths = new Map<number, string>();
    for (const folder of ["", "elevate", "session", "session/a", "session/a/agent", agentPath])
      for (const entry of await served.client.readDir(folder)) {
        const path = `${folder}/${entry.name}`;
        const { qid, name } = await served.client.stat(path);
        expect(name).toBe(entry.name);
        expect(Number(qid.path)).toBe(Number(entry.qid.path));
        expect(paths.get(Number(qid.path)) ?? path).toBe(path);
        paths.set(Number(qid.path), path);
      }
    expect(paths.size).toBe(12 + 3 + 3 + 10 + 2 + 24);
  });

  test("stay as they were while they are read", async () => {
    for (let i = 0; i < 200; i++) await served.runtime.createSession(new Map([["name", `n${i}`]]));
    const client = await served.connect(4096);
    const fid = await client.openFile("session");
    await fid.read(0);
    for (let i = 0; i < 200; i += 2) await served.runtime.session(`n${i}`)?.remove();
    const names = (await fid.entries()).map((entry) => entry.name);
    expect(names).toEqual([...names].sort());
    expect(names.length).toBe(103);
  });
});

describe("modes", () => {
  test("are enforced at the open", async () => {
    for (const name of ["prompt", "ctl", "fifo.in"])
      expect(await refusal(served.client.openFile(`${agentPath}/${name}`, OREAD))).toStartWith(
        "permission denied",
      );
    for (const name of ["chat", "state", "fifo.out", "statewait"])
      for (const mode of [OWRITE, ORDWR])
        expect(await refusal(served.client.openFile(`${agentPath}/${name}`, mode))).toStartWith(
          "permission denied",
        );
    expect(await refusal(served.client.openFile("session", OWRITE))).toStartWith("Is a directory");
  });

  test("let nothing be created", async () => {
    for (const folder of ["", "session", "s", "session/a", "session/a/agent", agentPath]) {
      expect(await refusal(served.client.create(`${folder}/sedXYZ`, 0o644, OWRITE))).toStartWith(
        "permission denied",
      );
      expect(await refusal(served.client.mkdir(`${folder}/dir`))).toStartWith("permission denied");
    }
  });

  test("let a shell truncate and touch what can be written", async () => {
    for (const name of ["prompt", "queue", "fifo.in", "tools", "cfg", "ctl"])
      await served.client.wstat(`${agentPath}/${name}`, { length: 0, mtime: 1, atime: 1 });
    for (const name of ["new", "a/name", "a/cfg", "a/env", "a/ctl", "a/plan", "a/agent/new"])
      await served.client.wstat(`session/${name}`, { length: 0, mtime: 1, atime: 1 });
    expect(await refusal(served.client.wstat(`${agentPath}/chat`, { length: 0 }))).toStartWith(
      "permission denied",
    );
    expect(await refusal(served.client.wstat(`${agentPath}/ctl`, { length: 5 }))).toStartWith(
      "Invalid argument",
    );
  });

  test("can be set without effect", async () => {
    await served.client.wstat("session/a/plan", { mode: 0o600 });
    expect((await served.client.stat("session/a/plan")).mode).toBe(0o644);
  });
});

describe("names that do not exist", () => {
  test("are errors that say what was wrong", async () => {
    const walk = (path: string) => refusal(served.client.walk(path));
    expect(await walk("nonsense")).toBe(
      "file does not exist: the root has no nonsense; help says what there is",
    );
    expect(await walk("session/b/ctl")).toBe("file does not exist: no session b; session/idx lists them all");
    expect(await walk("session/a/agent/b")).toBe("file does not exist: session a has no agent b");
    expect(await walk("session/a/nonsense")).toBe("file does not exist: a session has no file nonsense");
    expect(await walk(`${agentPath}/nonsense`)).toBe("file does not exist: an agent has no file nonsense");
    expect(await walk("s/a/nonsense")).toBe(
      "file does not exist: neither the session nor its first agent has a file nonsense",
    );
    expect(await walk("help/x")).toStartWith("not a directory");
  });
});

describe("removing", () => {
  test("a session with rm -r ends it", async () => {
    await served.session.createAgent(new Map([["name", "b"]]));
    await removeAll("session/a");
    expect(served.runtime.sessions()).toEqual([]);
    expect(await refusal(served.client.stat("session/a"))).toStartWith("file does not exist");
    expect(await listing("session")).toEqual(["idx 0444", "new 0666"]);
  });

  test("an agent with rm -r ends that one", async () => {
    await served.session.createAgent(new Map([["name", "b"]]));
    await removeAll("session/a/agent/b");
    expect(served.session.agents().map((agent) => agent.name)).toEqual(["default"]);
  });

  test("a fixed file of a session or agent has no effect", async () => {
    await served.client.remove(`${agentPath}/chat`);
    await served.client.remove("session/a/plan");
    await served.client.remove("session/a/agent/new");
    await served.client.remove("session/a/agent");
    expect(await served.client.readText(`${agentPath}/state`)).toBe("idle\n");
  });

  test("anything else is refused", async () => {
    for (const path of ["help", "session", "s", "session/new", "session/idx", "s/new", ""])
      expect(await refusal(served.client.remove(path))).toStartWith("permission denied");
  });

  test("leaves errors to those who hold its files", async () => {
    const folder = await served.client.walk("session/a");
    const state = await served.client.openFile(`${agentPath}/state`);
    await removeAll("session/a");
    expect(await refusal(folder.stat())).toBe("file does not exist: session removed");
    expect(await refusal(folder.walk(["name"]))).toBe("file does not exist: session removed");
    expect(await refusal(take(state))).toBe("file does not exist: session removed");
  });
});

describe("renaming", () => {
  test("a session with mv, and open files follow", async () => {
    const chat = await served.client.openFile(`${agentPath}/chat`);
    const ctl = await served.client.openFile(`${agentPath}/ctl`, OWRITE);
    const folder = await served.client.walk("session/a");
    const { qid } = await served.client.stat("session/a");
    await served.client.rename("session/a", "b");
    served.agent.chat.add("still here\n");
    expect(await take(chat)).toBe("still here\n");
    await send(ctl, "stop\n");
    expect(served.agent.told).toEqual(["stop"]);
    expect((await folder.stat()).name).toBe("b");
    expect((await served.client.stat("session/b")).qid.path).toBe(qid.path);
    expect(await refusal(served.client.stat("session/a"))).toStartWith("file does not exist");
  });

  test("an agent with mv", async () => {
    const state = await served.client.openFile(`${agentPath}/state`);
    await served.client.rename(agentPath, "writer");
    expect(await take(state)).toBe("idle\n");
    expect(await served.client.readText("session/a/agent/writer/state")).toBe("idle\n");
  });

  test("to a name that is taken or no name is refused", async () => {
    await served.runtime.createSession(new Map([["name", "b"]]));
    expect(await refusal(served.client.rename("session/a", "b"))).toBe(
      "file already exists: session b exists",
    );
    expect(await refusal(served.client.rename("session/a", "new"))).toStartWith("Invalid argument");
    expect(await refusal(served.client.rename("session/a", "x/y"))).toStartWith("Invalid argument");
    expect(served.session.name).toBe("a");
  });

  test("what has a fixed name is refused", async () => {
    for (const path of ["session/a/plan", "session/a/agent", `${agentPath}/chat`])
      expect(await refusal(served.client.rename(path, "x"))).toStartWith("permission denied");
    expect(await refusal(served.client.rename("help", "x"))).toStartWith("permission denied");
  });
});

describe("walking up", () => {
  test("leads out the way that led in", async () => {
    const fid = await served.client.walk(agentPath);
    const path = async (names: string[]) => Number((await fid.walk(names)).qid.path);
    expect(await path(["..", ".."])).toBe(served.session.qid);
    expect(await path(["..", "..", "..", "..", "..", "help"])).toBe(
      Number((await served.client.stat("help")).qid.path),
    );
  });
});
