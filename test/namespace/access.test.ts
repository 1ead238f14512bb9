/** What the tree is to a tool: doc/NAMESPACE.md, "Who may do what". */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import type { Client } from "../../src/ninep/client.ts";
import { dial } from "../../src/ninep/dial.ts";
import { ORDWR, OREAD, OWRITE } from "../../src/ninep/file.ts";
import { isChild } from "../../src/session/limits.ts";
import type { FakeAgent, FakeSession } from "./fake.ts";
import { agentPath, denied, missing, refusal, type Served, send, serve, take } from "./serve.ts";

let served: Served;
/** A tool of the agent `default` of session `a`. */
let tool: Client;
beforeEach(async () => {
  served = await serve();
  tool = await served.tool(served.agent);
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
});

const session = (name: string, keys: Record<string, string> = {}): Promise<FakeSession> =>
  served.runtime.createSession(new Map(Object.entries({ name, ...keys })));
const names = async (path: string, client = tool) => (await client.readDir(path)).map(({ name }) => name);
/** Names and permission bits, as `ls -l` has them. */
const modes = async (path: string) =>
  Object.fromEntries((await tool.readDir(path)).map(({ name, mode }) => [name, (mode & 0o777).toString(8)]));

describe("the root", () => {
  test("has what there is to know, and neither metrics nor elevate", async () => {
    expect(await names("/")).toEqual(
      "agents backends help lasterr models s session skills tools version".split(" "),
    );
    for (const name of "agents backends help lasterr models skills tools version".split(" "))
      await tool.readText(name);
    await denied(tool.readText("metrics"), /metrics: a tool may read here only help version lasterr/);
    await missing(tool.readDir("elevate"));
    await missing(tool.writeFile("elevate/ctl", "allow 1\n"));
  });

  test("is the same whatever the tool says of itself", async () => {
    for (const options of [{ uname: "root" }, { aname: "/" }, { aname: "token:00" }, { uname: "owner" }]) {
      const client = await dial(served.tools.unix(served.agent), options);
      expect(await names("/", client)).toEqual(await names("/"));
      client.close();
    }
    expect(await refusal(dial(served.tools.unix(served.agent), { aname: "owner" }))).toStartWith(
      "file does not exist: no tree",
    );
  });

  test("is where .. ends, whichever way one came", async () => {
    await session("b");
    for (const path of ["../../..", `${agentPath}/../../../../..`, "s/a/../..", "s/a/agent/../../.."]) {
      const fid = await tool.root.walk(path.split("/"));
      await fid.open(OREAD);
      expect((await fid.entries()).map(({ name }) => name)).not.toContain("elevate");
      await fid.clunk();
    }
    for (const path of ["s/a/../b", "session/a/../b/plan", "s/a/../../session/b"])
      await missing(tool.walk(path));
  });

  test("has a lasterr of the tool's own", async () => {
    await denied(tool.readText("metrics"));
    expect(await tool.readText("lasterr")).toContain("/metrics: permission denied");
    expect(await served.client.readText("lasterr")).toBe("");
    await refusal(served.client.readText("nonsense"));
    expect(await tool.readText("lasterr")).not.toContain("nonsense");
  });
});

describe("other sessions", () => {
  test("do not exist", async () => {
    const other = await session("b");
    expect(await names("session")).toEqual(["a", "idx", "new"]);
    expect(await names("s")).toEqual(["a", "idx", "new"]);
    expect(await tool.readText("session/idx")).toBe("a\tdefault\tidle\tscript\tm\t/\n");
    for (const top of ["session", "s"]) {
      expect(await refusal(tool.stat(`${top}/b`))).toBe(
        await refusal(tool.stat(`${top}/c`)).then((told) => told.replaceAll("c;", "b;")),
      );
      await missing(tool.writeFile(`${top}/b/plan`, "x"));
      await missing(tool.writeFile(`${top}/b/agent/default/prompt`, "x"));
      await missing(tool.remove(`${top}/b`));
      await missing(tool.rename(`${top}/b`, "a__b"));
    }
    expect(other.agents()[0]!.prompts).toEqual([]);
    // What was tried on it is nothing that who looks into it should read.
    expect(await served.client.readText("session/b/lasterr")).toBe("");
  });

  test.each([
    ["a__b", "a", true],
    ["a__b__c", "a", true],
    ["a__b__c", "a__b", true],
    ["ab", "a", false],
    ["a_b", "a", false],
    ["a", "a", false],
    ["a__", "a", false],
    ["a", "a__b", false],
    ["a___b", "a", false],
    ["a___b", "a_", true],
    ["a____b", "a", false],
    ["a____b", "a_", false],
    ["a____b", "a__", true],
    ["b__a", "a", false],
  ])("%s is a child of %s: %p", (name, parent, is) => {
    expect(isChild(name, parent)).toBe(is);
  });

  test("that are no children stay unseen, however much their names look like it", async () => {
    for (const name of ["ab", "a_b", "a___b", "A__b", "b__a"]) await session(name);
    expect(await names("session")).toEqual(["a", "idx", "new"]);
  });

  test("a child does not see its parent, nor its siblings", async () => {
    const child = await session("a__b");
    await session("a__c");
    const client = await served.tool(child.agents()[0]!);
    expect(await names("session", client)).toEqual(["a__b", "idx", "new"]);
    await missing(client.stat("session/a"));
  });
});

describe("the own session", () => {
  test("can be read wholly; its plan can be written and agents added", async () => {
    expect(await modes("session/a")).toEqual({
      agent: "555",
      cfg: "444",
      env: "444",
      lasterr: "444",
      job: "555",
      name: "444",
      plan: "644",
      remote: "444",
      remotewait: "444",
    });
    expect((await modes("session/a/agent")).new).toBe("666");
    await tool.writeFile("session/a/plan", "- [ ] it\n");
    await tool.appendFile("s/a/plan", "- [ ] more\n");
    expect(Buffer.from(served.session.text).toString()).toBe("- [ ] it\n- [ ] more\n");
  });

  test("is no more than that", async () => {
    for (const top of ["session/a", "s/a"]) {
      const may = /a tool may write here only plan/;
      await denied(tool.writeFile(`${top}/name`, "c\n"), may);
      await denied(tool.writeFile(`${top}/cfg`, "share=b\n"), may);
      await denied(tool.writeFile(`${top}/env`, "PATH=/x\n"), may);
      for (const verb of ["stop", "kill", "rename c", "save"])
        await denied(tool.writeFile(`${top}/ctl`, `${verb}\n`), may);
      await denied(tool.openFile(`${top}/cfg`, ORDWR), may);
      await denied(tool.wstat(`${top}/cfg`, { length: 0 }), may);
      await denied(tool.rename(top, "c"));
      await denied(tool.remove(top));
      await denied(tool.remove(`${top}/plan`));
      await denied(tool.create(`${top}/x`, 0o644, OWRITE));
    }
    await denied(tool.rename("session/a/plan", "c"));
    await denied(tool.remove("session/a/agent"));
    expect(served.session.told).toEqual([]);
    expect(served.session.name).toBe("a");
  });

  test("keeps keys of providers to itself", async () => {
    await served.client.writeFile("session/a/env", "OLLIE_OPENAI_KEY=sk-1\nLANG=C\n");
    expect(await tool.readText("session/a/env")).toBe("LANG=C\n");
    expect(Number((await tool.stat("session/a/env")).length)).toBe("LANG=C\n".length);
    expect(await served.client.readText("session/a/env")).toBe("OLLIE_OPENAI_KEY=sk-1\nLANG=C\n");
  });
});

describe("agents of the own session", () => {
  let other: FakeAgent;
  beforeEach(async () => {
    other = await served.session.createAgent(new Map([["name", "other"]]));
  });

  test("can be asked, and read", async () => {
    for (const name of ["default", "other"]) {
      const place = `session/a/agent/${name}`;
      await tool.writeFile(`${place}/prompt`, "do it\n");
      await tool.writeFile(`${place}/queue`, "then this\n");
      await tool.writeFile(`${place}/fifo.in`, "and that\n");
      for (const file of "chat reply offset state cost usage ctxsz context systemprompt cfg tools".split(" "))
        await tool.readText(`${place}/${file}`);
    }
    expect(other.prompts).toEqual(["do it"]);
    expect(other.waiting).toEqual(["then this", "and that"]);
  });

  test("load tools for themselves only", async () => {
    await tool.writeFile(`${agentPath}/tools`, "file_read\n-shell\n");
    expect(served.agent.tools()).toEqual(["file_read"]);
    await denied(
      tool.writeFile("session/a/agent/other/tools", "file_read\n"),
      /tools: a tool may write here only prompt queue fifo.in/,
    );
    expect(other.tools()).toEqual(["shell"]);
  });

  test("take no settings and no verbs", async () => {
    for (const name of ["default", "other"]) {
      const place = `session/a/agent/${name}`;
      await denied(tool.writeFile(`${place}/cfg`, "agent=default\n"));
      for (const verb of ["stop", "kill", "clear", "inject x", "model m", "rename x"])
        await denied(tool.writeFile(`${place}/ctl`, `${verb}\n`));
      await denied(tool.rename(place, "x"));
      await denied(tool.remove(place));
      await denied(tool.remove(`${place}/prompt`));
    }
    expect([...served.agent.told, ...other.told]).toEqual([]);
  });

  test("are not commanded by a prompt that begins with a slash", async () => {
    for (const text of ["/stop\n", "/model x", "/", "/nonsense\n"])
      await denied(tool.writeFile(`${agentPath}/prompt`, text), /a tool's prompt is no verb; write \/\//);
    // In pieces, none of which is a verb.
    const fid = await tool.openFile(`${agentPath}/prompt`, OWRITE);
    await send(fid, `/${"x".repeat(1023)}`);
    await denied(fid.clunk());
    expect(served.agent.told).toEqual([]);
    expect(served.agent.prompts).toEqual([]);
    await tool.writeFile(`${agentPath}/prompt`, "//stop\n");
    await tool.writeFile(`${agentPath}/prompt`, "/a\n/b\n");
    await tool.writeFile(`${agentPath}/queue`, "/stop\n");
    expect(served.agent.prompts).toEqual(["/stop", "/a\n/b"]);
    expect(served.agent.waiting).toEqual(["/stop"]);
    expect(served.agent.told).toEqual([]);
  });
});

describe("child sessions", () => {
  let child: FakeSession;
  beforeEach(async () => {
    child = await session("a__b");
    await session("a__b__c");
  });

  test("are listed, read and asked, down to the last", async () => {
    expect(await names("session")).toEqual(["a", "a__b", "a__b__c", "idx", "new"]);
    expect(await tool.readText("s/idx")).toMatch(/^a\t.*\na__b\tdefault\tidle\tscript\tm\t\/\na__b__c\t/);
    await tool.writeFile("session/a__b__c/agent/default/prompt", "dig\n");
    await tool.writeFile("s/a__b/queue", "later\n");
    expect(await tool.readText("session/a__b__c/agent/default/state")).toBe("thinking\n");
    expect(child.agents()[0]!.waiting).toEqual(["later"]);
  });

  test("can be stopped and removed, and nothing more", async () => {
    expect((await modes("session/a__b")).ctl).toBe("200");
    await tool.writeFile("session/a__b/ctl", "stop\n");
    await denied(
      tool.writeFile("session/a__b/ctl", "rename c\n"),
      /rename: a tool may write here only stop kill/,
    );
    await denied(tool.writeFile("session/a__b/ctl", "stop\nsave\n"));
    expect(child.told).toEqual(["stop"]);
    await tool.writeFile("session/a__b/agent/default/ctl", "stop\n");
    // What `kill` does before its close.
    const ctl = await tool.openFile("session/a__b__c/ctl", OWRITE);
    await send(ctl, "stop\n");
    await served.runtime.session("a__b__c")!.remove();
    await ctl.clunk();
    await denied(tool.writeFile("session/a__b/agent/default/ctl", "inject x\n"));
    expect(child.agents()[0]!.told).toEqual(["stop"]);
    for (const [file, text] of [
      ["plan", "x"],
      ["cfg", "share=b"],
      ["env", "A=1"],
      ["name", "a__c"],
      ["agent/new", "name=x"],
      ["agent/default/cfg", "model=m"],
      ["agent/default/tools", "file_read"],
    ])
      await denied(tool.writeFile(`session/a__b/${file}`, `${text}\n`));
    await tool.remove("session/a__b/plan");
    await tool.remove("session/a__b/agent/default");
    await tool.remove("session/a__b/agent");
    await tool.remove("session/a__b");
    expect(served.runtime.session("a__b")).toBeUndefined();
  });

  test("keep their names, and no other session becomes one", async () => {
    for (const name of ["c", "a__c", "a"]) {
      await denied(tool.rename("session/a__b", name));
      await denied(tool.rename("s/a__b", name));
      await denied(tool.rename("session/a__b/agent/default", name));
    }
    await denied(tool.rename("session/a", "a__x"));
    expect(child.name).toBe("a__b");
  });

  test("follow the names that the owner gives", async () => {
    await served.client.rename("session/a", "z");
    expect(await names("session")).toEqual(["idx", "new", "z"]);
    await served.client.rename("session/a__b", "z__b");
    expect(await names("session")).toEqual(["idx", "new", "z", "z__b"]);
    await tool.writeFile("session/z/plan", "still here");
  });
});

describe("sessions that share", () => {
  beforeEach(async () => {
    await session("b", { share: "x,a,y" });
    await session("c", { share: "ab,a__b" });
  });

  test("can be asked, and show what it takes to get the answer", async () => {
    expect(await names("session")).toEqual(["a", "b", "idx", "new"]);
    expect(await names("session/b")).toEqual(["agent"]);
    expect(await names("session/b/agent")).toEqual(["default"]);
    expect(await modes("session/b/agent/default")).toEqual({
      chat: "444",
      idlewait: "444",
      offset: "444",
      prompt: "200",
      queue: "200",
      reply: "444",
      state: "444",
      statewait: "444",
    });
    await tool.writeFile("session/b/agent/default/prompt", "help me\n");
    await tool.writeFile("s/b/queue", "and then\n");
    const { prompts, waiting } = served.runtime.session("b")!.agents()[0]!;
    expect([prompts, waiting]).toEqual([["help me"], ["and then"]]);
    expect(await tool.readText("s/b/state")).toBe("thinking\n");
    expect(await tool.readText("session/idx")).toContain("b\tdefault\tthinking\t?\t?\t?\n");
  });

  test("show and take nothing more", async () => {
    const place = "session/b/agent/default";
    for (const file of ["queue", "fifo.out", "context", "systemprompt", "cfg", "tools", "cost", "trace"])
      await denied(
        tool.readText(`${place}/${file}`),
        /a tool may read here only chat reply offset state statewait idlewait/,
      );
    for (const file of ["plan", "cfg", "env", "name", "lasterr"]) {
      await denied(tool.readText(`session/b/${file}`), /a tool may read here nothing/);
      await denied(tool.writeFile(`s/b/${file}`, "x=1\n"));
    }
    await denied(tool.writeFile("session/b/agent/new", "name=x\n"));
    await denied(tool.writeFile("session/b/ctl", "stop\n"));
    await denied(tool.writeFile(`${place}/ctl`, "stop\n"));
    await denied(tool.writeFile(`${place}/prompt`, "/stop\n"));
    await denied(tool.remove("session/b"));
    await denied(tool.remove(place));
  });

  test("share in one direction, and with nobody's children", async () => {
    const back = await served.tool(served.runtime.session("b")!.agents()[0]!);
    expect(await names("session", back)).toEqual(["b", "idx", "new"]);
    const child = await session("a__x");
    const client = await served.tool(child.agents()[0]!);
    expect(await names("session", client)).toEqual(["a__x", "idx", "new"]);
  });

  test("stop sharing, also for what is open", async () => {
    const prompt = await tool.openFile("session/b/agent/default/prompt", OWRITE);
    const late = await tool.openFile("session/b/agent/default/prompt", OWRITE);
    const chat = await tool.openFile("session/b/agent/default/chat", OREAD);
    await send(prompt, "half of it");
    await served.client.writeFile("session/b/cfg", "share=x\n");
    await missing(send(late, "x"));
    await missing(take(chat));
    await missing(prompt.clunk());
    await missing(late.clunk());
    expect(served.runtime.session("b")!.agents()[0]!.prompts).toEqual([]);
  });
});

describe("making", () => {
  test("is told who asks, at every write", async () => {
    const made: unknown[] = [];
    const { runtime, session } = served;
    const { createSession, amendSession } = runtime;
    runtime.createSession = (keys, ...by) => {
      made.push([...keys, by]);
      return createSession.call(runtime, keys);
    };
    runtime.amendSession = (it, keys, ...by) => {
      made.push([...keys, by]);
      return amendSession.call(runtime, it, keys);
    };
    const { createAgent, amendAgent } = session;
    session.createAgent = (keys, ...by) => {
      made.push([...keys, by]);
      return createAgent.call(session, keys);
    };
    session.amendAgent = (it, keys, ...by) => {
      made.push([...keys, by]);
      return amendAgent.call(session, it, keys);
    };
    for (const path of ["session/new", "s/new", "session/a/agent/new"]) {
      const fid = await tool.openFile(path, ORDWR);
      await send(fid, `name=${path.replaceAll("/", "")}\n`);
      await send(fid, "temperature=1\n");
      expect(await take(fid, 0)).toBe(`${path.replaceAll("/", "")}\n`);
      await fid.clunk();
    }
    expect(made).toHaveLength(6);
    for (const one of made as unknown[][]) expect(one.at(-1)).toEqual([served.agent]);
  });
});

describe("when the agent is removed", () => {
  test("its tools can do nothing any more, with what is open neither", async () => {
    await served.session.createAgent(new Map([["name", "other"]]));
    const other = served.session.agent("other")!;
    const prompt = await tool.openFile("session/a/agent/other/prompt", OWRITE);
    const plan = await tool.openFile("session/a/plan", ORDWR);
    const making = await tool.openFile("session/new", ORDWR);
    const chat = await tool.openFile("session/a/agent/other/chat");
    const folder = await tool.walk("session/a");
    await send(prompt, "half of it");
    await send(plan, "new plan");
    // Held back, since more may follow: it would be carried out at the close.
    await send(making, "name=x".padEnd(1024, "x"));
    const wait = refusal(take(await tool.openFile("session/a/agent/other/statewait")));
    await tool.stat("");
    await served.agent.remove();
    expect(await wait).toStartWith("file does not exist: the agent whose tool this is has been removed");
    for (const fid of [prompt, plan, making]) await missing(send(fid, "more"));
    await missing(take(chat));
    await missing(folder.stat());
    await missing(folder.walk(["plan"]));
    await missing(tool.readText("version"));
    await missing(tool.readDir("/"));
    for (const fid of [prompt, plan, making]) await missing(fid.clunk());
    expect(other.prompts).toEqual([]);
    expect(served.session.text).toHaveLength(0);
    expect(served.runtime.sessions().map(({ name }) => name)).toEqual(["a"]);
  });

  test("the same with its session; and its address is gone", async () => {
    const address = served.tools.unix(served.agent);
    const path = address.slice("unix!".length);
    expect(existsSync(path)).toBe(true);
    await served.session.remove();
    await missing(tool.readText("version"));
    expect(existsSync(path)).toBe(false);
    expect(await refusal(dial(address))).toContain("no server answers");
  });
});

test("the owner's tree is as it was", async () => {
  await session("b");
  expect(await names("session", served.client)).toEqual(["a", "b", "idx", "new"]);
  expect(await names("/", served.client)).toContain("metrics");
  const [entry] = (await served.client.readDir("session")).filter(({ name }) => name === "a");
  expect(entry!.mode & 0o777).toBe(0o755);
  await served.client.writeFile(`${agentPath}/prompt`, "/stop\n");
  expect(served.agent.told).toEqual(["stop"]);
});
