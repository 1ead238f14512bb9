/** Ways in: agents, keys with a passphrase, passwords and codes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, connect as dial } from "node:net";
import { join } from "node:path";
import { connect } from "../../src/ssh/connect.ts";
import type { SshTarget } from "../../src/ssh/transport.ts";
import { until } from "../until.ts";
import { otherEnd } from "./other-end.ts";
import { type Host, keygen, lacksSshd, never, People, refusal, Site } from "./server.ts";

const missing = lacksSshd();
const closing: (() => void)[] = [];
afterAll(() => {
  for (const close of closing) close();
});

async function agent(site: Site, ...keys: string[]): Promise<string> {
  const path = join(site.folder, `agent${closing.length}`);
  const child = spawn("ssh-agent", ["-D", "-a", path], { env: { ...process.env }, stdio: "ignore" });
  closing.push(() => child.kill());
  await until("the agent listens", () => existsSync(path));
  for (const key of keys) {
    const added = Bun.spawnSync(["ssh-add", "-q", key], { env: { ...process.env, SSH_AUTH_SOCK: path } });
    expect(added.stderr.toString()).toBe("");
  }
  return path;
}

async function welcome(target: SshTarget, people?: People): Promise<string> {
  const connection = await connect(target, people, never);
  try {
    const channel = await connection.exec("echo welcome");
    let text = "";
    for await (const bytes of channel.stdout) text += Buffer.from(bytes).toString();
    return `${connection.via}: ${text}`;
  } finally {
    connection.close();
  }
}

describe.skipIf(missing).each(["ssh2", "openssh"] as const)("%s", (via) => {
  let site: Site;
  let host: Host;
  beforeAll(async () => {
    site = new Site();
    host = await site.host();
  });
  afterAll(() => site[Symbol.dispose]());
  const target = (lines: string[], more: Partial<SshTarget> = {}) =>
    site.target(site.config(host, ...lines), { via, ...more });
  const in_ = `${via}: welcome\n`;

  test("keys of the agent", async () => {
    const socket = await agent(site, keygen(join(site.folder, `stranger-${via}`)), site.key);
    expect(await welcome(target([`IdentityAgent ${socket}`, "IdentityFile /none"]))).toBe(in_);
  });

  test("IdentitiesOnly: only the key of the agent whose public half is named", async () => {
    const socket = await agent(site, site.key);
    const lines = [`IdentityAgent ${socket}`, "IdentitiesOnly yes"];
    const other = keygen(join(site.folder, `other-${via}`));
    const refused = await refusal(connect(target([...lines, `IdentityFile ${other}`]), undefined, never));
    expect(refused.code).toBe("ssh.auth");
    expect(await welcome(target([...lines, `IdentityFile ${site.key}.pub`]))).toBe(in_);
  });

  test.each([
    ["of OpenSSH's own format", ["-t", "ed25519"]],
    ["RSA, of OpenSSH's own format", ["-t", "rsa", "-b", "2048"]],
    ["ECDSA, of OpenSSH's own format", ["-t", "ecdsa"]],
    ["RSA in PEM", ["-t", "rsa", "-b", "2048", "-m", "PEM"]],
  ])("a key with a passphrase, %s", async (_kind, options) => {
    const key = keygen(
      join(site.folder, `locked-${via}-${options.join("")}`),
      ...options,
      "-N",
      "open sesame ü",
    );
    site.authorize(`${site.key}.pub`, `${key}.pub`);
    const people = new People(["wrong", "open sesame ü"]);
    expect(await welcome(target([`IdentityFile ${key}`]), people)).toBe(in_);
    expect(people.asked).toEqual(Array(2).fill(`Enter passphrase for key '${key}': `));
  });

  test("a key whose passphrase nobody gives", async () => {
    const key = keygen(join(site.folder, `shut-${via}`), "-N", "secret");
    site.authorize(`${key}.pub`);
    try {
      const refused = await refusal(connect(target([`IdentityFile ${key}`]), new People(), never));
      expect(refused.code).toBe("ssh.auth");
      expect(refused.message).toContain("nobody");
      const people = new People(["secret"]);
      const batch = await refusal(connect(target([`IdentityFile ${key}`], { batch: true }), people, never));
      expect(batch.code).toBe("ssh.auth");
      expect(people.asked).toEqual([]);
    } finally {
      site.authorize(`${site.key}.pub`);
    }
  });

  test("a key that the host does not know: what was tried, and what to do", async () => {
    const key = keygen(join(site.folder, `foreign-${via}`));
    const { code, message } = await refusal(connect(target([`IdentityFile ${key}`]), new People(), never));
    expect(code).toBe("ssh.auth");
    expect(message).toContain("does not let root in");
    expect(message).toContain("publickey");
    if (via === "ssh2") expect(message).toContain(key);
  });

  test("a password", async () => {
    const end = await otherEnd(host.keys[0]!, [{ method: "password", password: "geheim ü" }]);
    closing.push(end.close);
    site.know(`[127.0.0.1]:${end.port}`, `${host.keys[0]}.pub`);
    const people = new People(["wrong", "geheim ü"]);
    expect(await welcome(site.target(site.config(end), { via }), people)).toBe(in_);
    expect(people.asked).toEqual(Array(2).fill("root@127.0.0.1's password: "));
  });

  test("a password, then a code, again when it was wrong", async () => {
    const ask = { name: "", instruction: "", prompts: [{ prompt: "Code: ", echo: false }], answers: ["42"] };
    const end = await otherEnd(host.keys[0]!, [
      { method: "password", password: "first" },
      { method: "keyboard-interactive", ask },
    ]);
    closing.push(end.close);
    site.know(`[127.0.0.1]:${end.port}`, `${host.keys[0]}.pub`);
    const people = new People(["first", "41", "42"]);
    expect(await welcome(site.target(site.config(end), { via }), people)).toBe(in_);
    expect(people.asked[0]).toBe("root@127.0.0.1's password: ");
    expect(people.asked).toHaveLength(3);
  });

  test("a password where the server offers questions too and has none", async () => {
    const end = await otherEnd(host.keys[0]!, [
      { method: "password", password: "geheim", also: ["keyboard-interactive"] },
    ]);
    closing.push(end.close);
    site.know(`[127.0.0.1]:${end.port}`, `${host.keys[0]}.pub`);
    expect(await welcome(site.target(site.config(end), { via }), new People(["geheim"]))).toBe(in_);
  });

  test("a key, then a code: asked once, word for word", async () => {
    const ask = {
      name: "Two factors",
      instruction: "Look at your device",
      prompts: [{ prompt: "Code: ", echo: true }],
      answers: ["123456"],
    };
    const end = await otherEnd(host.keys[0]!, [
      { method: "publickey" },
      { method: "keyboard-interactive", ask },
    ]);
    closing.push(end.close);
    site.know(`[127.0.0.1]:${end.port}`, `${host.keys[0]}.pub`);
    const people = new People(["123456"]);
    expect(await welcome(site.target(site.config(end), { via }), people)).toBe(in_);
    expect(people.asked).toHaveLength(1);
    expect(people.asked[0]).toEndWith("Code: ");
    if (via === "ssh2") {
      expect(people.asked).toEqual(["Code: "]);
      expect(people.told).toEqual(["Two factors\nLook at your device"]);
    }
    // Nobody answers: no empty code is sent in the place of one.
    const silent = await refusal(connect(site.target(site.config(end), { via }), new People(), never));
    expect(silent.code).toBe("ssh.auth");
    expect(silent.message).toContain("nobody answered");
    // Nobody to ask, and nothing hangs.
    const refused = await refusal(
      connect(site.target(site.config(end), { via, batch: true }), people, never),
    );
    expect(refused.code).toBe("ssh.auth");
  });
});

describe.skipIf(missing)("ssh2", () => {
  test("an agent that takes its time is waited for, and it is said", async () => {
    using site = new Site();
    const host = await site.host();
    const real = await agent(site, site.key);
    const slow = join(site.folder, "slow");
    const server = createServer((socket) => {
      const onward = dial(real);
      socket.on("data", (bytes) => onward.write(bytes));
      onward.on("data", (bytes) => setTimeout(() => socket.write(bytes), 1300));
      for (const end of [socket, onward]) {
        end.on("error", () => {});
        end.on("close", () => {
          socket.destroy();
          onward.destroy();
        });
      }
    }).listen(slow);
    closing.push(() => server.close());
    const people = new People();
    const config = site.config(host, `IdentityAgent ${slow}`, "IdentityFile /none");
    expect(await welcome(site.target(config, { via: "ssh2", connectTimeout: 1200 }), people)).toBe(
      "ssh2: welcome\n",
    );
    expect(people.told.join("\n")).toContain("touch of your key");
  });

  test("an agent that is none, and one that is not there", async () => {
    using site = new Site();
    const host = await site.host();
    const none = join(site.folder, "none");
    const server = createServer((socket) => socket.end("HTTP/1.1 400 what?\r\n\r\n")).listen(none);
    closing.push(() => server.close());
    for (const path of [none, join(site.folder, "absent")]) {
      const config = site.config(host, `IdentityAgent ${path}`);
      expect(await welcome(site.target(config, { via: "ssh2" }))).toBe("ssh2: welcome\n");
      const only = site.config(host, `IdentityAgent ${path}`, "IdentityFile /none");
      const { code, message } = await refusal(connect(site.target(only, { via: "ssh2" }), undefined, never));
      expect(code).toBe("ssh.auth");
      expect(message).toContain(path);
    }
  });
});

describe.skipIf(missing)("by itself", () => {
  test("a key with a certificate is left to the ssh program", async () => {
    using site = new Site();
    const ca = keygen(join(site.folder, "ca"));
    const key = keygen(join(site.folder, "certified"));
    Bun.spawnSync(["ssh-keygen", "-q", "-s", ca, "-I", "me", "-n", "root", `${key}.pub`], {
      env: { ...process.env },
    });
    const host = await site.host([`TrustedUserCAKeys ${ca}.pub`]);
    const config = site.config(host, `IdentityFile ${key}`);
    const certificate = [`IdentityFile ${key}`, `CertificateFile ${key}-cert.pub`, "IdentityAgent none"];
    const behind = site.config(
      await site.host(),
      "ProxyJump j",
      "Host j",
      "HostName 127.0.0.1",
      `Port ${host.port}`,
      "User root",
      ...certificate,
    );
    expect(await welcome(site.target(behind))).toBe("openssh: welcome\n");
    expect(await welcome(site.target(config))).toBe("openssh: welcome\n");
    const { code, message } = await refusal(connect(site.target(config, { via: "ssh2" }), undefined, never));
    expect(code).toBe("ssh.auth");
    expect(message).toContain("certificate");
  });

  test("a key in a format that ssh2 does not read", async () => {
    using site = new Site();
    const host = await site.host();
    const key = keygen(join(site.folder, "pkcs8"), "-t", "rsa", "-b", "2048", "-m", "PKCS8");
    site.authorize(`${key}.pub`);
    expect(await welcome(site.target(site.config(host, `IdentityFile ${key}`)))).toBe("openssh: welcome\n");
  });

  test.each([
    ["cipher", "Ciphers chacha20-poly1305@openssh.com"],
    ["key exchange", "KexAlgorithms sntrup761x25519-sha512@openssh.com"],
  ])("a server that wants a %s which ssh2 lacks", async (kind, line) => {
    using site = new Site();
    const host = await site.host([line]);
    expect(await welcome(site.target(site.config(host)))).toBe("openssh: welcome\n");
    const { code, message } = await refusal(
      connect(site.target(site.config(host), { via: "ssh2" }), undefined, never),
    );
    expect(code).toBe("ssh.config");
    expect(message).toContain(kind);
    expect(message).toContain("openssh-client");
  });

  test("a server that knows only slow key exchanges: the ssh program, and without it ssh2", async () => {
    using site = new Site();
    const host = await site.host(["KexAlgorithms diffie-hellman-group14-sha256"]);
    expect(await welcome(site.target(site.config(host)))).toBe("openssh: welcome\n");
    expect(await welcome(site.target(site.config(host), { via: "ssh2" }))).toBe("ssh2: welcome\n");
  });

  test("a master of the user's that is logged in is used before anybody is asked, and goes on afterwards", async () => {
    using site = new Site();
    const host = await site.host();
    const path = join(site.folder, "master");
    const config = site.config(host, `ControlPath ${path}`, `UserKnownHostsFile ${site.knownHosts}`);
    const master = spawn("ssh", ["-F", config, "-M", "-N", "h"], {
      env: { ...process.env },
      stdio: "ignore",
    });
    const ended = new Promise((resolve) => master.once("exit", resolve));
    await until("it stands", () => existsSync(path));
    const keyless = site.config(host, `ControlPath ${path}`, "IdentityFile /none");
    const people = new People();
    expect(await welcome(site.target(keyless), people)).toBe("openssh: welcome\n");
    expect(people.asked).toEqual([]);
    expect(master.exitCode).toBeNull();
    // With a key of its own nothing is borrowed.
    expect(await welcome(site.target(config))).toBe("ssh2: welcome\n");

    const connection = await connect(site.target(keyless), people, never);
    const channel = await connection.exec("exec sleep 1000");
    master.kill();
    await ended;
    expect((await connection.closed) as object).toMatchObject({ code: "ssh.dropped" });
    expect((await channel.closed).fault as object).toMatchObject({ code: "ssh.dropped" });
  });

  test("keys that ssh2 cannot use do not keep a person from being asked where there is no ssh program", async () => {
    using site = new Site();
    const key = keygen(join(site.folder, "pkcs8"), "-t", "rsa", "-b", "2048", "-m", "PKCS8");
    const hostKey = keygen(join(site.folder, "hostkey"));
    const end = await otherEnd(hostKey, [{ method: "password", password: "geheim", also: ["publickey"] }]);
    closing.push(end.close);
    site.know(`[127.0.0.1]:${end.port}`, `${hostKey}.pub`);
    const target = site.target(site.config(end, `IdentityFile ${key}`), { via: "ssh2" });
    expect(await welcome(target, new People(["geheim"]))).toBe("ssh2: welcome\n");
  });

  test("what only the ssh program knows of goes to it at once", async () => {
    using site = new Site();
    const host = await site.host();
    writeFileSync(join(site.folder, "no-provider"), "");
    const config = site.config(host, `PKCS11Provider ${join(site.folder, "no-provider")}`);
    expect(await welcome(site.target(config))).toBe("openssh: welcome\n");
  });

  test("where there is no ssh program, ssh2 reads the configuration by itself, and says what it cannot do", async () => {
    using site = new Site();
    const bare = join(site.folder, "bare");
    mkdirSync(bare);
    const run = async (target: SshTarget) => {
      const code = `
        const { connect } = await import(${JSON.stringify(join(import.meta.dir, "../../src/ssh/connect.ts"))});
        const connection = await connect(JSON.parse(process.argv.at(-1)), undefined, new AbortController().signal);
        console.log(connection.via, await (await connection.exec("exit 9")).closed);
        connection.close();
      `;
      const child = Bun.spawn([process.execPath, "-e", code, JSON.stringify(target)], {
        env: { PATH: bare },
        stderr: "pipe",
      });
      return (await child.stdout.text()) + (await child.stderr.text());
    };
    const [jump, host] = [await site.host(), await site.host()];
    const config = site.config(
      host,
      "ProxyJump j",
      "Host j",
      "HostName 127.0.0.1",
      `Port ${jump.port}`,
      "User root",
      `IdentityFile ${site.key}`,
    );
    expect(await run(site.target(config))).toBe("ssh2 {\n  code: 9,\n}\n");
    const picky = await site.host(["Ciphers chacha20-poly1305@openssh.com"]);
    expect(await run(site.target(site.config(picky)))).toContain("install the ssh program");
    expect(await run(site.target(config, { via: "openssh" }))).toContain("there is no ssh program");
  });
});
