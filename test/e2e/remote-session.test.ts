/** A session on another host, as a user of `o` has it: a real sshd on the loopback device, a target of remotes.yaml, the compiled programs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lacksSshd, Site } from "../ssh/server.ts";
import { startServer, succeeded, type TestServer, until } from "./harness.ts";

setDefaultTimeout(180_000);

const possible = !lacksSshd();
let site: Site;
let server: TestServer;
/** What the host has for a home, and a project in it. */
let home: string;
let project: string;

beforeAll(async () => {
  if (!possible) return;
  site = new Site();
  home = mkdtempSync(join(tmpdir(), "ollie-there-"));
  project = join(home, "project");
  mkdirSync(project);
  // The host is this machine: nothing of its user's home may be touched.
  const host = await site.host([`SetEnv HOME=${home} XDG_RUNTIME_DIR=${home} OLLIE_DIR=${home}/base`]);
  server = await startServer({ env: { OLLIE_BACKEND: "script" } });
  mkdirSync(server.home.config, { recursive: true });
  const target = {
    kind: "ssh",
    host_alias: "h",
    ssh_config_path: site.config(host),
    known_hosts_path: site.knownHosts,
    runner: { remote_session_root: join(home, "sessions") },
  };
  writeFileSync(
    join(server.home.config, "remotes.yaml"),
    JSON.stringify({ schema_version: 1, targets: { build: target } }),
  );
  succeeded(await server.home.olliesrv("reload"));
});
afterAll(async () => {
  if (!possible) return;
  for (const name of ["main", "lost"]) await server.write(`session/${name}/ctl`, "kill\n").catch(() => {});
  await until(
    "nothing of a session is left there",
    () =>
      !existsSync(join(home, "sessions/sessions")) ||
      Bun.spawnSync(["ls", join(home, "sessions/sessions")], { env: {} }).stdout.length === 0,
  );
  await server.stop();
  site[Symbol.dispose]();
  rmSync(home, { recursive: true, force: true });
});

const read = (file: string, name = "main") => server.read(`s/${name}/${file}`);
const idle = (name = "main") => until("it is idle", async () => (await read("state", name)) === "idle\n");
const ask = (text: string, name = "main") => server.write(`s/${name}/prompt`, text);

describe.skipIf(!possible)("a session on a target of remotes.yaml", () => {
  test("is made by o, reaches the host when it is needed, and runs tools there", async () => {
    succeeded(await server.o("new", "name=main", "remote=build", `cwd=${project}`));
    expect(await server.read("session/main/remote")).toBe("idle build\n");
    await ask("$ pwd; echo made > file");
    await idle();
    const chat = await read("chat");
    expect(chat).toContain(`${project}\n`);
    expect(chat).toContain("Bringing ollie-remote to build:");
    expect(chat).toContain("ollie-remote is on build now.");
    expect(readFileSync(join(project, "file"), "utf8")).toBe("made\n");
    expect(await server.read("session/main/remote")).toBe("ready build\n");
    expect(await server.read("metrics")).toContain('ollie_remotes{state="ready"} 1\n');
  });

  test("keeps what it is there in a file that nobody else reads, and shows no key of it", async () => {
    const file = join(server.home.state, "sessions/main/session.json");
    const { key } = JSON.parse(readFileSync(file, "utf8")).locator;
    expect(statSync(file).mode & 0o777).toBe(0o600);
    for (const name of ["cfg", "snapshot", "machine", "trace"]) expect(await read(name)).not.toContain(key);
    expect(await server.read("session/main/cfg")).not.toContain(key);
  });

  test("cannot be moved to another host any more", async () => {
    await expect(server.write("session/main/cfg", "remote=\n")).rejects.toThrow("have run on build");
  });

  test("stop ends what runs there", async () => {
    await ask("$ echo $$ > pid; exec sleep 1000");
    await until("it runs", () => existsSync(join(project, "pid")));
    const pid = readFileSync(join(project, "pid"), "utf8").trim();
    await server.write("s/main/ctl", "stop\n");
    await idle();
    await until("its process is gone", () => !existsSync(`/proc/${pid}`));
  });

  test("what ran when the server was killed runs on, is a job then, and has run once", async () => {
    await ask("$ echo begun >> runs; until [ -e go ]; do sleep 0.1; done; echo finished");
    await until("it runs", () => existsSync(join(project, "runs")));
    await server.kill9();
    await server.start();
    const adopted = "still runs on build: it is job 1 of this session now";
    await until("it is a job", async () => (await read("chat")).includes(adopted));
    expect(await server.read("session/main/job/1/state")).toBe("running\n");
    writeFileSync(join(project, "go"), "");
    await until("it has ended", async () => (await server.read("session/main/job/1/state")) !== "running\n");
    expect(await server.read("session/main/job/1/out")).toContain("finished\n");
    expect(readFileSync(join(project, "runs"), "utf8")).toBe("begun\n");
    await idle();
  });
});

describe.skipIf(!possible)("a host where nobody answers", () => {
  test("is told by state and by remote, the model is not asked, and stop ends the turn", async () => {
    await server.create("name=lost remote=nobody@127.0.0.1:1");
    await ask("$ true", "lost");
    await until("the way says why", async () =>
      /^reconnecting|^failed/.test(await server.read("session/lost/remote")),
    );
    await until(
      "the state says so",
      async () => (await read("state", "lost")) === "unreachable: nobody@127.0.0.1:1\n",
    );
    await server.write("s/lost/ctl", "stop\n");
    await idle("lost");
    expect(await read("usage", "lost")).toContain("requests=0");
  });
});
