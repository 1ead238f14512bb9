/** ollie-remote gets to hosts of all kinds, by both ways of SSH, and runs there. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { type Client, type Host, lacksArm64, lacksHosts, lacksMusl, startClient } from "../../rig/rig.ts";
import { everybody, shells } from "../../rig/users.ts";
import { until } from "../../until.ts";
import { Driver } from "./driver.ts";
import { forArm64, nextVersion } from "./programs.ts";

setDefaultTimeout(120_000);

const possible = !lacksHosts();
let client: Client;
let driver: Driver;
let people: Host;
let limited: Host;
let next: string;

beforeAll(async () => {
  if (!possible) return;
  client = await startClient();
  driver = await Driver.start(client);
  next = nextVersion();
  people = await client.startHost({
    name: "people",
    users: {
      ...everybody,
      twice: "bash",
    },
  });
  limited = await client.startHost({
    name: "limited",
    users: { alice: "bash", echo: "bash", files: "bash" },
    sshd: [
      "MaxSessions 1",
      "Banner /etc/hostname",
      "Match User echo",
      "  ForceCommand /bin/echo only this",
      "Match User files",
      "  ForceCommand internal-sftp",
    ],
  });
});
afterAll(async () => {
  await driver?.stop();
  await client?.close();
});

/** Names in a folder of programs on a host. */
function installed(host: Host, base: string): string[] {
  const folder = host.at(`${base}/bin`);
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}
const cache = (user: string) => `/home/${user}/.cache/ollie`;

/** Gives a user what another one has: the next version then has little to bring. */
function seed(host: Host, user: string, from: string): void {
  const folder = `/home/${user}/.cache`;
  host.exec("sh", "-euc", `cp -a /home/${from}/.cache ${folder}; chown -R ${user}:${user} ${folder}`);
}

describe.skipIf(!possible)("a login shell", () => {
  test.each(shells)("%s: the whole program, then none of it, then what has changed", async (shell) => {
    const quiet = `quiet-${shell}`;
    const first = await driver.boot(`${quiet}@people`);
    expect(first.hello).toMatchObject({ user: quiet, home: people.home(quiet), digest: first.digest });
    expect([first.hit, first.uploaded > 10_000_000]).toEqual([false, true]);
    expect(installed(people, cache(quiet))).toEqual([`ollie-remote-${first.digest}`]);
    expect(await driver.boot(`${quiet}@people`)).toMatchObject({
      hit: true,
      uploaded: 0,
      digest: first.digest,
    });

    const noisy = `noisy-${shell}`;
    seed(people, noisy, quiet);
    const second = await driver.boot(`${noisy}@people`, { options: { programs: next } });
    expect(second.hello).toMatchObject({ user: noisy, digest: second.digest });
    expect(second.digest).not.toBe(first.digest);
    expect(second.uploaded).toBeWithin(1, 1024 * 1024 + 1);
    for (const via of ["ssh2", "openssh"] as const)
      expect(await driver.boot(`${noisy}@people`, { via, options: { programs: next } })).toMatchObject({
        hit: true,
      });
    await people.clear(quiet);
    await people.clear(noisy);
  });

  test("that takes only words and text in single quotes", async () => {
    seed(people, "nu", "quiet-bash");
    expect((await driver.boot("nu@people", { options: { programs: next } })).hit).toBe(false);
    expect((await driver.boot("nu@people", { options: { programs: next } })).hit).toBe(true);
  });

  test.each([
    ["windows@people", "boot.unsupported", "is not recognized"],
    ["restricted@people", "ssh.no_shell", "restricted"],
    ["nobodys@people", "ssh.no_shell", "This account is currently not available"],
    ["falsy@people", "ssh.no_shell", "it said nothing"],
    ["echo@limited", "ssh.forced", "only this"],
    ["files@limited", "ssh.no_shell", ""],
  ])("of %s that is none, or a command in its place, is told by what it said", async (target, code, said) => {
    for (const via of ["ssh2", "openssh"] as const) {
      const refusal = await driver.refusal(target, { via });
      expect(refusal.code).toBe(code);
      expect(refusal.message).toContain(said);
    }
  });
});

describe.skipIf(!possible)("a home", () => {
  test.each([
    ["nx", "noexec"],
    ["ro", "read-only"],
    ["tiny", "no room"],
  ])("of %s that is of no use is passed over, and that is told", async (user, reason) => {
    const elsewhere = `/var/tmp/ollie-${people.uids.get(user)}`;
    const first = await driver.boot(`${user}@people`);
    expect(first.hello.digest).toBe(first.digest);
    expect(first.notes.join("\n")).toContain(reason);
    expect(first.notes.join("\n")).toContain("/var/tmp/ollie-");
    expect(installed(people, elsewhere)).toEqual([`ollie-remote-${first.digest}`]);
    expect(statSync(people.at(elsewhere)).mode & 0o777).toBe(0o700);
    expect((await driver.boot(`${user}@people`)).hit).toBe(true);
    expect(installed(people, cache(user))).toEqual([]);
    await people.clear(user);
    people.exec("rm", "-rf", elsewhere);
  });
});

describe.skipIf(!possible)("what lies there", () => {
  const user = "quiet-bash";
  const bin = () => people.at(`${cache(user)}/bin`);

  test.each<[string, (file: string) => void]>([
    ["cut short", (file) => truncateSync(file, 1000)],
    [
      "exchanged for as many other bytes",
      (file) => writeFileSync(file, Buffer.alloc(statSync(file).size, 7)),
    ],
  ])("is brought anew when it was %s", async (_, spoil) => {
    const { digest } = await driver.boot(`${user}@people`);
    const file = `${bin()}/ollie-remote-${digest}`;
    await people.clear(user);
    // The kernel lets go of a program a moment after its last process has gone.
    await until("nothing runs it", () => done(() => spoil(file)));
    expect(await driver.boot(`${user}@people`)).toMatchObject({ hit: false, hello: { digest } });
    expect((await driver.boot(`${user}@people`)).hit).toBe(true);
  });

  test("of old versions goes, but for one; so do pieces of uploads that nobody goes on with", async () => {
    const old = `${bin()}/.up-${"0".repeat(64)}.1`;
    writeFileSync(old, "x");
    utimesSync(old, 1_000_000, 1_000_000);
    const digests: string[] = [];
    for (let count = 0; count < 3; count++)
      digests.push((await driver.boot(`${user}@people`, { options: { programs: nextVersion() } })).digest);
    await people.clear(user);
    const { digest } = await driver.boot(`${user}@people`, { options: { programs: nextVersion() } });
    const names = installed(people, cache(user));
    expect(names).toContain(`ollie-remote-${digest}`);
    expect(names).toContain(`ollie-remote-${digests.at(-1)}`);
    expect(names).not.toContain(`ollie-remote-${digests[0]}`);
    expect(existsSync(old)).toBe(false);
  });

  test("of an upload that broke off is used", async () => {
    const cut = 30_000_000;
    const broken = await driver.try({ target: "twice@people", cut });
    expect(broken.fault?.code).toMatch(/^(ssh\.dropped|boot\.short)$/);
    await until("what has arrived is kept", () => installed(people, cache("twice"))[0]?.startsWith(".part"));
    const { uploaded, hello, digest } = await driver.boot("twice@people");
    expect(hello.digest).toBe(digest);
    expect(uploaded).toBeLessThan(cut);
    expect(installed(people, cache("twice"))).toEqual([`ollie-remote-${digest}`]);
    people.exec("rm", "-rf", cache("twice"));
  });

  test("of two clients that come at once is one program", async () => {
    const other = await Driver.start(client);
    try {
      const both = await Promise.all([driver, other].map((each) => each.boot("twice@people")));
      expect(new Set(both.map(({ hello }) => hello.digest)).size).toBe(1);
      expect(installed(people, cache("twice"))).toEqual([`ollie-remote-${both[0]!.digest}`]);
    } finally {
      await other.stop();
    }
  });
});

describe.skipIf(!possible)("a way", () => {
  test("with room for one session at a time, behind a banner", async () => {
    for (const via of ["ssh2", "openssh"] as const)
      expect((await driver.boot("alice@limited", { via })).hello.user).toBe("alice");
  });

  test("through another host, by IPv6, and with a configuration for people at terminals", async () => {
    await client.run(["tee", "-a", `${client.home}/.ssh/config`], {
      stdin: [
        "Host behind",
        `  HostName ${limited.address}`,
        "  ProxyJump quiet-dash@people",
        "Host terminal",
        `  HostName ${limited.address}`,
        "  RequestTTY force",
        "  RemoteCommand bash -l",
        "  SendEnv LC_*",
        "",
      ].join("\n"),
    });
    for (const target of ["alice@behind", `alice@${limited.ipv6}`, "alice@terminal"])
      for (const via of ["ssh2", "openssh"] as const)
        expect((await driver.boot(target, { via })).hello.user).toBe("alice");
  });

  test("that is long and loses things", async () => {
    await client.startHost({ name: "far", link: { delay: 25, jitter: 3, loss: 0.005 } });
    const [first, second] = [await driver.boot("alice@far"), await driver.boot("alice@far")];
    expect([first.hello.digest, second.hit]).toEqual([first.digest, true]);
  });

  test("to a host with another key than before, or one nobody knows, is not taken", async () => {
    const host = await client.startHost({ name: "changed" });
    await client.startHost({ name: "stranger", known: false });
    const fingerprint = async () =>
      (await client.run(["ssh-keygen", "-lf", "-"], { stdin: host.hostKey })).stdout.split(" ")[1]!;
    const before = await fingerprint();
    await host.newHostKey();
    for (const via of ["ssh2", "openssh"] as const) {
      const changed = await driver.refusal("alice@changed", { via });
      expect(changed.code).toBe("ssh.hostkey_changed");
      const words = `${changed.message} ${changed.hint}`;
      expect(words).toContain(await fingerprint());
      if (via === "ssh2") expect(words).toContain(before);
      expect((await driver.refusal("alice@stranger", { via })).code).toBe("ssh.hostkey_unknown");
    }
  });
});

describe("a host", () => {
  test.skipIf(lacksMusl())("without glibc gets one that only ollie-remote uses", async () => {
    const host = await client.startHost({ name: "alpine", root: "musl" });
    const first = await driver.boot("alice@alpine");
    expect(first.hello).toMatchObject({ libc: "brought", digest: first.digest, arch: "x64" });
    expect((await driver.boot("alice@alpine")).hit).toBe(true);
    expect(installed(host, cache("alice"))).toEqual([`ollie-remote-${first.digest}`]);
  });

  test.skipIf(lacksArm64())("with another processor gets the program for that", async () => {
    const programs = await forArm64();
    await client.startHost({ name: "arm", root: "arm64" });
    const first = await driver.boot("alice@arm", { options: { programs } });
    expect(first.hello).toMatchObject({ arch: "arm64", digest: first.digest });
    expect((await driver.boot("alice@arm", { options: { programs } })).hit).toBe(true);
    // Without that program, it is said what is missing.
    expect(await driver.refusal("alice@arm")).toMatchObject({ code: "boot.unsupported" });
  });
});

/** False where a program that still runs cannot be written. */
function done(change: () => void): boolean {
  try {
    change();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ETXTBSY") return false;
    throw error;
  }
}
