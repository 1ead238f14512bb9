/** What the ssh program leaves behind, and what it is told. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../src/ssh/connect.ts";
import { until } from "../until.ts";
import { type Host, lacksSshd, never, Site } from "./server.ts";

const missing = lacksSshd();

/** Processes with these words in their arguments. */
function processes(words: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").includes(words);
      } catch {
        return false; // has ended
      }
    })
    .map(Number);
}

describe.skipIf(missing)("the ssh program", () => {
  let site: Site;
  let host: Host;
  let runtime: string;
  const before = process.env.XDG_RUNTIME_DIR;
  beforeAll(async () => {
    site = new Site();
    host = await site.host();
    runtime = mkdtempSync("/tmp/ollie-rt-");
    process.env.XDG_RUNTIME_DIR = runtime;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = before;
    rmSync(runtime, { recursive: true, force: true });
    site[Symbol.dispose]();
  });
  const open = () => connect(site.target(site.config(host), { via: "openssh" }), undefined, never);

  test("its folder is private, and goes with the connection", async () => {
    const connection = await open();
    const base = join(runtime, "ollie");
    const [folder] = readdirSync(base);
    expect(statSync(base).mode & 0o777).toBe(0o700);
    expect(statSync(join(base, folder!)).mode & 0o777).toBe(0o700);
    expect(processes(join(base, folder!)).length).toBeGreaterThan(0);
    connection.close();
    expect(readdirSync(base)).toEqual([]);
    await until("its processes are gone", () => processes(join(base, folder!)).length === 0);
  });

  test("it ends with the process that has started it, however that ends", async () => {
    const code = `
      const { connect } = await import(${JSON.stringify(join(import.meta.dir, "../../src/ssh/connect.ts"))});
      const connection = await connect(JSON.parse(process.argv.at(-1)), undefined, new AbortController().signal);
      const channel = await connection.exec("echo up; exec sleep 1000");
      for await (const bytes of channel.stdout) process.stdout.write(bytes);
    `;
    const target = JSON.stringify(site.target(site.config(host), { via: "openssh" }));
    const child = spawn(process.execPath, ["-e", code, target], {
      env: { ...process.env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const base = join(runtime, "ollie");
    const [folder] = readdirSync(base).filter((name) => name.startsWith(`ssh.${child.pid}.`));
    child.kill("SIGKILL");
    await until("its processes are gone", () => processes(join(base, folder!)).length === 0);
    // What it could not remove the next one does.
    const connection = await open();
    expect(readdirSync(base).filter((name) => name === folder)).toEqual([]);
    connection.close();
  });

  test("a master that was left behind is ended, and its folder removed", async () => {
    const dead = Bun.spawnSync(["true"], { env: {} }).pid;
    const folder = join(runtime, "ollie", `ssh.${dead}.stale`);
    mkdirSync(folder, { recursive: true });
    const config = site.config(host, `UserKnownHostsFile ${site.knownHosts}`);
    const master = spawn("ssh", ["-F", config, "-M", "-N", "-S", join(folder, "c"), "h"], {
      env: { ...process.env },
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => master.once("exit", resolve));
    await until("it stands", () => existsSync(join(folder, "c")));
    const connection = await open();
    await ended;
    expect(existsSync(folder)).toBe(false);
    connection.close();
  });

  test("a runtime folder whose name is too long for sockets", async () => {
    const long = join(mkdtempSync(join(tmpdir(), "ollie-")), "x".repeat(80));
    process.env.XDG_RUNTIME_DIR = long;
    try {
      const connection = await open();
      expect(await (await connection.exec("exit 4")).closed).toEqual({ code: 4 });
      connection.close();
    } finally {
      process.env.XDG_RUNTIME_DIR = runtime;
    }
  });

  test("one connection logs in once, however many programs it runs", async () => {
    const connection = await open();
    const logins = () => host.log.match(/Accepted publickey/g)!.length;
    const count = logins();
    for (let at = 0; at < 3; at++) await (await connection.exec("true")).closed;
    expect(logins()).toBe(count);
    connection.close();
  });
});
