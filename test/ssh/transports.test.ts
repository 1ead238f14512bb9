/** What both ways to another host owe, one table for the two. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "../../src/ssh/connect.ts";
import type { SshChannel, SshConnection } from "../../src/ssh/transport.ts";
import { lacks } from "../needs.ts";
import { until } from "../until.ts";
import { type Host, lacksSshd, never, Site } from "./server.ts";

const missing = lacksSshd();

async function all(channel: SshChannel): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of channel.stdout) pieces.push(piece);
  return Buffer.concat(pieces);
}

function loopback6(): boolean {
  return existsSync("/proc/net/if_inet6") && / lo$/m.test(readFileSync("/proc/net/if_inet6", "utf8"));
}

/** That process and those of its children that hold the socket too, not the program. */
function sshdsOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean);
  return [
    ...children.filter((child) => readFileSync(`/proc/${child}/comm`, "utf8").startsWith("sshd")).map(Number),
    pid,
  ];
}

describe.skipIf(missing).each(["ssh2", "openssh"] as const)("%s", (via) => {
  let site: Site;
  let host: Host;
  let config: string;
  const open: SshConnection[] = [];
  const connected = async () => {
    const connection = await connect(site.target(config, { via }), undefined, never);
    open.push(connection);
    return connection;
  };

  beforeAll(async () => {
    site = new Site();
    host = await site.host();
    config = site.config(
      host,
      "SendEnv LC_*",
      "RemoteCommand echo wrong",
      "RequestTTY force",
      "ForwardAgent yes",
      "ForwardX11 yes",
      "ControlMaster auto",
      `ControlPath ${site.folder}/users-own`,
      "PermitLocalCommand yes",
      "LocalCommand echo wrong",
      `LocalForward ${site.folder}/forwarded 127.0.0.1:1`,
    );
  });
  afterAll(() => {
    for (const connection of open) connection.close();
    site[Symbol.dispose]();
  });

  test("says which way it is, and what key the host has shown", async () => {
    const connection = await connected();
    expect(connection.via).toBe(via);
    if (via === "ssh2") expect(connection.hostKey).toBe(host.fingerprint());
  });

  test("status, output and what is said for people", async () => {
    const connection = await connected();
    const channel = await connection.exec("echo out; echo err >&2; exit 7");
    expect((await all(channel)).toString()).toBe("out\n");
    expect(await channel.closed).toEqual({ code: 7 });
    expect(channel.stderr()).toBe("err\n");
  });

  test("255 is a status like any other", async () => {
    const channel = await (await connected()).exec("exit 255");
    expect(await channel.closed).toEqual({ code: 255 });
  });

  test("a program that a signal has ended", async () => {
    const channel = await (await connected()).exec("kill -9 $$");
    // The ssh program does not tell which.
    expect(await channel.closed).toEqual(via === "ssh2" ? { signal: "SIGKILL" } : { code: 255 });
  });

  test("there is no terminal, no agent and no variable of this side", async () => {
    process.env.LC_OLLIE_TEST = "here";
    try {
      const channel = await (await connected()).exec('tty; echo "$LC_OLLIE_TEST$SSH_AUTH_SOCK$DISPLAY."');
      channel.end();
      expect((await all(channel)).toString()).toBe("not a tty\n.\n");
    } finally {
      delete process.env.LC_OLLIE_TEST;
    }
  });

  test("every byte passes both ways, megabytes of them", async () => {
    const connection = await connected();
    const bytes = Buffer.concat([
      Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
      randomBytes(8 << 20),
    ]);
    const channel = await connection.exec("exec cat");
    const back = all(channel);
    for (let at = 0; at < bytes.length; at += 100_000) await channel.write(bytes.subarray(at, at + 100_000));
    channel.end();
    const sha = (data: Buffer) => createHash("sha256").update(data).digest("hex");
    expect(sha(await back)).toBe(sha(bytes));
    expect(await channel.closed).toEqual({ code: 0 });
    expect(channel.buffered).toBe(0);
  });

  test("a program that does not read holds the writer back", async () => {
    const connection = await connected();
    const channel = await connection.exec("exec sleep 1000");
    let written = 0;
    const piece = Buffer.alloc(1 << 20);
    const flood = (async () => {
      while (written < 64 << 20) {
        await channel.write(piece);
        written += piece.length;
      }
    })().catch((error) => error.code);
    // It has come to a stop when nothing was added for a while.
    let last = -1;
    await until("the writer is held back", async () => {
      const before = last;
      last = written;
      await Bun.sleep(300);
      return before === written && written > 0;
    });
    expect(written).toBeLessThan(32 << 20);
    expect(channel.buffered).toBeGreaterThan(0);
    channel.close();
    expect(await flood).toBe("ssh.dropped");
    expect(await channel.closed).toEqual({});
  });

  test("a reader that takes its time holds the program back, and gets everything", async () => {
    const channel = await (await connected()).exec("head -c 20000000 /dev/zero");
    await Bun.sleep(300);
    expect((await all(channel)).length).toBe(20_000_000);
    expect(await channel.closed).toEqual({ code: 0 });
  });

  test("only the end of stderr is kept", async () => {
    const channel = await (await connected()).exec("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2");
    await channel.closed;
    expect(channel.stderr().length).toBe(32 << 10);
    expect(channel.stderr()).toEndWith("xend\n");
  });

  test("channels of one connection run side by side", async () => {
    const connection = await connected();
    const channels = await Promise.all(
      Array.from({ length: 8 }, (_, at) => connection.exec(`sleep 0.2; echo ${at}`)),
    );
    expect((await Promise.all(channels.map(all))).join("")).toBe("0\n1\n2\n3\n4\n5\n6\n7\n");
  });

  test("the other host answers a probe, and all is as it was", async () => {
    const connection = await connected();
    await connection.probe(10_000);
    expect(await (await connection.exec("exit 3")).closed).toEqual({ code: 3 });
  });

  test("a connection that breaks says so everywhere", async () => {
    const connection = await connected();
    const before = new Set(host.sessions());
    const doomed = await connected();
    const channel = await doomed.exec("echo $PPID; exec sleep 1000");
    const [first] = [await channel.stdout[Symbol.asyncIterator]().next()];
    expect(first.value).toBeDefined();
    const session = await until("its sshd", () => host.sessions().find((pid) => !before.has(pid)));
    for (const pid of sshdsOf(session)) process.kill(pid, "SIGKILL");
    expect((await doomed.closed) as object).toMatchObject({ code: "ssh.dropped" });
    expect((await channel.closed).fault as object).toMatchObject({ code: "ssh.dropped" });
    await expect(channel.write(Buffer.from("x"))).rejects.toThrow("gone");
    await expect(doomed.exec("true")).rejects.toThrow("gone");
    await expect(doomed.probe(1000)).rejects.toThrow("gone");
    // The other one is another one.
    await connection.probe(10_000);
  });

  test("a host that stands still is found out by a probe, and what ran is lost", async () => {
    const before = new Set(host.sessions());
    const connection = await connected();
    const channel = await connection.exec("exec sleep 1000");
    const session = await until("its sshd", () => host.sessions().find((pid) => !before.has(pid)));
    process.kill(session, "SIGSTOP");
    try {
      await expect(connection.probe(500)).rejects.toMatchObject({ code: "ssh.dropped" });
      expect((await channel.closed).fault as object).toMatchObject({ code: "ssh.dropped" });
    } finally {
      process.kill(session, "SIGKILL");
    }
  });

  test("a host that stands still is found out without a question of ours", async () => {
    const before = new Set(host.sessions());
    const quick = site.config(host, "ServerAliveInterval 1", "ServerAliveCountMax 1");
    const connection = await connect(site.target(quick, { via }), undefined, never);
    const session = await until("its sshd", () => host.sessions().find((pid) => !before.has(pid)));
    process.kill(session, "SIGSTOP");
    try {
      expect((await connection.closed) as object).toMatchObject({ code: "ssh.dropped" });
    } finally {
      process.kill(session, "SIGKILL");
    }
  });

  test.skipIf(lacks("IPv6 on the loopback device", loopback6()))("by an IPv6 address", async () => {
    const sixth = await site.host(["ListenAddress ::1"], { known: false });
    site.know(`[::1]:${sixth.port}`, `${sixth.keys[0]}.pub`);
    const anywhere = site.config(host, "Host *", `IdentityFile ${site.key}`, "IdentityAgent none");
    const name = `root@[::1]:${sixth.port}`;
    const connection = await connect(site.target(anywhere, { via, name }), undefined, never);
    expect(await (await connection.exec("exit 6")).closed).toEqual({ code: 6 });
    connection.close();
  });

  test("closing it is no fault", async () => {
    const connection = await connected();
    const channel = await connection.exec("exec sleep 1000");
    connection.close();
    expect(await connection.closed).toBeUndefined();
    const { code, signal } = await channel.closed;
    expect(code ?? signal).toBeUndefined();
  });

  test("too many programs on one connection: the connection goes on", async () => {
    const small = await site.host(["MaxSessions 1"]);
    const connection = await connect(site.target(site.config(small), { via }), undefined, never);
    open.push(connection);
    const first = await connection.exec("cat");
    const output = first.stdout[Symbol.asyncIterator]();
    await first.write(Buffer.from("here"));
    expect(Buffer.from((await output.next()).value!).toString()).toBe("here");
    let code: string | undefined;
    try {
      const second = await connection.exec("true");
      code = ((await second.closed).fault as { code?: string } | undefined)?.code;
    } catch (error) {
      code = (error as { code: string }).code;
    }
    expect(code).toBe("ssh.refused");
    await connection.probe(10_000);
    await first.write(Buffer.from("still here"));
    expect(Buffer.from((await output.next()).value!).toString()).toBe("still here");
    first.close();
  });
});
