/** Elevation from outside: a scripted model wants out of the sandbox, and people, brokers and nobody at all answer. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dial } from "../../src/ninep/dial.ts";
import { FakeBroker } from "../elevate/helper.ts";
import { dist, run, startServer, succeeded, type TestServer, until } from "./harness.ts";
import { Terminal } from "./terminal.ts";

setDefaultTimeout(120_000);

/** `! LINE` runs a command line outside of the sandbox, and the answer is its result. */
const rules = [
  {
    match: { user: "/^! (.*)/s" },
    do: [{ calls: [{ name: "shell", args: { command: "$1", elevated: true } }] }],
  },
  { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
  { do: [{ text: "Heard." }] },
];

let server: TestServer;
const socket = () => join(server.home.folder, "run/ollie/elevate.sock");

beforeAll(async () => {
  server = await startServer({ scenario: { rules } });
});
afterAll(() => server?.stop());

/** Submits a prompt, until somebody is there who can answer, and comes back with the request's line when its call waits. */
async function submitted(session: string, line: string): Promise<string> {
  await until("it waits", async () => {
    const state = await server.read(`s/${session}/state`);
    if (state === "idle\n") await server.write(`s/${session}/prompt`, `! ${line}`);
    return state === "approving: shell\n";
  });
  return until("the request is listed", async () =>
    (await server.read("elevate/pending")).split("\n").find((row) => row.split("\t")[1] === session),
  );
}

async function reply(session: string): Promise<string> {
  await server.read(`s/${session}/idlewait`);
  return server.read(`s/${session}/reply`);
}

/** Somebody who has `elevate/wait` open until `leave`. */
async function attendant(): Promise<{ leave(): Promise<void> }> {
  const reader = await dial(server.address);
  await reader.openFile("elevate/wait");
  return {
    async leave() {
      reader.close();
      await reader.ended;
    },
  };
}

describe("nobody is there", () => {
  test("the call is denied at once, the model and the user are told what to do", async () => {
    const session = await server.create();
    const text = await server.ask(session, "! : >ran");
    expect(text).toContain("shell was not run");
    expect(text).toContain("olliesrv elevate");
    expect(text).toContain("Do not try to reach the same in another way");
    expect(existsSync(join(server.home.work, "ran"))).toBe(false);
    const chat = await server.read(`s/${session}/chat`);
    expect(chat).toMatch(
      /\[\[\[info [^\n]*\nshell waits to be allowed to run outside of the sandbox[^\n]*\n: >ran\n/,
    );
    expect(chat).toMatch(/\nDenied: shell: nobody is there/);
    expect(await server.read("elevate/pending")).toBe("");
  });

  test("o ask ends normally and prints what the model says of it", async () => {
    const { status, stdout } = await server.o("ask", "! id");
    expect(status).toBe(0);
    expect(stdout).toContain("was not run: it needs the user's permission, which was denied");
  });

  test("the journal has a refused call that never began", async () => {
    const session = await server.create("name=journalled");
    await server.ask(session, "! id");
    const file = join(server.home.state, "sessions/journalled/agents/default/journal.jsonl");
    const records = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.filter(({ t }) => t === "call")).toEqual([]);
    expect(records.find(({ t }) => t === "result")).toMatchObject({ ok: false, how: "refused" });
  });
});

describe("a person who reads elevate/", () => {
  let there: Awaited<ReturnType<typeof attendant>>;
  beforeAll(async () => {
    there = await attendant();
  });
  afterAll(() => there.leave());

  test("is shown a request by wait, allows it by ctl, and the result says so", async () => {
    const session = await server.create();
    const row = await submitted(session, "echo out of the cage");
    expect(await server.read("elevate/wait")).toBe(`${row}\n`);
    const [id, ...about] = row.split("\t");
    expect(about).toEqual([session, "default", "shell", "echo out of the cage"]);
    await server.write("elevate/ctl", `allow ${id}\n`);
    expect(await reply(session)).toBe("out of the cage\n[elevated: allowed by the user (once)]\n");
    expect(server.log).toMatch(/"decision":"allow","scope":"once","by":"owner","msg":"elevation answered"/);
  });

  test("is asked again for the same command, unless it was allowed for the session; another one is another", async () => {
    const session = await server.create();
    const allow = async (line: string, scope: string) => {
      const [id] = (await submitted(session, line)).split("\t");
      succeeded(await server.o("approve", id!, scope));
      return reply(session);
    };
    expect(await allow("echo a", "once")).toContain("(once)");
    expect(await allow("echo a", "session")).toContain("(session)");
    expect(await server.ask(session, "! echo a")).toBe("a\n[elevated: allowed by the user (session)]\n");
    expect(await allow("echo b", "once")).toContain("(once)");
    expect(await allow("echo a ", "once")).toContain("(once)");
    const other = await server.create();
    const [id] = (await submitted(other, "echo a")).split("\t");
    succeeded(await server.o("approve", "--deny", id!, "not", "there"));
    expect(await reply(other)).toContain("which was denied (not there)");
  });

  test("can stop the turn instead: the request is gone", async () => {
    const session = await server.create();
    const [id] = (await submitted(session, "echo never")).split("\t");
    await server.write(`s/${session}/ctl`, "stop");
    await server.read(`s/${session}/idlewait`);
    expect(await server.read("elevate/pending")).not.toContain(id!);
    expect(await server.read(`s/${session}/chat`)).toContain("Cancelled by the user before it ran.");
    const { status, stderr } = await server.o("approve", id!);
    expect([status, stderr]).toEqual([1, expect.stringContaining(`no request ${id} waits`)]);
  });

  test("removes the session: the request is gone", async () => {
    const session = await server.create();
    const [id] = (await submitted(session, "echo never")).split("\t");
    succeeded(await server.p9("rm", "-r", `session/${session}`));
    expect(await server.read("elevate/pending")).not.toContain(id!);
  });
});

describe("a broker at OLLIE_ELEVATE_SOCKET", () => {
  let broker: FakeBroker;
  let other: TestServer;
  let decide: (question: { id: string; command: string }, write: (text: string) => void) => void;
  beforeAll(async () => {
    broker = new FakeBroker((question, write) => decide(question, write));
    other = await startServer({
      scenario: { rules },
      config: `OLLIE_ELEVATE_SOCKET=${broker.path}\nOLLIE_ELEVATE_TIMEOUT=1\n`,
    });
  });
  afterAll(async () => {
    broker?.stop();
    await other?.stop();
  });

  test("allows", async () => {
    decide = ({ id }, write) => write(`${JSON.stringify({ id, decision: "allow", scope: "session" })}\n`);
    const session = await other.create();
    expect(await other.ask(session, "! echo yes")).toBe("yes\n[elevated: allowed by the user (session)]\n");
    expect(broker.told[0]).toMatchObject({ session, agent: "default", tool: "shell", command: "echo yes" });
    expect(broker.told[0]!.cwd).toBe(other.home.work);
  });

  test("denies, with a reason for the model", async () => {
    decide = ({ id }, write) =>
      write(`${JSON.stringify({ id, decision: "deny", reason: "on a Friday?" })}\n`);
    expect(await other.ask(await other.create(), "! echo no")).toContain("denied (on a Friday?)");
  });

  test("says nothing until the time is up", async () => {
    decide = () => {};
    expect(await other.ask(await other.create(), "! echo no")).toContain("nobody answered within 1 s");
  });

  test("dies", async () => {
    decide = () => broker.hangUp();
    expect(await other.ask(await other.create(), "! echo no")).toContain("nobody is there who could answer");
  });
});

describe("olliesrv elevate", () => {
  /** A program that stands in for a dialog: says what it was shown, and answers. */
  function dialog(name: string, script: string): Record<string, string> {
    const file = join(server.home.folder, name);
    writeFileSync(file, `#!/bin/sh\nprintf '%s\\n' "$@" >"${file}.shown"\n${script}\n`);
    chmodSync(file, 0o755);
    return { DISPLAY: ":99", PATH: `${server.home.folder}:${server.home.env.PATH}` };
  }

  /** Starts it with these variables; resolves when it listens. */
  async function broker(env: Record<string, string>, ...args: string[]) {
    const child = Bun.spawn([join(dist, "olliesrv"), "elevate", ...args], {
      env: { ...server.home.env, ...env },
      cwd: server.home.work,
      stdout: "pipe",
      stderr: "inherit",
    });
    await until("it listens", () => existsSync(socket()));
    return {
      async stop() {
        child.kill();
        await child.exited;
      },
    };
  }

  test.each([
    ["kdialog", "echo once", "(once)"],
    ["kdialog", "echo session", "(session)"],
    ["kdialog", "echo deny", "which was denied"],
    ["kdialog", "exit 1", "which was denied"],
    ["zenity", "exit 0", "(once)"],
    ["zenity", "echo 'Allow for this session'; exit 1", "(session)"],
    ["zenity", "exit 1", "which was denied"],
    ["zenity", "exit 255", "nobody is there"],
  ])("asks with %s: %s", async (name, script, result) => {
    const running = await broker(dialog(name, script), "--with", name);
    const text = await server.ask(await server.create(), "! echo <b>\\n");
    expect(text).toContain(result);
    const shown = readFileSync(join(server.home.folder, `${name}.shown`), "utf8");
    expect(shown).toContain("echo &#60;b&#62;&#92;n");
    expect(statSync(socket()).mode & 0o777).toBe(0o600);
    await running.stop();
    expect(existsSync(socket())).toBe(false);
  });

  test("says what is missing where nobody can be asked, and that another one runs", async () => {
    const nowhere = await server.home.olliesrv("elevate");
    expect([nowhere.status, nowhere.stderr]).toEqual([
      2,
      expect.stringContaining("no terminal, and no desktop"),
    ]);
    const running = await broker(dialog("zenity", "exit 1"), "--with", "zenity");
    const second = await server.home.run([join(dist, "olliesrv"), "elevate"], { env: dialog("zenity", "") });
    expect([second.status, second.stderr]).toEqual([1, expect.stringContaining("already")]);
    await running.stop();
  });

  test("does not listen to a process in a sandbox", async () => {
    const running = await broker(dialog("zenity", "exit 0"), "--with", "zenity");
    rmSync(join(server.home.folder, "zenity.shown"), { force: true });
    const question = JSON.stringify({
      id: "1",
      session: "s",
      agent: "a",
      tool: "t",
      command: "x",
      cwd: "/",
      host: "h",
    });
    const script = `const s = require("net").connect(${JSON.stringify(socket())}); s.on("error", () => {}); s.write(${JSON.stringify(question)} + "\\n"); s.on("data", d => console.log(String(d))); s.on("close", () => console.log("closed"));`;
    const argv = ["setpriv", "--no-new-privs", process.execPath, "-e", script];
    expect((await run(argv, { ...server.home.env })).stdout).toBe("closed\n");
    expect(existsSync(join(server.home.folder, "zenity.shown"))).toBe(false);
    await running.stop();
  });

  test("asks on its terminal; what was typed before is no answer", async () => {
    const terminal = await Terminal.open(server.home.env, server.home.work);
    try {
      await terminal.line("olliesrv elevate");
      await terminal.shows("asks with terminal");
      await terminal.line("y");
      const session = await server.create();
      await submitted(session, "echo from a terminal");
      await terminal.shows(/^ {2}echo from a terminal$/m);
      await terminal.shows(/no >$/m);
      await terminal.line("s");
      expect(await reply(session)).toContain("(session)");
      const denied = await server.create();
      await submitted(denied, "echo again");
      await terminal.shows(/^ {2}echo again$/m);
      await terminal.line("n because of it");
      expect(await reply(denied)).toContain("denied (because of it)");
    } finally {
      await terminal.close();
    }
    await until("it has gone", () => !existsSync(socket()));
  });
});

describe("in a terminal", () => {
  let terminal: Terminal;
  beforeAll(async () => {
    terminal = await Terminal.open(server.home.env, server.home.work);
  });
  afterAll(() => terminal?.close());

  test("o approve waits, shows the command with nothing hidden, and takes the answer", async () => {
    await terminal.line("o approve");
    await terminal.shows("Ctrl-C leaves");
    const session = await server.create();
    await submitted(session, "echo one;\u001b[2J\u202eecho two");
    await terminal.shows(/^ {2}echo one;␛\[2J<U\+202E>echo two$/m);
    await terminal.shows(/no >$/m);
    await terminal.line("");
    await terminal.line("y");
    expect(await reply(session)).toContain("(once)");
    await terminal.type("C-c");
    await terminal.shows(/ready>\s*$/);
  });

  test("o tui counts as somebody who is there; /approve asks in its lower pane", async () => {
    await terminal.line("o tui watched");
    await terminal.shows(/^watched>$/m);
    await submitted("watched", "echo in the tui");
    await terminal.shows("echo in the tui");
    await terminal.shows(/approving: shell/);
    await terminal.line("/approve");
    await terminal.shows(/no >$/m);
    await terminal.line("s");
    expect(await reply("watched")).toContain("(session)");
    await terminal.shows(/watched\/default {2}idle/);
    await terminal.line("/approve");
    await terminal.shows("nothing waits to be allowed");
    await terminal.line("/quit");
  });
});
