/** Whether a host is the right one: files of known keys, keys that changed, hosts that are new. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../src/ssh/connect.ts";
import type { SshTarget } from "../../src/ssh/transport.ts";
import { type Host, keygen, lacksSshd, never, People, refusal, Site } from "./server.ts";

const missing = lacksSshd();

describe.skipIf(missing).each(["ssh2", "openssh"] as const)("%s", (via) => {
  let site: Site;
  let host: Host;
  let config: string;
  let name: string;
  beforeAll(async () => {
    site = new Site();
    host = await site.host([], { types: ["ed25519", "ecdsa"] });
    config = site.config(host);
    name = `[127.0.0.1]:${host.port}`;
  });
  beforeEach(() => writeFileSync(site.knownHosts, ""));
  afterAll(() => site[Symbol.dispose]());

  const target = (more: Partial<SshTarget> = {}) => site.target(config, { via, ...more });
  const enters = async (more: Partial<SshTarget> = {}, people?: People) => {
    const connection = await connect(target(more), people, never);
    connection.close();
  };
  const publicKey = (at = 0) => `${host.keys[at]}.pub`;
  const line = (at: number) => readFileSync(publicKey(at), "utf8").split(" ").slice(0, 2).join(" ");

  test("a name that is hashed", async () => {
    site.know(name, publicKey());
    Bun.spawnSync(["ssh-keygen", "-H", "-f", site.knownHosts], { env: { ...process.env } });
    expect(readFileSync(site.knownHosts, "utf8")).toStartWith("|1|");
    await enters();
  });

  test("patterns, lists and comments", async () => {
    writeFileSync(site.knownHosts, `# mine\n\nother,[127.0.*]:${host.port} ${line(0)} comment\nnonsense\n`);
    await enters();
  });

  test("a pattern that excludes the host", async () => {
    writeFileSync(site.knownHosts, `[127.*]:${host.port},!${name} ${line(0)}\n`);
    expect((await refusal(connect(target(), undefined, never))).code).toBe("ssh.hostkey_unknown");
  });

  test("a host that is known by a key of a kind it does not show first", async () => {
    site.know(name, publicKey(1));
    await enters();
  });

  test("a key that was written down without the port", async () => {
    site.know("127.0.0.1", publicKey());
    await enters();
  });

  test("several files, and a name of its own", async () => {
    const second = join(site.folder, "second");
    writeFileSync(second, `pinned ${line(0)}\n`);
    const own = site.config(host, "HostKeyAlias pinned", `UserKnownHostsFile ${site.knownHosts} ${second}`);
    await enters({ configFile: own, knownHosts: undefined });
  });

  test("an unknown host is refused, with its fingerprint and what to do", async () => {
    const { code, message } = await refusal(connect(target(), new People([], true), never));
    expect(code).toBe("ssh.hostkey_unknown");
    expect(message).toContain(name);
    if (via === "ssh2") expect(message).toContain(host.fingerprint());
    expect(message).toContain("connect once with: ssh h");
    expect(readFileSync(site.knownHosts, "utf8")).toBe("");
  });

  test("asked, a person sees the fingerprint and says yes: it is remembered", async () => {
    const people = new People([], true);
    appendFileSync(
      site.knownHosts,
      via === "ssh2" ? "# no end of line" : "# ssh itself would go on in that line\n",
    );
    await enters({ newHostKey: "ask" }, people);
    expect(people.asked.join()).toContain(host.fingerprint());
    expect(readFileSync(site.knownHosts, "utf8")).toContain(`\n${name} ${line(0)}`);
    await enters();
  });

  test("asked, a person says no", async () => {
    const people = new People([], false);
    const { code } = await refusal(connect(target({ newHostKey: "ask" }), people, never));
    expect(code).toBe("ssh.hostkey_unknown");
    expect(people.asked).toHaveLength(1);
    expect(readFileSync(site.knownHosts, "utf8")).toBe("");
  });

  test("nobody is asked in a batch", async () => {
    const people = new People([], true);
    const { code } = await refusal(connect(target({ newHostKey: "ask", batch: true }), people, never));
    expect(code).toBe("ssh.hostkey_unknown");
    expect(people.asked).toEqual([]);
  });

  test("accepted without a question where the profile says so, unless ssh's own configuration is strict", async () => {
    await enters({ newHostKey: "accept" });
    expect(readFileSync(site.knownHosts, "utf8")).toContain(`${name} ${line(0)}`);
    writeFileSync(site.knownHosts, "");
    const strict = site.config(host, "StrictHostKeyChecking yes");
    const { code } = await refusal(
      connect(target({ newHostKey: "accept", configFile: strict }), undefined, never),
    );
    expect(code).toBe("ssh.hostkey_unknown");
  });

  test("the name is hashed where the configuration wants that", async () => {
    const hashing = site.config(host, "HashKnownHosts yes");
    await enters({ newHostKey: "accept", configFile: hashing });
    expect(readFileSync(site.knownHosts, "utf8")).toStartWith("|1|");
    await enters();
  });

  test("a changed key is refused by every policy, with both fingerprints, the line and the command", async () => {
    const old = join(site.folder, `old-${via}`);
    if (!existsSync(old)) keygen(old);
    writeFileSync(site.knownHosts, "# first\n");
    site.know(name, `${old}.pub`);
    const shown = Bun.spawnSync(["ssh-keygen", "-lf", `${old}.pub`], { env: { ...process.env } });
    const before = readFileSync(site.knownHosts, "utf8");
    for (const newHostKey of ["refuse", "ask", "accept"] as const) {
      const loose = site.config(host, "StrictHostKeyChecking no");
      const people = new People([], true);
      const attempt = connect(target({ newHostKey, configFile: loose }), people, never);
      const { code, message } = await refusal(attempt);
      expect(code).toBe("ssh.hostkey_changed");
      expect(message).toContain(host.fingerprint());
      expect(message).toContain(shown.stdout.toString().split(" ")[1]!);
      expect(message).toContain(`${site.knownHosts}:2`);
      expect(message).toContain(`ssh-keygen -f '${site.knownHosts}' -R '${name}'`);
      expect(people.asked).toEqual([]);
    }
    expect(readFileSync(site.knownHosts, "utf8")).toBe(before);
  });

  test("a revoked key", async () => {
    writeFileSync(site.knownHosts, `${name} ${line(0)}\n@revoked * ${line(0)}\n`);
    const { code, message } = await refusal(connect(target(), undefined, never));
    expect(code).toBe("ssh.hostkey_changed");
    expect(message).toContain("revoked");
  });

  test("a file that cannot be read is said", async () => {
    if (via === "openssh") return; // ssh passes over it
    const { code, message } = await refusal(connect(target({ knownHosts: site.folder }), undefined, never));
    expect(code).toBe("ssh.config");
    expect(message).toContain(site.folder);
  });
});

describe.skipIf(missing)("ssh2", () => {
  test("a key of another kind than the known one is no new host", async () => {
    using site = new Site();
    const host = await site.host();
    const other = keygen(join(site.folder, "other"), "-t", "ecdsa");
    writeFileSync(site.knownHosts, "");
    site.know(`[127.0.0.1]:${host.port}`, `${other}.pub`);
    const target = site.target(site.config(host), { via: "ssh2", newHostKey: "accept" });
    const { code, message } = await refusal(connect(target, undefined, never));
    expect(code).toBe("ssh.hostkey_changed");
    expect(message).toContain("ECDSA");
    expect(message).toContain("ED25519");
  });
});

describe.skipIf(missing)("by itself", () => {
  test("a host whose key an authority has signed is let in by the ssh program", async () => {
    using site = new Site();
    const ca = keygen(join(site.folder, "ca"));
    const host = await site.host([], { known: false });
    Bun.spawnSync(["ssh-keygen", "-q", "-s", ca, "-I", "h", "-h", "-n", "127.0.0.1", `${host.keys[0]}.pub`], {
      env: { ...process.env },
    });
    const signed = await site.host([`HostKey ${host.keys[0]}`, `HostCertificate ${host.keys[0]}-cert.pub`], {
      known: false,
      types: [],
    });
    writeFileSync(site.knownHosts, `@cert-authority * ${readFileSync(`${ca}.pub`, "utf8")}`);
    const connection = await connect(site.target(site.config(signed)), undefined, never);
    expect(connection.via).toBe("openssh");
    connection.close();
    const refused = await refusal(
      connect(site.target(site.config(signed), { via: "ssh2" }), undefined, never),
    );
    expect(refused.code).toBe("ssh.hostkey_unknown");
  });
});
