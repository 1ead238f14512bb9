/** `olliesrv`: starting, ending, and what it says of itself. */
import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, dist, Home, startServer, succeeded, type TestServer, until } from "./harness.ts";

setDefaultTimeout(60_000);

let home: Home;
beforeAll(build);
beforeEach(() => {
  home = new Home();
});
afterEach(async () => {
  await home.olliesrv("stop");
  home.remove();
});

const ok = async (...args: string[]) => succeeded(await home.olliesrv(...args));
const status = async () => JSON.parse((await home.olliesrv("status", "--json")).stdout);
const p9 = (...args: string[]) => home.run([join(dist, "ollie-9p"), ...args]);

/** Whether the process is there and no zombie: who adopts it may not be quick to bury it. */
function lives(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("in the background", () => {
  test("start answers when the server does; status knows it; stop waits until it is gone", async () => {
    const said = await ok("start");
    const { pid, addresses, version, state, config, log } = await status();
    expect(said).toBe(`olliesrv runs as process ${pid} on ${home.address}\n`);
    expect(addresses).toEqual([home.address]);
    expect({ state, config, log }).toEqual({
      state: home.state,
      config: home.config,
      log: join(home.state, "olliesrv.log"),
    });
    expect(await ok("--version")).toBe(`olliesrv ${version}\n`);
    expect((await p9("read", "version")).stdout).toContain("protocol: 9P2000");
    expect(await ok("status")).toContain(`pid       ${pid}\n`);
    expect(await ok("stop")).toBe(`olliesrv (process ${pid}) has ended\n`);
    expect(lives(pid)).toBe(false);
    expect(existsSync(home.address.slice("unix!".length))).toBe(false);
  });

  test("when none runs, status fails and stop does not", async () => {
    expect(await home.olliesrv("status")).toEqual({
      status: 1,
      stdout: "",
      stderr: "olliesrv: the server does not run: olliesrv start\n",
    });
    expect((await home.olliesrv("status", "--json")).status).toBe(1);
    expect(await status()).toMatchObject({ running: false, addresses: [home.address] });
    expect(await ok("stop")).toBe("olliesrv does not run\n");
    expect((await home.olliesrv("reload")).status).toBe(1);
  });

  test("it belongs to no terminal and goes on without the one that started it", async () => {
    await ok("start");
    const { pid } = await status();
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    const [, , group, session, terminal] = fields;
    expect([group, session, terminal]).toEqual([String(pid), String(pid), "0"]);
  });

  test("a second one on the same state folder or socket is refused", async () => {
    await ok("start");
    const { pid } = await status();
    const again = await home.olliesrv("start");
    expect(again).toEqual({
      status: 1,
      stdout: "",
      stderr: `olliesrv: it runs already, as process ${pid}; olliesrv restart starts it anew\n`,
    });
    const foreground = await home.olliesrv("fgstart", "--listen", `unix!${home.folder}/other/9p`);
    expect(foreground.status).toBe(1);
    expect(foreground.stderr).toMatch(new RegExp(`^olliesrv: .*${pid}.*$`, "m"));
    const socket = await home.olliesrv("start", "--state", join(home.folder, "state2"));
    expect(socket.status).toBe(1);
    expect(socket.stderr).toMatch(/^olliesrv: .*listening on .*\n$/);
    expect((await status()).pid).toBe(pid);
  });

  test("of two that start at once one wins", async () => {
    const both = await Promise.all([home.olliesrv("start"), home.olliesrv("start")]);
    expect(both.map((one) => one.status).sort()).toEqual([0, 1]);
    expect((await status()).running).toBe(true);
  });

  test("a server that was killed leaves nothing in the way", async () => {
    await ok("start");
    const { pid } = await status();
    process.kill(pid, "SIGKILL");
    await until("it is dead", () => !lives(pid));
    expect((await home.olliesrv("status")).status).toBe(1);
    await ok("start");
    expect((await status()).pid).not.toBe(pid);
  });

  test("a start that fails says the server's reason", async () => {
    home.configure("OLLIE_BACKEND=ollama\nOLLIE_OLLAMA_URL=nonsense\n");
    expect(await home.olliesrv("start")).toEqual({
      status: 1,
      stdout: "",
      stderr: "olliesrv: OLLIE_OLLAMA_URL: must be an http:// or https:// address\n",
    });
    home.configure("");
    const open = await home.olliesrv("start", "--listen", "tcp!localhost!5640");
    expect(open.status).toBe(1);
    expect(open.stderr).toMatch(/^olliesrv: .*tcp!localhost!5640.*\n$/);
  });

  test("a log that has become long is put aside by the next start", async () => {
    mkdirSync(home.state, { recursive: true });
    const log = join(home.state, "olliesrv.log");
    writeFileSync(log, "old\n".repeat(3_000_000));
    await ok("start");
    expect(statSync(`${log}.1`).size).toBe(12_000_000);
    expect(readFileSync(log, "utf8")).not.toContain("old\n");
  });

  test("restart keeps the options of the start, and the sessions", async () => {
    const listen = `unix!${home.folder}/elsewhere/9p`;
    await ok("start", "--listen", listen, "--log-level", "debug");
    const before = await status();
    succeeded(
      await home.run([join(dist, "ollie-9p"), "-a", listen, "rdwr", "session/new"], { stdin: "name=kept" }),
    );
    await ok("restart");
    const after = await status();
    expect(after.pid).not.toBe(before.pid);
    expect(after.addresses).toEqual([listen]);
    expect((await p9("-a", listen, "ls", "session/kept/agent")).stdout).toContain("default\n");
    await ok("restart", "--listen", home.address);
    expect((await status()).addresses).toEqual([home.address]);
  });

  test("keys of backends are in nobody's arguments, nor in the log", async () => {
    home.configure(
      "OLLIE_BACKEND=openai\nOLLIE_OPENAI_URL=http://127.0.0.1:9/v1\nOLLIE_OPENAI_KEY=sk-very-secret\n",
    );
    await ok("start", "--log-level", "trace");
    const { pid, log } = await status();
    succeeded(await home.run([join(dist, "ollie-9p"), "rdwr", "session/new"], { stdin: "name=a" }));
    await home.run([join(dist, "ollie-9p"), "write", "s/a/prompt"], { stdin: "hello" });
    await p9("write", "s/a/ctl");
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).not.toContain("secret");
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.toContain("secret");
    await ok("stop");
    expect(readFileSync(log, "utf8")).not.toContain("sk-very-secret");
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });
});

describe("in the foreground", () => {
  let server: TestServer | undefined;
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s ends it with 0, also in the middle of a turn",
    async (signal) => {
      const server = await startServer();
      const session = await server.create();
      await server.write(`s/${session}/prompt`, "$ sleep 60");
      await until("the tool runs", async () =>
        (await server.read(`s/${session}/state`)).startsWith("calling"),
      );
      const waiting = server.p9("read", `s/${session}/idlewait`);
      process.kill(server.pid, signal);
      await until("it is gone", () => !lives(server.pid));
      expect((await waiting).status).toBe(1);
      await server.restart();
      expect(await server.read(`s/${session}/state`)).toBe("idle\n");
      await server.stop();
    },
  );

  test("its exit status is 0 when it was told to end", async () => {
    const child = Bun.spawn([join(dist, "olliesrv"), "fgstart"], {
      env: home.env,
      cwd: home.work,
      stdout: "pipe",
      stderr: "pipe",
    });
    await until("it runs", async () => (await status()).version);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stdout).text()).toMatch(
      new RegExp(`^olliesrv \\S+ listens on ${home.address}\n$`),
    );
  });

  test("what it does is on stderr, one JSON object a line", async () => {
    server = await startServer({ config: "OLLIE_MODLE=x\n" });
    await until("the warning is logged", () => server!.log.includes("OLLIE_MODLE is no setting of ollie"));
    for (const line of server.log.trim().split("\n"))
      expect(JSON.parse(line)).toMatchObject({ pid: server.pid });
  });
});

describe("configuration", () => {
  test("the first start installs what is shipped, later ones leave alone what the user changed", async () => {
    await ok("start");
    for (const file of ["env", "agents/default.json", "prompts/base.md", "tools/shell", "scripts/o"]) {
      expect(existsSync(join(home.config, file))).toBe(true);
    }
    expect(statSync(join(home.home, ".local/bin/o")).mode & 0o111).toBe(0o111);
    writeFileSync(join(home.config, "prompts/base.md"), "Mine.");
    await ok("restart");
    expect(readFileSync(join(home.config, "prompts/base.md"), "utf8")).toBe("Mine.");
  });

  test("init says what it wrote, what it kept, and what is missing on the PATH", async () => {
    const first = await ok("init");
    expect(first).toContain("written  ~/.config/ollie/agents/default.json\n");
    expect(first).toContain("written  ~/.local/bin/o\n");
    expect(first).toContain("~/.local/bin is not on your PATH\n");
    writeFileSync(join(home.config, "prompts/base.md"), "Mine.");
    expect(await ok("init")).toContain(
      "kept     ~/.config/ollie/prompts/base.md (changed or removed by you; --force replaces it)\n",
    );
    expect(await ok("init", "--force")).toContain("written  ~/.config/ollie/prompts/base.md\n");
    expect(readFileSync(join(home.config, "prompts/base.md.bak"), "utf8")).toBe("Mine.");
    const bin = join(home.home, ".local/bin");
    const last = await home.run([join(dist, "olliesrv"), "init"], { env: { PATH: `${bin}:/usr/bin:/bin` } });
    expect(last.stdout).toBe("~/.config/ollie is up to date\n");
  });

  test("reload: new sessions follow a changed env file; one that makes no sense changes nothing", async () => {
    home.configure("OLLIE_BACKEND=script\nOLLIE_MODEL=one\n");
    await ok("start");
    const model = async (name: string) => {
      succeeded(await home.run([join(dist, "ollie-9p"), "rdwr", "session/new"], { stdin: `name=${name}` }));
      return (await p9("read", `session/${name}/agent/default/cfg`)).stdout.match(/^model=(.*)$/m)?.[1];
    };
    const before = await model("before");
    home.configure("OLLIE_BACKEND=script\nOLLIE_MODEL=two\n");
    await ok("reload");
    let count = 0;
    await until("a new session has the new model", async () => (await model(`after${count++}`)) !== before);
    home.configure("OLLIE_BACKEND=script\nOLLIE_LOG=nonsense\n");
    const refused = await home.olliesrv("reload");
    expect(await ok("status")).toContain("pid ");
    expect(refused.stderr).toBe(
      "olliesrv: OLLIE_LOG: must be one of trace, debug, info, warn, error, silent\n",
    );
    expect(refused.status).toBe(1);
    home.configure("OLLIE_BACKEND=script\n");
    expect((await p9("ls", "session")).stdout).toContain("before\n");
  });

  test("--config and --state lead elsewhere", async () => {
    const [config, state] = [join(home.folder, "c"), join(home.folder, "s")];
    await ok("start", "--config", config, "--state", state);
    expect(existsSync(join(config, "agents/default.json"))).toBe(true);
    expect(existsSync(join(state, "sessions"))).toBe(true);
    expect(existsSync(home.state)).toBe(false);
    expect((await home.olliesrv("status")).status).toBe(1);
    expect(await ok("stop", "--state", state)).toContain("has ended");
  });

  test("a home that cannot be written does not keep it from serving", async () => {
    mkdirSync(home.config, { recursive: true });
    writeFileSync(join(home.config, "agents"), "a file where a folder should be");
    await ok("start");
    expect((await status()).running).toBe(true);
    expect(readFileSync(join(home.state, "olliesrv.log"), "utf8")).toContain(
      "shipped files could not be installed",
    );
  });

  test("it listens in a Plan 9 namespace as well", async () => {
    const namespace = join(home.folder, "ns");
    mkdirSync(namespace, { mode: 0o700 });
    home.env.NAMESPACE = namespace;
    await ok("start");
    expect((await status()).addresses).toEqual([home.address, `unix!${namespace}/ollie`]);
    expect((await p9("-a", `unix!${namespace}/ollie`, "read", "version")).stdout).toContain(
      "protocol: 9P2000",
    );
  });
});

describe("doctor", () => {
  test("says what is well, what works only in part, and what to do", async () => {
    await ok("init");
    const { status: code, stdout } = await home.olliesrv("doctor");
    expect(stdout).toContain("ok    config     ~/.config/ollie\n");
    expect(stdout).toContain("ok    agents     default developer reviewer tester\n");
    expect(stdout).toContain("warn  backend    script: a rehearsal without a model\n");
    expect(stdout).toContain("→ olliesrv start\n");
    expect(code).toBe(0);
  });

  test("fails on what stands in the way", async () => {
    await ok("init");
    home.configure(
      "OLLIE_BACKEND=openai\nOLLIE_OPENAI_URL=http://127.0.0.1:9/v1\nOLLIE_OPENAI_KEY=k\nOLLIE_MODLE=x\n",
    );
    writeFileSync(join(home.config, "agents/broken.json"), '{"promt":""}');
    const { status: code, stdout } = await home.olliesrv("doctor", "--json");
    const found = JSON.parse(stdout) as { about: string; status: string; text: string }[];
    const texts = (about: string, how: string) =>
      found.filter((one) => one.about === about && one.status === how).map((one) => one.text);
    expect(texts("config", "warn")).toEqual(["OLLIE_MODLE is no setting of ollie: misspelt?"]);
    expect(texts("agents", "fail")[0]).toContain("unknown key promt");
    expect(texts("backend", "fail")[0]).toStartWith("openai: ");
    expect(code).toBe(1);
    home.configure("nonsense\n");
    expect((await home.olliesrv("doctor")).stdout).toContain("fail  config     ~/.config/ollie/env:1: ");
    home.configure("");
  });

  const sandbox = async () => {
    const { status: code, stdout } = await home.olliesrv("doctor", "--json");
    const found = JSON.parse(stdout) as { about: string; status: string; text: string }[];
    const { status: how, text } = found.findLast((one) => one.about === "sandbox")!;
    return { code, how, text };
  };

  test("says of the sandbox what the server says, before there is one", async () => {
    await ok("init");
    const before = await sandbox();
    const made = readdirSync(home.folder, { recursive: true }) as string[];
    expect(made.filter((path) => path.includes("doctor"))).toEqual([]);
    await ok("start");
    const version = (await p9("read", "version")).stdout;
    const state = /^sandbox: (\S+)$/m.exec(version)![1]!;
    const missing = [...version.matchAll(/^tools can: (.*)$/gm)].map((match) => match[1]!);
    expect(before.text).toStartWith(state);
    for (const what of missing) expect(before.text).toContain(what);
    expect(before.how).toBe({ enforced: "ok", partial: "warn", off: "fail" }[state]!);
    expect(await sandbox()).toEqual(before);
  });

  test("tells what a lesser kernel lacks, and fails where tools do not run", async () => {
    await ok("init");
    home.env.OLLIE_SANDBOX_WITHOUT = "namespaces";
    const lesser = await sandbox();
    expect(lesser).toMatchObject({ code: 0, how: "warn" });
    expect(lesser.text).toStartWith("partial; tools can: change modes, owners and times of files outside");
    home.env.OLLIE_SANDBOX_WITHOUT = "landlock";
    const text = "off; tools can: everything (landlock: OLLIE_SANDBOX_WITHOUT names it)";
    expect(await sandbox()).toEqual({ code: 1, how: "fail", text });
    mkdirSync(join(home.config, "sandbox"), { recursive: true });
    writeFileSync(join(home.config, "sandbox/default.yaml"), "general: { best_effort: true }\n");
    expect(await sandbox()).toEqual({ code: 0, how: "warn", text });
  });

  test("tells that the server confines nothing", async () => {
    await ok("start", "--yolo");
    const text = "off; tools can: everything (the server was started with --yolo)";
    expect(await sandbox()).toEqual({ code: 0, how: "warn", text });
  });
});

describe("completions", () => {
  test("bash completes commands, and the options of each", async () => {
    const script = await ok("completions", "bash");
    const complete = async (program: string, ...words: string[]) => {
      const name = `_ollie_${program.replace("-", "_")}`;
      const { stdout } = await home.run([
        "bash",
        "-c",
        `${script}\nCOMP_WORDS=(${[program, ...words].join(" ")}); COMP_CWORD=${words.length}; ${name}; echo "\${COMPREPLY[*]}"`,
      ]);
      return stdout.trim().split(" ");
    };
    expect(await complete("olliesrv", "st")).toEqual(["start", "stop", "status"]);
    expect(await complete("olliesrv", "status", "--j")).toEqual(["--json"]);
    expect(await complete("ollie-9p", "rea")).toEqual(["read", "readline"]);
    expect(await complete("o", "tu")).toEqual(["tui"]);
  });

  test("there are some for zsh and fish, and an error for others", async () => {
    expect(await ok("completions", "zsh")).toContain("bashcompinit");
    expect(await ok("completions", "fish")).toContain(
      "complete -c olliesrv -n __fish_use_subcommand -f -a start",
    );
    expect((await home.olliesrv("completions", "csh")).status).toBe(2);
  });
});
