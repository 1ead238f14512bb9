/** Sessions whose tools run on another host, by the compiled programs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, type Host, lacksHosts, startHost } from "../../rig/rig.ts";
import { startServer, type TestServer, until } from "../harness.ts";

setDefaultTimeout(120_000);

const possible = !lacksHosts();
let client: Client;
let host: Host;
let server: TestServer;

beforeAll(async () => {
  if (!possible) return;
  ({ client, host } = await startHost({ name: "build", link: { delay: 10 } }));
  server = await startServer({
    env: { OLLIE_BACKEND: "script" },
    within: (argv, cwd) => client.argv(argv, cwd),
  });
});
afterAll(async () => {
  await server?.stop();
  await client?.close();
});

/** A session in a folder of its own there. */
async function session(name: string, keys = ""): Promise<string> {
  await client.ssh(host, "alice", `mkdir -p ${name}`);
  return server.create(`name=${name} remote=alice@build cwd=/home/alice/${name}${keys}`);
}

const submit = (name: string, command: string) => server.write(`s/${name}/prompt`, `$ ${command}`);

async function chatWhenIdle(name: string): Promise<string> {
  await until(`${name} is idle`, async () => (await server.read(`s/${name}/state`)) === "idle\n");
  return server.read(`s/${name}/chat`);
}

/** A file in the session's folder there; "" if there is none. */
function there(name: string, file: string): string {
  const path = host.at(`/home/alice/${name}/${file}`);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Command lines of what runs there, but for the connections. */
function left(): string {
  const lines = host.processes("alice").map(({ argv }) => argv.join(" "));
  return lines.filter((line) => !line.startsWith("sshd: ")).join("\n");
}

/** Something that takes a while, and shows what of it has run and how often. */
const build = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >> steps; echo step-$i; sleep 0.2; done; echo built";
const allSteps = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
const allOutput = Array.from({ length: 10 }, (_, i) => `step-${i + 1}\n`).join("");

async function beginBuild(name: string): Promise<void> {
  await submit(name, build);
  await until("it builds", () => there(name, "steps").includes("2\n"));
}

describe.skipIf(!possible)("a session with remote=", () => {
  test("runs its tools there and nowhere else", async () => {
    const name = await session("first");
    expect(await server.read("s/first/remote")).toBe("idle alice@build\n");
    await submit(name, "hostname; id -un; pwd; echo here > made");
    const chat = await chatWhenIdle(name);
    expect(chat).toContain("build\nalice\n/home/alice/first\n");
    expect(chat).toContain("[on alice@build]");
    expect(there(name, "made")).toBe("here\n");
    expect(existsSync(join(server.home.work, "made"))).toBe(false);
    expect(await server.read("s/first/remote")).toBe("ready alice@build\n");
  });

  test("without cwd works in the home folder", async () => {
    await server.create("name=athome remote=alice@build");
    await submit("athome", "pwd");
    expect(await chatWhenIdle("athome")).toContain("\n/home/alice\n");
  });

  test.each<[string, () => void | Promise<void>]>([
    ["sshd loses all connections", () => host.killSshd("connections")],
    [
      "the bridge is killed",
      () => {
        for (const { pid, argv } of host.processes("alice"))
          if (argv.includes("serve")) process.kill(pid, "SIGKILL");
      },
    ],
    [
      "the cable is out for a while",
      async () => {
        await host.blackHole(true);
        await Bun.sleep(700);
        await host.blackHole(false);
      },
    ],
  ])("goes on with a build when %s", async (what, happens) => {
    const name = await session(what.replaceAll(" ", "-"));
    await beginBuild(name);
    await happens();
    await until("it is built", () => there(name, "steps") === allSteps);
    const chat = await chatWhenIdle(name);
    expect(there(name, "steps")).toBe(allSteps);
    expect(chat).toContain(`${allOutput}built\n`);
  });

  test("finds the build that goes on when olliesrv is killed and started again", async () => {
    const name = await session("restarted");
    await beginBuild(name);
    await server.kill9();
    await server.start();
    await until("it is built", () => there(name, "steps") === allSteps);
    // Nobody waits for the call any more: it has become a job.
    expect(await chatWhenIdle(name)).toContain("still runs on alice@build: it is job 1");
    await until(
      "its end is known",
      async () => (await server.read(`s/${name}/job/1/state`)) === "exited: 0\n",
    );
    expect(await server.read(`s/${name}/job/1/out`)).toBe(`${allOutput}built\n`);
    expect(there(name, "steps")).toBe(allSteps);
  });

  test("pauses while the host is out of reach, says so, and goes on by itself", async () => {
    const name = await session("away");
    await submit(name, "echo once");
    await chatWhenIdle(name);
    host.killSshd();
    try {
      await submit(name, "echo run >> runs; echo after the pause");
      await until("it says so", async () => (await server.read("s/away/state")).startsWith("unreachable: "));
      expect(await server.read("s/away/remote")).toMatch(/^(reconnecting|connecting) alice@build/);
      expect(there(name, "runs")).toBe("");
    } catch (error) {
      const now = [
        await server.read("s/away/state"),
        await server.read("s/away/remote"),
        host.log().slice(-500),
      ];
      throw new Error(now.join(""), { cause: error });
    } finally {
      await host.startSshd();
    }
    await server.write("s/away/ctl", "reconnect");
    expect(await chatWhenIdle(name)).toContain("after the pause\n");
    expect(there(name, "runs")).toBe("run\n");
  });

  test("finds what a daemon that was killed has left, and says that it was interrupted", async () => {
    const name = await session("crashed");
    await beginBuild(name);
    for (const { pid, argv } of host.processes("alice"))
      if (argv.includes("daemon")) process.kill(pid, "SIGKILL");
    const chat = await chatWhenIdle(name);
    expect(chat).toContain("interrupted");
    const steps = there(name, "steps");
    await submit(name, "echo still works");
    expect(await chatWhenIdle(name)).toContain("still works\n");
    expect(there(name, "steps")).toBe(steps);
  });

  test("has the tools of here, also those that change", async () => {
    const tools = join(server.home.config, "tools");
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(tools, "whereami"), "#!/bin/sh\nhostname\n", { mode: 0o755 });
    writeFileSync(join(tools, "whereami.meta"), '{"description": "says where it is"}');
    await until("it is known", async () => (await server.read("tools").catch(() => "")).includes("whereami"));
    const name = await session("tooled");
    await submit(name, "true");
    await chatWhenIdle(name);
    await server.write(`s/${name}/ctl`, "sync");
    const folder = host.at("/home/alice/.cache/ollie/tools");
    const find = await client.ssh(host, "alice", "cat ~/.cache/ollie/tools/*/*/whereami | tail -n 1");
    expect([existsSync(folder), find.stdout]).toEqual([true, "hostname\n"]);
  });

  test("leaves nothing on the host when it is destroyed", async () => {
    const name = await session("gone");
    await submit(name, "setsid sleep 1000 >/dev/null 2>&1 & echo begun");
    await chatWhenIdle(name);
    expect(left()).toContain("daemon");
    const names = (await server.p9("ls", "s")).stdout.trim().split("\n");
    for (const each of names.filter((word) => !["idx", "new"].includes(word)))
      await server.write(`s/${each}/ctl`, "kill");
    await until("nothing is left", () => left() === "").catch(() => expect(left()).toBe(""));
    expect(existsSync(host.at("/home/alice/gone"))).toBe(true);
  });
});
