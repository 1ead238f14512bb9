/** Hosts of every kind answer plain OpenSSH, as real ones would. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { until } from "../until.ts";
import { type Host, lacksArm64, lacksHosts, lacksMusl, startClient } from "./rig.ts";
import { everybody, shells } from "./users.ts";

setDefaultTimeout(60_000);

const possible = !lacksHosts();
const client = possible ? await startClient() : undefined!;
afterAll(() => client?.close());

const plain = "exec /bin/sh -c 'echo home=$HOME; id -un'";

describe.skipIf(!possible)("people of a host", async () => {
  const host: Host = possible
    ? await client.startHost({
        name: "people",
        users: {
          ...everybody,
          forced: "bash",
        },
        sshd: ["Banner /etc/hostname", "Match User forced", "  ForceCommand /bin/echo only this"],
      })
    : undefined!;

  test.each([...shells.map((shell) => `quiet-${shell}`), "nu"])("%s runs a command", async (user) => {
    expect(await client.ssh(host, user, plain)).toMatchObject({
      status: 0,
      stdout: `home=/home/${user}\n${user}\n`,
    });
  });

  // Debian's dash and mksh read nothing for a command.
  test.each(["bash", "zsh", "fish", "tcsh"])("%s that is noisy says something before", async (shell) => {
    const { stdout } = await client.ssh(host, `noisy-${shell}`, plain);
    expect(stdout).toContain("welcome to the machine\nno end of line");
    expect(stdout).toEndWith(`home=/home/noisy-${shell}\nnoisy-${shell}\n`);
  });

  test.each([
    ["windows", "'exec' is not recognized"],
    ["restricted", "exec: restricted"],
    ["nobodys", "not available"],
    ["falsy", ""],
  ])("%s runs none", async (user, said) => {
    const { status, stdout, stderr } = await client.ssh(host, user, plain);
    expect(status).toBe(1);
    expect(stdout + stderr).toContain(said);
  });

  test("nu takes nothing but words and text in single quotes", async () => {
    expect((await client.ssh(host, "nu", "echo $HOME")).stderr).toContain("parse_mismatch");
    expect((await client.ssh(host, "nu", "echo 'a \"b\" $c'")).stdout).toBe('a "b" $c\n');
  });

  test("a forced command comes in the place of any other", async () => {
    expect(await client.ssh(host, "forced", "id")).toMatchObject({ status: 0, stdout: "only this\n" });
  });

  test.each([
    ["nx", "cp /bin/true x && ./x", "Permission denied"],
    ["ro", "touch x", "Read-only file system"],
    ["tiny", "head -c 5000000 /dev/zero > x", "No space left on device"],
  ])("the home of %s is as bad as it should be", async (user, command, said) => {
    const { status, stderr } = await client.ssh(host, user, command);
    expect(status).not.toBe(0);
    expect(stderr).toContain(said);
  });

  test("what is done there can be seen and done from here", async () => {
    await client.ssh(host, "quiet-bash", "echo written > file; nohup sleep 1000 >/dev/null 2>&1 &");
    expect(readFileSync(host.at("/home/quiet-bash/file"), "utf8")).toBe("written\n");
    const running = () => host.processes("quiet-bash").map(({ argv }) => argv);
    // sshd's own process for the connection ends a moment after the client's.
    await until("sshd has left", () => running().length === 1);
    expect(running()).toEqual([["sleep", "1000"]]);
    await host.clear("quiet-bash");
    expect(host.processes("quiet-bash")).toEqual([]);
    expect(host.exec("hostname")).toBe("people\n");
    expect(existsSync("/home/quiet-bash")).toBe(false);
  });

  test("is reached by IPv6, too", async () => {
    const { stdout } = await client.run(["ssh", `quiet-bash@${host.ipv6}`, "echo here"]);
    expect(stdout).toBe("here\n");
  });
});

describe("sshd", () => {
  test.skipIf(!possible)("can be ended and started again, and get another key", async () => {
    const host = await client.startHost({ name: "changing" });
    const child = client.spawn(["ssh", "alice@changing", "sleep 1000"]);
    await client.run(["sh", "-c", "until ssh alice@changing pgrep -x sleep; do :; done"]);
    host.killSshd();
    expect(await child.exited).toBe(255);
    expect((await client.ssh(host, "alice", "true")).stderr).toContain("Connection refused");
    await host.startSshd();
    expect((await client.ssh(host, "alice", "true")).status).toBe(0);
    const before = host.hostKey;
    await host.newHostKey();
    expect(host.hostKey).not.toBe(before);
    expect((await client.ssh(host, "alice", "true")).stderr).toContain(
      "REMOTE HOST IDENTIFICATION HAS CHANGED",
    );
  });

  test.skipIf(!possible)("is unknown to a client that has never seen it", async () => {
    const host = await client.startHost({ name: "stranger", known: false });
    expect((await client.ssh(host, "alice", "true")).stderr).toContain("Host key verification failed");
  });
});

describe("another root", () => {
  test.skipIf(lacksMusl())("has busybox, musl and nothing else", async () => {
    const host = await client.startHost({ name: "alpine", root: "musl" });
    const { status, stdout } = await client.ssh(host, "alice", "uname -m; ls /lib; touch ~/x /tmp/x; ls ~");
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: "x86_64\nld-musl-x86_64.so.1\nlibc.musl-x86_64.so.1\nx\n",
    });
    expect(existsSync(host.at("/home/alice/x"))).toBe(true);
  });

  test.skipIf(lacksArm64())("runs programs of another processor", async () => {
    const host = await client.startHost({ name: "arm", root: "arm64" });
    const { stdout } = await client.ssh(
      host,
      "alice",
      "uname -sm; /lib/ld-linux-aarch64.so.1 --version | head -n 1",
    );
    expect(stdout).toStartWith("Linux aarch64\nld.so ");
  });
});
