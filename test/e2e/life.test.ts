/** The compiled server among signals, full disks and mistakes of its own, with turns that run. */
import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, dist, Home, startServer, type TestServer, until } from "./harness.ts";

const rules = [
  { match: { user: "slowly" }, do: [{ text: "word ".repeat(2000), chunk: 5, delay: 20 }] },
  {
    match: { user: "/^hold/" },
    do: [
      {
        calls: [
          {
            name: "shell",
            args: { command: "echo $$ >> pids; trap '' TERM; echo begun; sleep 60 & wait; wait" },
          },
        ],
      },
    ],
  },
  { match: { user: "limited" }, do: [{ error: { status: 429, message: "Slow down", retryAfter: 60 } }] },
  { match: { tool: "shell" }, do: [{ text: "That has run." }] },
  { match: { user: "/(.*)/" }, do: [{ text: "You said: $1" }] },
];

beforeAll(build);

let server: TestServer;
let running = false;
afterEach(async () => {
  if (running) await server.stop();
  running = false;
});

async function start(): Promise<void> {
  server = await startServer({ env: { OLLIE_LOG: "debug" } });
  running = true;
  const scenario = join(server.home.folder, "scenario.json");
  writeFileSync(scenario, JSON.stringify({ rules }));
  server.home.configure(`OLLIE_BACKEND=script\nOLLIE_SCRIPT_SCENARIO=${scenario}\n`);
  await reload();
}

async function reload(): Promise<void> {
  const before = server.log.length;
  process.kill(server.pid, "SIGHUP");
  await until("a reload", () => /configuration (read again|stays)/.test(server.log.slice(before)));
}

/** One agent in the middle of each kind of thing that takes its time. */
async function busy(): Promise<string[]> {
  const jobs: Record<string, [prompt: string, sign: string]> = {
    streaming: ["slowly", "word word"],
    calling: ["hold it", "begun"],
    waiting: ["limited", "Asking again"],
  };
  for (const [name, [prompt, sign]] of Object.entries(jobs)) {
    await server.create(`name=${name} cwd="${server.home.work}"`);
    await server.write(`s/${name}/prompt`, prompt);
    await until(sign, async () => (await server.read(`s/${name}/chat`)).includes(sign));
  }
  return Object.keys(jobs);
}

/** Blocks follow each other, and the last one is closed. */
function expectWhole(chat: string): void {
  const markers = chat.split("\n").filter((line) => line.startsWith("[[["));
  expect(markers.map((line) => line === "[[[end]]]")).toEqual(markers.map((_, i) => i % 2 === 1));
}

describe("SIGTERM while turns run", () => {
  test("ends them and what they started, and the next server goes on with what waits", async () => {
    await start();
    const names = await busy();
    for (const name of names) await server.write(`s/${name}/prompt`, "and then?");
    const { log } = server;
    await server.restart();
    expect(log).not.toContain("could be ended in time");
    for (const pid of readFileSync(join(server.home.work, "pids"), "utf8").trim().split("\n"))
      expect(existsSync(`/proc/${pid}`)).toBe(false);
    for (const name of names) {
      await server.read(`s/${name}/idlewait`);
      const chat = await server.read(`s/${name}/chat`);
      expectWhole(chat);
      expect(chat.match(/^Interrupted: /gm)).toHaveLength(1);
      expect(await server.read(`s/${name}/reply`)).toBe("You said: and then?\n");
      expect(await server.read(`s/${name}/queue`)).toBe("");
    }
    // Servers of other tests, which run beside this one, are killed.
    const own = server.log.replace(/^.*had outlived their server.*\n/gm, "");
    expect(own).not.toMatch(/"level":(40|50|60)/);
  }, 40_000);
});

describe("SIGHUP while turns run", () => {
  test("lets them go on, and what comes next uses the new configuration", async () => {
    await start();
    await busy();
    server.home.configure(`${readFileSync(join(server.home.config, "env"), "utf8")}OLLIE_MODEL=another\n`);
    writeFileSync(
      join(server.home.config, "agents/critic.json"),
      JSON.stringify({ description: "Finds fault", prompt: "Find fault." }),
    );
    await reload();
    expect(await server.read("session/streaming/agent/default/state")).toBe("thinking\n");
    expect(await server.read("session/calling/agent/default/state")).toBe("calling: shell\n");
    const length = (await server.read("s/streaming/chat")).length;
    await until("more text", async () => (await server.read("s/streaming/chat")).length > length);
    expect(await server.read("agents")).toContain("critic\tFinds fault\n");
    const name = await server.create("agent=critic");
    expect(await server.read(`session/${name}/agent/critic/cfg`)).toContain("model=another\n");
    expect(await server.ask(name, "hello")).toBe("You said: hello\n");
  }, 40_000);

  test("with a configuration that makes no sense changes nothing and says why", async () => {
    await start();
    const good = readFileSync(join(server.home.config, "env"), "utf8");
    server.home.configure(`${good}OLLIE_IDLE_TIMEOUT=never\n`);
    await reload();
    expect(server.log).toMatch(/the configuration stays as it was: .*OLLIE_IDLE_TIMEOUT/);
    const name = await server.create();
    expect(await server.ask(name, "hello")).toBe("You said: hello\n");
  }, 40_000);
});

describe("stop through the compiled server", () => {
  test("ends every kind of turn, and the agents are as good as before", async () => {
    await start();
    for (const name of await busy()) {
      await server.write(`session/${name}/ctl`, "stop\n");
      await server.read(`s/${name}/idlewait`);
      expect(await server.ask(name, "hello")).toBe("You said: hello\n");
      expectWhole(await server.read(`s/${name}/chat`));
    }
  }, 40_000);
});

test("a log that cannot be written costs no turn", async () => {
  const home = new Home({ OLLIE_LOG: "debug" });
  const child = Bun.spawn(["sh", "-c", `exec ${dist}/olliesrv fgstart 2>/dev/full`], {
    env: home.env,
    cwd: home.work,
    stdin: "ignore",
    stdout: "pipe",
  });
  await child.stdout.getReader().read();
  const p9 = async (words: string[], stdin?: string) =>
    (await home.run([join(dist, "ollie-9p"), ...words], { stdin })).stdout;
  await p9(["write", "session/new"], "name=s\n");
  // A turn that fails is logged; the config it runs on is gone.
  await p9(["write", "session/s/agent/default/cfg"], "agent=developer\n");
  await Bun.file(join(home.config, "agents/developer.json")).delete();
  await Bun.sleep(1100);
  await p9(["write", "s/s/prompt"], "fail\n");
  await p9(["read", "s/s/idlewait"]);
  expect(await p9(["read", "s/s/chat"])).toContain("no agent developer");
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  home.remove();
}, 40_000);

test("an error that nobody caught is logged, and the server goes on", async () => {
  const script = `
    import { makeLog } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/server/log.ts"))};
    import { surviveMistakes } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/server/mistakes.ts"))};
    surviveMistakes(makeLog("info"));
    setTimeout(() => { throw new Error("thrown by a timer") });
    void Promise.reject(new Error("rejected"));
    setTimeout(() => console.log("still here"), 50);
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("still here\n");
  const log = await new Response(child.stderr).text();
  expect(
    log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).err.message),
  ).toEqual(["rejected", "thrown by a timer"]);
  expect(await child.exited).toBe(0);
});
