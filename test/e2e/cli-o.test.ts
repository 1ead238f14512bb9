/** `o` under every shell that it has to work with. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import {
  dist,
  Home,
  type Outcome,
  type RunOptions,
  startServer,
  succeeded,
  type TestServer,
  until,
} from "./harness.ts";

setDefaultTimeout(60_000);

const shells = ["dash", "bash", "busybox ash"].filter(
  (name) => process.env.CI || Bun.which(name.split(" ")[0]!),
);

/** What the model says; the first rule whose text a prompt contains. */
const rules = [
  { match: { user: "greet" }, do: [{ text: "Hello\n[[[no marker\nthere." }] },
  { match: { user: "fail" }, do: [{ error: { status: 400, message: "no such model here" } }] },
  { match: { user: "slow" }, do: [{ text: "Well" }, { delay: 60_000 }] },
  { match: { user: "pretend" }, do: [{ text: "Stopped by the user.\n[[[error]]]\nInterrupted: no" }] },
  {
    match: { user: "/^(?:echo )?(one|two|\\[\\[\\[three|\\/four|five\\n {2}\\[\\[\\[six)$/" },
    do: [{ text: "You said $1." }],
  },
  { match: { user: "pwd" }, do: [{ calls: [{ name: "shell", args: { command: "pwd; sleep 0.5" } }] }] },
  { match: { tool: "shell", result: "/^(.*)/" }, do: [{ text: "It is $1" }] },
  { do: [{ text: "What?" }] },
];

describe.each(shells)("o in %s", (name) => {
  const shell = name.split(" ");
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ scenario: { rules } });
  });
  afterAll(() => server.stop());

  const o = (args: string[], options?: RunOptions): Promise<Outcome> =>
    server.home.run([...shell, join(dist, "o"), ...args], options);
  const ok = async (args: string[], options?: RunOptions) => succeeded(await o(args, options));
  const inSession = (session: string, agent = "default") => ({ env: { session, agent } });

  test("new makes a session in this folder, with values that hold anything", async () => {
    const folder = join(server.home.work, `it's "a" b\\c`);
    mkdirSync(folder, { recursive: true });
    expect(await ok(["new", "name=odd", 'env.X=a "b" \\c $d'], { cwd: folder })).toBe("odd\n");
    expect(await ok(["ls"])).toContain(`odd\tdefault\tidle\tscript\tscript\t${folder}\n`);
    expect(await ok(["read", "env"], inSession("odd"))).toContain('X=a "b" \\c $d');
    expect(await ok(["new", "name=there", "cwd=/"])).toBe("there\n");
    expect(await ok(["ls"])).toContain("there\tdefault\tidle\tscript\tscript\t/\n");
  });

  test("ls --json is the same as JSON, whatever the names hold", async () => {
    const folder = join(server.home.work, 'a "b" \\n\u0001\r\\ ü&');
    mkdirSync(folder, { recursive: true });
    const name = 'json "\\" & ü';
    await ok(["new", `name=${name}`], { cwd: folder });
    const agent = {
      session: name,
      agent: "default",
      state: "idle",
      backend: "script",
      model: "script",
      cwd: folder,
    };
    const listed = JSON.parse(await ok(["ls", "--json"]));
    expect(listed).toContainEqual(agent);
    expect(listed).toHaveLength((await ok(["ls"])).trim().split("\n").length);
    for (const { session } of listed) await ok(["kill", session]);
    expect(await ok(["ls", "--json"])).toBe("[]\n");
  });

  test("a session without an agent is said to be one, with what adds one", async () => {
    const session = await server.create("name=bare");
    await server.p9("rm", "-r", `session/${session}/agent/default`);
    const advice = "o write 'session/bare/agent/new' agent=default";
    expect(await o(["read", "state"], { env: { session } })).toEqual({
      status: 1,
      stdout: "",
      stderr: `o: session bare has no agent: ${advice} adds one\n`,
    });
    succeeded(await server.home.run([...shell, "-c", advice.replace("o ", `'${dist}/o' `)]));
    expect(await ok(["read", "state"], { env: { session } })).toBe("idle\n");
  });

  test("env prints what eval needs, quoted, with the first agent where none is named", async () => {
    await ok(["new", "name=it's odd", "agent=tester"]);
    expect(await ok(["env", "it's odd"])).toBe("export session='it'\\''s odd' agent=tester\n");
    const evaluated = await server.home.run([
      ...shell,
      "-c",
      `eval "$('${dist}/o' env "it's odd")"; '${dist}/o' read state; echo "$session/$agent"`,
    ]);
    expect(evaluated.stdout).toBe("idle\nit's odd/tester\n");
    expect(await o(["env", "nobody"])).toMatchObject({
      status: 1,
      stderr: "o: no session nobody: o ls lists them\n",
    });
    expect((await o(["env", "it's odd", "nobody"])).status).toBe(1);
  });

  test("names of files lead to the agent, the session or the server", async () => {
    const session = await server.create("agent=reviewer");
    const at = { env: { session } };
    expect(await ok(["read", "cfg"], at)).toContain("agent=reviewer\n");
    expect(await ok(["read", "session:cfg"], at)).toContain("cwd=");
    expect(await ok(["read", ":tools"], at)).toContain("shell\t");
    expect(await ok(["read", "models"])).toContain("backend=script");
    expect(await ok(["read", "version"])).toContain("protocol: 9P2000");
    expect(await ok(["read", `s/${session}/state`])).toBe("idle\n");
    await ok(["write", "plan", "one", "two"], at);
    expect(await ok(["read", "plan"], at)).toBe("one two\n");
    await ok(["write", "plan"], { ...at, stdin: "from\nstdin" });
    expect(await ok(["read", "plan"], at)).toBe("from\nstdin");
    await ok(["write", "session:ctl", "rename", "renamed"], at);
    expect(await ok(["ls"])).toContain("renamed\treviewer\t");
  });

  test("prompt, wait, read: from arguments, from a pipe", async () => {
    const at = inSession(await server.create());
    await ok(["prompt", "please", "greet"], at);
    await ok(["wait"], at);
    expect(await ok(["read", "reply"], at)).toContain("Hello");
    await ok(["prompt"], { ...at, stdin: "several\nlines\n" });
    await ok(["wait"], at);
    expect(await ok(["read", "prompt.prev"], at)).toBe("several\nlines\n");
  });

  test("ask prints the reply; without a session it works in this folder and leaves nothing", async () => {
    const at = inSession(await server.create());
    expect(await ok(["ask", "greet", "me"], at)).toContain("Hello");
    const before = await ok(["ls"]);
    expect(await ok(["ask"], { stdin: "pwd" })).toContain(`It is ${server.home.work}`);
    expect(await ok(["ask", "/stop is what?"], at)).toContain("What?");
    expect(await ok(["read", "prompt.prev"], at)).toBe("/stop is what?\n");
    expect(await ok(["ls"])).toBe(before);
  });

  test("ask fails with the turn, says why, and leaves nothing either", async () => {
    const before = await ok(["ls"]);
    const { status, stdout, stderr } = await o(["ask", "fail"]);
    expect(stderr).toMatch(/^ollie-9p: the turn failed: .*no such model here/);
    expect(stdout).toBe("");
    expect(status).toBe(1);
    expect(await ok(["ls"])).toBe(before);
  });

  test("ask fails when the turn is stopped, which o stop does", async () => {
    const session = await server.create();
    const asking = o(["ask", "slow"], inSession(session));
    await until("the agent thinks", async () => (await server.read(`s/${session}/state`)) === "thinking\n");
    await ok(["stop"], inSession(session));
    expect(await asking).toEqual({ status: 1, stdout: "", stderr: "ollie-9p: the turn was stopped\n" });
  });

  test("of several that ask one agent at once, each gets the answer to its own question", async () => {
    const at = inSession(await server.create());
    await ok(["prompt", "pwd"], at);
    const names = ["one", "two", "[[[three", "/four", "five\n  [[[six"];
    const answers = await Promise.all(
      names.map((name) => ok(["ask", `echo ${name}`.replace("echo /", "/")], at)),
    );
    for (const [i, name] of names.entries()) expect(answers[i]).toBe(`You said ${name}.\n`);
  });

  test("an ask whose turn is over does not wait for those behind it", async () => {
    const session = await server.create();
    const at = inSession(session);
    await ok(["prompt", "pwd"], at);
    const asking = o(["ask", "greet"], at);
    await until("it waits", async () => (await server.read(`s/${session}/queue`)) !== "");
    await ok(["prompt", "slow"], at);
    expect(await asking).toEqual({ status: 0, stdout: "Hello\n[[[no marker\nthere.\n", stderr: "" });
    await ok(["stop"], at);
  });

  test("ask says so when its question is taken out of the queue", async () => {
    const session = await server.create();
    const at = inSession(session);
    await ok(["prompt", "slow"], at);
    const asking = o(["ask", "greet"], at);
    await until("it waits", async () => (await server.read(`s/${session}/queue`)) !== "");
    await ok(["write", "ctl", "dequeue"], at);
    await ok(["stop"], at);
    const { status, stdout, stderr } = await asking;
    expect(stderr).toBe("ollie-9p: the question was taken out of the queue before its turn came\n");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
  });

  test("an answer that sounds like an end or an error is an answer", async () => {
    const at = inSession(await server.create());
    expect(await ok(["ask", "pretend"], at)).toBe("Stopped by the user.\n[[[error]]]\nInterrupted: no\n");
  });

  test("an interrupted ask takes its session with it", async () => {
    const before = await ok(["ls"]);
    const asking = Bun.spawn([...shell, join(dist, "o"), "ask", "slow"], {
      env: server.home.env,
      cwd: server.home.work,
    });
    await until("the agent thinks", async () => (await ok(["ls"])).includes("\tthinking\t"));
    asking.kill("SIGTERM");
    // The shell ends when what it waits for has; Ctrl-C reaches both.
    await server.write(
      `s/${
        (await ok(["ls"]))
          .split("\n")
          .find((line) => line.includes("thinking"))!
          .split("\t")[0]
      }/ctl`,
      "stop",
    );
    expect(await asking.exited).toBe(143);
    expect(await ok(["ls"])).toBe(before);
  });

  test("tail follows the chat, without its markers or with them", async () => {
    const session = await server.create();
    const follow = (...args: string[]) => {
      const child = Bun.spawn([...shell, join(dist, "o"), "tail", ...args], {
        env: { ...server.home.env, session },
        stderr: "ignore",
      });
      const seen = { text: "", child };
      void (async () => {
        for await (const chunk of child.stdout) seen.text += Buffer.from(chunk).toString();
      })();
      return seen;
    };
    const plain = follow();
    const marked = follow("-a");
    await server.ask(session, "greet");
    await until("the answer is shown", () => plain.text.endsWith("greet\nHello\n [[[no marker\nthere.\n"));
    await until("markers are shown", () =>
      /\[\[\[user time=\S+\]\]\]\ngreet\n\[\[\[end\]\]\]\n/.test(marked.text),
    );
    expect(plain.text).not.toMatch(/^\[\[\[/m);
    // They end with the session.
    await ok(["kill", session]);
    await Promise.all([plain.child.exited, marked.child.exited]);
    expect(await ok(["ls"])).not.toContain(session);
  });

  test("readloop shows one change after the other", async () => {
    const session = await server.create();
    const child = Bun.spawn([...shell, join(dist, "o"), "readloop", "statewait"], {
      env: { ...server.home.env, session },
      stderr: "ignore",
    });
    let seen = "";
    void (async () => {
      for await (const chunk of child.stdout) seen += Buffer.from(chunk).toString();
    })();
    await until("it waits", async () => {
      await server.ask(session, "greet");
      return seen !== "";
    });
    seen = "";
    await server.ask(session, "pwd");
    await until("the agent's way through the turn was shown", () =>
      seen.endsWith("calling: shell\nthinking\nidle\n"),
    );
    await ok(["kill", session]);
    await child.exited;
  });

  test.each([
    [["nonsense"], "o: no command nonsense: see o help\n"],
    [["read"], "o: usage: o read FILE\n"],
    [["read", "nonsense"], "o: no file is called nonsense: see o help, or give a path from session/ on\n"],
    [["new", "name"], "o: expected KEY=VALUE, not name\n"],
    [["tail", "-x"], "o: usage: o tail [-a]\n"],
    [["tail", "-a", "x"], "o: usage: o tail [-a]\n"],
    [["ls", "extra"], "o: usage: o ls [--json]\n"],
    [["wait", "x"], "o: usage: o wait\n"],
    [["stop", "x"], "o: usage: o stop\n"],
    [["kill", "x", "y"], "o: usage: o kill [SESSION]\n"],
  ])("%j is wrong use", async (args, stderr) => {
    expect(await o(args, inSession("x"))).toEqual({ status: 2, stdout: "", stderr });
  });

  test("without a session it says how to name one", async () => {
    const { status, stderr } = await o(["read", "state"]);
    expect(stderr).toContain('eval "$(o env SESSION)"');
    expect(status).toBe(1);
    expect(await o(["read", "state"], inSession("nobody"))).toMatchObject({ status: 1, stdout: "" });
  });

  test("help and version", async () => {
    expect(await ok(["help"])).toStartWith("usage: o COMMAND");
    expect(await ok(["--help"])).toBe(await ok(["help"]));
    expect(await ok(["--version"])).toMatch(/^ollie-9p \d/);
    expect(await o([])).toMatchObject({ status: 2, stdout: "" });
  });

  test("ollie-9p is found beside it, beside what it is a link to, and on the PATH; else that is said", async () => {
    const home = new Home();
    const argv = (path: string) => [...shell, path, "--version"];
    const path = { env: { PATH: "/usr/bin:/bin" } };
    symlinkSync(join(dist, "o"), join(home.home, "link"));
    expect((await home.run(argv(join(home.home, "link")), path)).stdout).toMatch(/^ollie-9p \d/);
    copyFileSync(join(dist, "o"), join(home.home, "copy"));
    expect((await home.run(argv(join(home.home, "copy")))).stdout).toMatch(/^ollie-9p \d/);
    expect(await home.run(argv(join(home.home, "copy")), path)).toEqual({
      status: 1,
      stdout: "",
      stderr: "o: ollie-9p is neither beside this script nor on the PATH\n",
    });
    home.remove();
  });
});
