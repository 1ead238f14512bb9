/**
 * Tools that need root, with the real sudo and a user made for the test. Needs root itself, to make one, and a sudo that reads
 * /etc/sudoers.d.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { lacks } from "../needs.ts";
import { build, dist, run, succeeded, until } from "./harness.ts";
import { Terminal } from "./terminal.ts";

setDefaultTimeout(120_000);

const possible =
  process.getuid!() === 0 &&
  Bun.which("sudo") !== null &&
  Bun.which("useradd") !== null &&
  existsSync("/etc/sudoers.d");
const user = `ollie-test-${process.pid % 100000}`;
const password = "it's a $ecret";
const sudoers = `/etc/sudoers.d/${user}`;

/** `TOOL JSON` calls a tool, and the answer is its result. */
const scenario = {
  rules: [
    { match: { user: "/^(\\S+) (\\{.*)/s" }, do: [{ calls: [{ name: "$1", args: "$2" }] }] },
    { match: { result: "/(.*)/s" }, do: [{ text: "$1" }] },
    { do: [{ text: "Heard." }] },
  ],
};

/** A server that runs as that user, in a folder that is his. */
class UsersServer {
  readonly folder = mkdtempSync("/tmp/ollie-sudo-");
  readonly home = join(this.folder, "home");
  readonly env: Record<string, string>;
  log = "";
  #child?: Bun.Subprocess;

  constructor(
    private readonly uid: number,
    more: Record<string, string> = {},
  ) {
    const tools = join(this.home, ".config/ollie/tools");
    for (const path of [
      this.home,
      join(this.home, ".config"),
      join(this.home, ".config/ollie"),
      tools,
      join(this.folder, "run"),
    ])
      mkdirSync(path, { mode: 0o700 });
    for (const program of ["olliesrv", "ollie-9p", "o"])
      copyFileSync(join(dist, program), join(this.folder, program));
    writeFileSync(join(this.folder, "scenario.json"), JSON.stringify(scenario));
    const tool = (name: string, script: string) => {
      writeFileSync(join(tools, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(tools, name), 0o755);
      const args = { type: "object", additionalProperties: true };
      writeFileSync(
        `${join(tools, name)}.meta`,
        JSON.stringify({ description: name, sudo: true, args, tier: "hot", timeout: 60 }),
      );
    };
    tool(
      "whoisit",
      'id -un; cat; echo; pwd; echo "$OLLIE_SESSION,$OLLIE_TOOL,$TMPDIR,$HOME,$SECRET_OF_SESSION"; echo "$OLLIE_ARG_TEXT"',
    );
    tool("leaves", 'setsid sleep 4711 & sleep 0.1; echo "$TMPDIR" >"$TMPDIR/file"; echo left');
    tool("stays", 'echo "pid $$"; setsid sleep 4712 & sleep 4713');
    this.env = {
      HOME: this.home,
      XDG_RUNTIME_DIR: join(this.folder, "run"),
      PATH: `${this.folder}:/usr/local/bin:/usr/bin:/bin`,
      LANG: "C.UTF-8",
      USER: user,
      OLLIE_BACKEND: "script",
      OLLIE_SCRIPT_SCENARIO: join(this.folder, "scenario.json"),
      ...more,
    };
    this.#own(this.folder);
  }

  #own(path: string): void {
    chownSync(path, this.uid, this.uid);
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) this.#own(inside);
      else chownSync(inside, this.uid, this.uid);
    }
  }

  as(...argv: string[]): string[] {
    return ["setpriv", `--reuid=${this.uid}`, `--regid=${this.uid}`, "--clear-groups", ...argv];
  }

  async start(...wrapper: string[]): Promise<void> {
    const child = Bun.spawn(this.as(...wrapper, join(this.folder, "olliesrv"), "fgstart"), {
      env: this.env,
      cwd: this.home,
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    this.#child = child;
    void (async () => {
      for await (const piece of child.stderr) this.log += new TextDecoder().decode(piece);
    })();
    await until("it answers", async () => (await this.p9(["read", "version"])).status === 0);
  }

  p9(argv: string[], stdin?: string) {
    return run(this.as(join(this.folder, "ollie-9p"), ...argv), this.env, {
      cwd: this.home,
      ...(stdin !== undefined && { stdin }),
    });
  }

  async read(path: string): Promise<string> {
    return succeeded(await this.p9(["read", path]));
  }

  async write(path: string, text: string): Promise<void> {
    succeeded(await this.p9(["write", path], text));
  }

  /** A session with all tools of this test loaded; its name. */
  async create(): Promise<string> {
    const name = succeeded(await this.p9(["rdwr", "session/new"], `cwd=${this.home}\n`)).trim();
    await this.write(`s/${name}/tools`, "whoisit leaves stays\n");
    return name;
  }

  /** The first request that waits for this session, as soon as there is one: its columns. */
  async request(session: string): Promise<string[]> {
    const row = await until("a request waits", async () =>
      (await this.read("elevate/pending")).split("\n").find((line) => line.split("\t")[1] === session),
    );
    return row.split("\t");
  }

  async result(session: string): Promise<string> {
    await this.read(`s/${session}/idlewait`);
    return this.read(`s/${session}/reply`);
  }

  /** Somebody is there who can answer. */
  attend(): () => Promise<void> {
    const child = Bun.spawn(this.as(join(this.folder, "ollie-9p"), "read", "-l", "elevate/wait"), {
      env: this.env,
      stdout: "ignore",
      stderr: "ignore",
    });
    return async () => {
      child.kill();
      await child.exited;
    };
  }

  /** Has the call allowed, gives these passwords one after another, and returns the result. */
  async call(session: string, line: string, ...passwords: string[]): Promise<string> {
    const leave = this.attend();
    try {
      await until("it asks", async () => {
        if ((await this.read(`s/${session}/state`)) === "idle\n")
          await this.write(`s/${session}/prompt`, line);
        return (await this.read(`s/${session}/state`)).startsWith("approving");
      });
      const [id] = await this.request(session);
      await this.write("elevate/ctl", `allow ${id}\n`);
      for (const word of passwords) {
        const asked = await until("a password is asked for", async () => {
          const request = (await this.read("elevate/pending"))
            .split("\n")
            .find((row) => row.split("\t")[1] === session);
          return request?.includes("(password") ? request : undefined;
        });
        await this.write("elevate/ctl", `password ${asked.split("\t")[0]} ${word}\n`);
        await until("it was taken", async () => !(await this.read("elevate/pending")).includes(asked));
      }
      return await this.result(session);
    } finally {
      await leave();
    }
  }

  async kill9(): Promise<void> {
    this.#child!.kill("SIGKILL");
    await this.#child!.exited;
  }

  async stop(): Promise<void> {
    this.#child!.kill("SIGTERM");
    await this.#child!.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Processes whose words are these. */
function running(words: string): number[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() === words
        ? [Number(pid)]
        : [];
    } catch {
      return [];
    }
  });
}

function allow(line: string): void {
  writeFileSync(sudoers, line, { mode: 0o440 });
}

describe.skipIf(lacks("to run as root, with sudo and useradd", possible))("sudo", () => {
  let server: UsersServer;
  let uid: number;
  beforeAll(async () => {
    await build();
    succeeded(
      await run(["useradd", "--no-create-home", "--user-group", "--shell", "/bin/sh", user], {
        PATH: process.env.PATH!,
      }),
    );
    succeeded(await run(["chpasswd"], { PATH: process.env.PATH! }, { stdin: `${user}:${password}\n` }));
    uid = Number(succeeded(await run(["id", "-u", user], { PATH: process.env.PATH! })));
    server = new UsersServer(uid);
    await server.start();
  });
  afterEach(() => rmSync(sudoers, { force: true }));
  afterAll(async () => {
    await server?.stop();
    rmSync(sudoers, { force: true });
    await run(["userdel", "--force", user], { PATH: process.env.PATH! });
  });

  test("runs the tool as root, with its JSON on stdin, in its folder, with the variables of the call and no others", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    await server.write(`session/${session}/env`, "SECRET_OF_SESSION=hush\n");
    const args = JSON.stringify({ text: 'two\nlines, it\'s "so" $HOME `id`' });
    const result = await server.call(session, `whoisit ${args}`, password);
    const lines = result.split("\n");
    expect(lines[0]).toBe("root");
    expect(JSON.parse(lines[1]!)).toEqual(JSON.parse(args));
    expect(lines[2]).toBe(server.home);
    expect(lines[3]).toMatch(new RegExp(`^${session},whoisit,/.*/tmp/root\\.\\d+,/root,$`));
    expect(lines.slice(4).join("\n")).toBe(
      `two\nlines, it's "so" $HOME \`id\`\n[elevated: allowed by the user (once), as root]\n`,
    );
  });

  test.each([
    ["o approve", "Ctrl-C leaves"],
    ["olliesrv elevate --with terminal", "asks with terminal"],
  ])("%s asks for the password and does not show it", async (command, ready) => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    const terminal = await Terminal.open(server.env, server.home);
    try {
      await terminal.line(server.as(...command.split(" ")).join(" "));
      await terminal.shows(ready);
      await until("it asks", async () => {
        if ((await server.read(`s/${session}/state`)) === "idle\n")
          await server.write(`s/${session}/prompt`, "whoisit {}");
        return (await server.read(`s/${session}/state`)).startsWith("approving");
      });
      await terminal.shows(/no >$/m);
      await terminal.line("y");
      await terminal.shows(/Password, not shown[^\n]*>$/m);
      await terminal.line(password);
      expect(await server.result(session)).toStartWith("root\n{}");
      expect(await terminal.screen()).not.toContain(password);
    } finally {
      await terminal.close();
    }
  });

  test("o approve that is interrupted at a password leaves a terminal that shows what is typed", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    const terminal = await Terminal.open(server.env, server.home);
    try {
      await terminal.line(server.as("o", "approve").join(" "));
      await terminal.shows("Ctrl-C leaves");
      await until("it asks", async () => {
        if ((await server.read(`s/${session}/state`)) === "idle\n")
          await server.write(`s/${session}/prompt`, "whoisit {}");
        return (await server.read(`s/${session}/state`)).startsWith("approving");
      });
      await terminal.shows(/no >$/m);
      await terminal.line("y");
      await terminal.shows(/Password, not shown[^\n]*>$/m);
      await terminal.type("C-c");
      await terminal.shows(/ready>\s*$/);
      await terminal.line("echo it is $((40 + 2))");
      await terminal.shows(/ready> echo it is[^\n]*\nit is 42/);
      await server.write(`s/${session}/ctl`, "stop\n");
    } finally {
      await terminal.close();
    }
  });

  test("a wrong password is asked for again, twice at most", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    expect(await server.call(session, "whoisit {}", "wrong", password)).toStartWith("root\n{}");
    const failed = await server.call(session, 'whoisit {"n":2}', "wrong", "wrong", "wrong");
    expect(failed).toContain("whoisit was not run: it needs sudo, and the password was wrong 3 times");
  });

  test("is asked for at each call, also one that was allowed for the session", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    const leave = server.attend();
    await until("it asks", async () => {
      if ((await server.read(`s/${session}/state`)) === "idle\n")
        await server.write(`s/${session}/prompt`, "whoisit {}");
      return (await server.read(`s/${session}/state`)).startsWith("approving");
    });
    await server.write("elevate/ctl", `allow ${(await server.request(session))[0]} session\n`);
    const asked = () =>
      until("a password is asked for", async () =>
        (await server.read("elevate/pending")).split("\n").find((row) => row.includes("whoisit (password)")),
      );
    await server.write("elevate/ctl", `password ${(await asked()).split("\t")[0]} ${password}\n`);
    expect(await server.result(session)).toContain("(session), as root");
    await server.write(`s/${session}/prompt`, "whoisit {}");
    await server.write("elevate/ctl", `deny ${(await asked()).split("\t")[0]}\n`);
    expect(await server.result(session)).toContain("which was denied");
    await leave();
  });

  test("NOPASSWD asks for none", async () => {
    allow(`${user} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
    expect(await server.call(await server.create(), 'whoisit {"a":1}')).toStartWith('root\n{"a":1}\n');
  });

  test("a user who may not use it is told so", async () => {
    expect(await server.call(await server.create(), "whoisit {}", password)).toMatch(
      /it needs sudo, and this user may not use sudo \(.*ollie-test/,
    );
  });

  test("so is one whose sudoers has requiretty", async () => {
    allow(`Defaults:${user} requiretty\n${user} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
    expect(await server.call(await server.create(), "whoisit {}")).toContain("requiretty");
  });

  test("what root's program leaves running ends with the call, and nothing of root's stays in the user's folder", async () => {
    allow(`${user} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
    const session = await server.create();
    expect(await server.call(session, "leaves {}")).toStartWith("left\n");
    await until("it has ended", () => running("sleep 4711").length === 0);
    succeeded(await server.p9(["rm", "-r", `session/${session}`]));
  });

  test("a stop ends root's processes, those with a session of their own included", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    const call = server.call(session, "stays {}", password);
    await until("it runs", () => running("sleep 4712").length === 1 && running("sleep 4713").length === 1);
    await server.write(`s/${session}/ctl`, "stop\n");
    await call.catch(() => {});
    expect(await server.read(`s/${session}/chat`)).toMatch(/pid \d+\n[^[]*\[cancelled by the user/);
    await until("they have ended", () => running("sleep 4712").length + running("sleep 4713").length === 0);
  });

  test("so does the server's death", async () => {
    allow(`${user} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
    const session = await server.create();
    server.call(session, "stays {}").catch(() => {});
    await until("it runs", () => running("sleep 4712").length === 1);
    await server.kill9();
    await until("they have ended", () => running("sleep 4712").length + running("sleep 4713").length === 0);
    await server.start();
  });

  test("the password is nowhere: not in the log, the chat, the journal, or the words and variables of a process", async () => {
    allow(`${user} ALL=(ALL:ALL) ALL\n`);
    const session = await server.create();
    const call = server.call(session, "stays {}", "wr0ng-one", password);
    await until("it runs", () => running("sleep 4712").length === 1);
    for (const pid of readdirSync("/proc").filter(
      (name) => /^\d+$/.test(name) && Number(name) !== process.pid,
    ))
      for (const file of ["cmdline", "environ"]) {
        let text = "";
        try {
          text = readFileSync(`/proc/${pid}/${file}`, "latin1");
        } catch {
          // It has ended, or is the kernel's.
        }
        expect(text.includes(password)).toBe(false);
      }
    await server.write(`s/${session}/ctl`, "stop\n");
    await call.catch(() => {});
    const found = await run(
      ["grep", "-rlaF", "-e", password, "-e", "wr0ng-one", server.home, join(server.folder, "run")],
      { PATH: "/usr/bin:/bin" },
    );
    expect(found.stdout).toBe("");
    expect(server.log).not.toContain(password);
    expect(server.log).toContain('"decision":"password"');
  });

  test("a server with no-new-privs says why there is no sudo", async () => {
    allow(`${user} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
    const confined = new UsersServer(uid);
    await confined.start("setpriv", "--no-new-privs");
    expect(await confined.call(await confined.create(), "whoisit {}")).toContain("no-new-privileges");
    await confined.stop();
  });
});
