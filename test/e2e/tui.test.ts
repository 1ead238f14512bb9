/** `o tui` and the line editor in a real terminal. */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startServer, type TestServer, until } from "./harness.ts";
import { Terminal } from "./terminal.ts";

setDefaultTimeout(120_000);

/** What the model says. */
const rules = [
  { match: { user: "/^\\$ (.*)/" }, do: [{ calls: [{ name: "shell", args: { command: "$1" } }] }] },
  { match: { tool: "shell", result: "/^(.*)/" }, do: [{ text: "The shell answered: $1" }] },
  { match: { user: "escape" }, do: [{ text: "Title: \x1b]2;harmless\x07." }] },
  { match: { user: "think" }, do: [{ delay: 100_000 }] },
  { do: [{ text: "Yes." }] },
];

let server: TestServer;
let terminal: Terminal;
beforeAll(async () => {
  server = await startServer({ scenario: { rules } });
});
afterAll(() => server.stop());
beforeEach(async () => {
  terminal = await Terminal.open(server.home.env, server.home.work);
});
afterEach(() => terminal.close());

/** Processes of this test's home, apart from the server and what it runs. */
function ours(): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      if (environment.includes(`HOME=${server.home.home}\0`) && /ollie-9p|\/o |tmux.*attach/.test(command))
        found.push(`${pid} ${command}`);
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** Waits until `o prompt` asks for one. */
const prompts = (session: string) => terminal.shows(new RegExp(`^${session}>$`, "m"));

/** The colour of the status bar, as tmux draws it in 256 colours. */
const bar = { green: "\x1b[42m", blue: "\x1b[44m", orange: "\x1b[48;5;208m", yellow: "\x1b[43m" };
const barLine = (screen: string) => screen.trimEnd().split("\n").at(-1)!;

describe("o tui", () => {
  test("makes a session, takes prompts, shows the chat, and the state in colour", async () => {
    await terminal.line("o tui first");
    await terminal.shows(/first\/default {2}idle/);
    await prompts("first");
    expect(barLine(await terminal.shows(bar.green, true))).toContain(bar.green);

    await terminal.line("$ echo seen; until [ -e go ]; do sleep 0.1; done");
    await terminal.line(".");
    await terminal.shows(/first\/default {2}calling: shell/);
    expect(barLine(await terminal.shows(bar.orange, true))).toContain("calling: shell");
    await terminal.shows(/^seen$/m);
    await Bun.write(join(server.home.work, "go"), "");
    await terminal.shows(/first\/default {2}idle/);
    const screen = await terminal.shows(/The shell answered: seen/);
    expect(screen).not.toContain("[[[");
    expect(await server.read("session/idx")).toContain(
      `first\tdefault\tidle\tscript\tscript\t${server.home.work}\n`,
    );
  });

  test("a prompt may have several lines; a lone dot sends it", async () => {
    await terminal.line("o tui several");
    await prompts("several");
    await terminal.line("one");
    await terminal.line("");
    await terminal.line("three");
    await terminal.shows(/^ +> three$/m);
    expect(await server.read("s/several/prompt.prev")).toBe("");
    await terminal.line(".");
    await until("it arrived", async () => (await server.read("s/several/prompt.prev")) === "one\n\nthree\n");
  });

  test("/stop stops, /help lists, a mistake is told, Ctrl-C clears", async () => {
    await terminal.line("o tui verbs");
    await prompts("verbs");
    await terminal.line("$ sleep 100");
    await terminal.line(".");
    await terminal.shows(/calling: shell/);
    await terminal.line("/stop");
    await terminal.shows(/verbs\/default {2}idle/);
    await terminal.shows("Stopped by the user.");
    await terminal.line("/nonsense");
    await terminal.shows(/ollie-9p: Invalid argument.*nonsense/);
    await terminal.line("/help");
    await terminal.shows(/^.*\/model/m);
    await terminal.line("not this");
    await terminal.type("C-c");
    await terminal.shows("(/quit leaves, /stop stops the agent)");
    await terminal.line("but this");
    await terminal.line(".");
    await until("only that arrived", async () => (await server.read("s/verbs/prompt.prev")) === "but this\n");
  });

  test("blue while it thinks; no colour of ours where NO_COLOR says so", async () => {
    await terminal.line("o tui thoughtful");
    await prompts("thoughtful");
    await terminal.line("think");
    await terminal.line(".");
    await terminal.shows(/thoughtful\/default {2}thinking/);
    expect(barLine(await terminal.shows(bar.blue, true))).toContain("thinking");
    await terminal.line("/quit");
    await terminal.shows(/^\[exited\]/m);
    await terminal.line("clear; NO_COLOR=1 o tui thoughtful");
    await terminal.shows(/thoughtful\/default {2}thinking/);
    expect(await terminal.screen(true)).not.toContain(bar.blue);
  });

  test("it follows the size of the terminal", async () => {
    await terminal.line("o tui sized");
    await prompts("sized");
    await terminal.resize(120, 40);
    await terminal.shows(/^─{120}$/m);
    expect((await terminal.screen()).trimEnd().split("\n")).toHaveLength(40);
    await terminal.resize(60, 20);
    await terminal.shows(/^─{60}$/m);
    await terminal.line("still here");
    await terminal.line(".");
    await until("it arrived", async () => (await server.read("s/sized/prompt.prev")) === "still here\n");
    await terminal.shows(/^still here$/m);
  });

  test.each([
    ["/quit", (t: Terminal) => t.line("/quit")],
    ["Ctrl-D", (t: Terminal) => t.type("C-d")],
    ["detaching", (t: Terminal) => t.type("C-b", "d")],
  ])("%s leaves: nothing of it goes on, the session stays", async (_, leave) => {
    await terminal.line("o tui left");
    await prompts("left");
    await terminal.shows(/left\/default {2}idle/);
    expect(ours().length).toBeGreaterThan(0);
    await leave(terminal);
    await terminal.shows(/^\[(exited|detached.*)\]\s+ready>/m);
    await until("nothing is left", () => ours().length === 0);
    expect(await server.read("s/left/state")).toBe("idle\n");
  });

  test("it ends when the session does, and when the terminal goes away", async () => {
    await terminal.line("o tui gone");
    await prompts("gone");
    await server.p9("rm", "-r", "session/gone");
    await terminal.shows(/^\[exited\]\s+ready>/m);
    await until("nothing is left", () => ours().length === 0);
    await terminal.line("clear; o tui gone");
    await prompts("gone");
    await terminal.tmux("kill-server");
    await until("nothing is left", () => ours().length === 0);
  });

  test("it outlives a restart of the server", async () => {
    await terminal.line("o tui lasting");
    await prompts("lasting");
    await server.kill9();
    await terminal.shows(/lasting\/default {2}no server/);
    await server.restart();
    await terminal.shows(/lasting\/default {2}idle/);
    await terminal.line("after all");
    await terminal.line(".");
    await terminal.shows(/^after all$/m);
  });

  test("an agent that is renamed keeps its prompt, its chat and its place in the status bar", async () => {
    await terminal.line("o tui moved");
    await prompts("moved");
    await terminal.line("/rename a #S");
    await terminal.shows(/moved\/a #S {2}idle/);
    await terminal.line("after that");
    await terminal.line(".");
    await terminal.shows(/^after that$/m);
    await terminal.line("/rn again");
    await terminal.shows(/moved\/again {2}idle/);
    await server.restart();
    await terminal.shows(/moved\/again {2}idle/);
    await terminal.line("and after a restart");
    await terminal.line(".");
    await terminal.shows(/^and after a restart$/m);
    await terminal.line("/rename");
    await terminal.shows(/NAME is missing/);
    await terminal.line("still there");
    await terminal.line(".");
    await terminal.shows(/^still there$/m);
  });

  test("within tmux it is a window among the others, and leaves them as they were", async () => {
    await terminal.line("tmux -f /dev/null new-session -s mine dash");
    await terminal.shows(/\[mine\] 0:/);
    await terminal.line("o tui windowed");
    await terminal.shows(/0:\S+ {1,2}1:windowed idle/);
    await prompts("windowed");
    await terminal.line("$ sleep 100");
    await terminal.line(".");
    await terminal.shows(/1:windowed calling: shell/);
    expect(barLine(await terminal.shows(bar.orange, true))).toContain("1:windowed calling: shell");
    await terminal.line("/stop");
    await terminal.shows(/1:windowed idle/);
    await terminal.line("/quit");
    const after = await terminal.shows(/\[mine\] 0:\S+\*/);
    expect(after).not.toContain("windowed idle");
    expect(barLine(await terminal.screen(true))).not.toContain(bar.orange);
    await terminal.line("exit");
  });

  // Formats of tmux, which run programs, put other texts in, or change colours; ends of commands; options.
  test.each(["#(touch pwned)q", "#S", "#[hidden]x", "end;", "-n"])(
    "a session may be called %s",
    async (name) => {
      await terminal.line(`o tui '${name}'`);
      await terminal.shows(`\n${name}>`);
      await terminal.shows(` ${name}/default  idle`);
      await terminal.line("/quit");
      await terminal.shows(/^\[exited\]\s+ready>/m);
      await terminal.line("clear; tmux -f /dev/null new-session -s mine dash");
      await terminal.shows(/\[mine\] 0:/);
      await terminal.line(`o tui '${name}'`);
      await terminal.shows(`1:${name} idle`);
      await terminal.line("/quit");
      await terminal.shows(/\[mine\] 0:\S+\*/);
      expect(existsSync(join(server.home.work, "pwned"))).toBe(false);
      await terminal.line("exit");
    },
  );

  test("without a terminal, and for an agent that is not there, it says so", async () => {
    expect(await server.o("tui", "x")).toEqual({
      status: 1,
      stdout: "",
      stderr: "o: o tui needs a terminal; o ask and o prompt do without\n",
    });
    await server.create("name=real");
    await terminal.line("o tui real nobody");
    await terminal.shows(/ollie-9p: file does not exist.*nobody/);
  });
});

test("o ask shows a terminal no control characters of the answer", async () => {
  await terminal.line("o ask escape");
  await terminal.shows("Title: ^[]2;harmless^G.");
});

describe("o prompt on a terminal", () => {
  test("lines can be edited, and brought back from earlier", async () => {
    await server.create("name=edited");
    await terminal.line("session=edited o prompt");
    await prompts("edited");
    await terminal.type("-l", "helo wörld →");
    await terminal.type("Home", "Right", "Right", "Right");
    await terminal.type("-l", "l");
    await terminal.type("End", "BSpace", "BSpace", "Enter");
    await terminal.line(".");
    await until(
      "it arrived as edited",
      async () => (await server.read("s/edited/prompt.prev")) === "hello wörld\n",
    );
    await terminal.shows(/^edited>$/m);
    await terminal.type("Up", "BSpace");
    await terminal.type("-l", "!");
    await terminal.type("Enter");
    await terminal.line(".");
    await until(
      "the earlier line came back",
      async () => (await server.read("s/edited/prompt.prev")) === "hello wörl!\n",
    );
    await terminal.line("/quit");
    await terminal.shows(/ready>\s*$/);
    await terminal.line("clear; session=edited o prompt");
    await prompts("edited");
    await terminal.type("Up", "Up");
    await terminal.shows(/edited> hello wörl!$/m);
  });

  test("an agent that is renamed is asked by its new name", async () => {
    await server.create("name=named");
    await terminal.line("session=named o prompt");
    await prompts("named");
    await terminal.line("/rn other");
    await terminal.line("are you there?");
    await terminal.line(".");
    await until("it arrived", async () => (await server.read("s/named/prompt.prev")) === "are you there?\n");
    expect(await server.read("session/named/agent/other/state")).toMatch(/idle|thinking/);
  });

  test("a prompt that is ended from elsewhere leaves the terminal as it was", async () => {
    await server.create("name=ended");
    await terminal.line("session=ended o prompt; stty -a | grep -o ' -*icanon'; stty sane");
    await prompts("ended");
    const editor = await until("the editor runs", () => ours().find((one) => one.includes("readline")));
    process.kill(Number(editor.split(" ")[0]), "SIGTERM");
    await terminal.shows(/ icanon$/m);
  });

  test("what is pasted or typed ahead is not lost between two prompts", async () => {
    await server.create("name=pasted");
    await terminal.line("session=pasted o prompt");
    await prompts("pasted");
    // All of it is in the terminal before the first prompt is sent.
    await terminal.tmux("set-buffer", "first\nblock\n.\nsecond\n.\n/maxsteps 9\nthird\n.\n");
    await terminal.tmux("paste-buffer");
    await until(
      "the last one arrived",
      async () => (await server.read("s/pasted/prompt.prev")) === "third\n",
    );
    const chat = await server.read("s/pasted/chat");
    expect(chat).toContain("\nfirst\nblock\n[[[end]]]\n");
    expect(chat).toContain("\nsecond\n[[[end]]]\n");
    expect(await server.read("session/pasted/agent/default/cfg")).toContain("maxSteps=9\n");
  });
});
