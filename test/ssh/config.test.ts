/** ssh_config(5) read by ourselves says the same as ssh says of it. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { account } from "../../src/ssh/config/account.ts";
import { readConfig } from "../../src/ssh/config/file.ts";
import { askProgram } from "../../src/ssh/config/program.ts";
import { type Settings, settingsOf } from "../../src/ssh/config/settings.ts";
import { parseTarget } from "../../src/ssh/target.ts";
import { lacksPrograms } from "../needs.ts";

const folder = mkdtempSync(join(tmpdir(), "ollie-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

mkdirSync(join(folder, "parts"));
writeFileSync(
  join(folder, "parts/prod"),
  `Host prod-*
  User deploy
  Port 2200
  ProxyJump bastion,alice@inner:2022
Host *
  ServerAliveInterval 7
`,
);
writeFileSync(
  join(folder, "config"),
  `# a comment
Include ${folder}/parts/*
Host alias
  HostName = %h.example.org
  IdentityFile ~/.ssh/one
  IdentityFile "${folder}/with blank/%n-%r"
  IdentitiesOnly yes
  IdentityAgent none
Host a? !ab
  Port 4000
Host "quoted name" other
  ProxyCommand nc -X %h %p %r %%
Match host *.example.org user ${account().name}
  HostKeyAlias pinned
Match originalhost prod-* exec "test %n = prod-2"
  ConnectTimeout 3
Match !host prod-*
  UserKnownHostsFile ${folder}/k1 ${folder}/k2
Host in-block
  Include ${folder}/in
Host none
  ProxyJump none
  ProxyCommand none
  StrictHostKeyChecking accept-new
  BindAddress 127.0.0.1
  AddressFamily inet6
Host *
  Port 5000
  StrictHostKeyChecking yes
  CertificateFile ${folder}/cert
`,
);
writeFileSync(join(folder, "in"), "User inside\nHost elsewhere\n  Port 1\n");

const config = join(folder, "config");
const own = (name: string) => settingsOf(readConfig(parseTarget(name), config), parseTarget(name));
const signal = new AbortController().signal;

describe.skipIf(lacksPrograms("ssh"))("as ssh -G has it", () => {
  test.each([
    "alias",
    "bob@alias:99",
    "ab",
    "ac",
    "other",
    "prod-1",
    "prod-2",
    "in-block",
    "elsewhere",
    "none",
    "fd00::1",
    "unknown.example.org",
  ])("%s", async (name) => {
    const destination = parseTarget(name);
    const theirs = settingsOf(await askProgram("ssh", destination, config, signal), destination);
    const ours = own(name);
    const compared: (keyof Settings)[] = [
      "host",
      "port",
      "user",
      "identitiesOnly",
      "agent",
      "jumps",
      "proxyCommand",
      "strict",
      "hostKeyAlias",
      "alive",
      "connectTimeout",
      "family",
      "bindAddress",
      "programOnly",
    ];
    for (const key of compared) expect({ [key]: ours[key] }).toEqual({ [key]: theirs[key] });
    if (name.endsWith("alias")) {
      expect(ours.identityFiles).toEqual(theirs.identityFiles);
      expect(ours.identityFiles[1]).toStartWith(`${folder}/with blank/alias-`);
    }
    if (!name.startsWith("prod")) expect(ours.userKnownHosts).toEqual(theirs.userKnownHosts);
  });

  test("what ssh finds wrong is said", async () => {
    writeFileSync(join(folder, "bad"), "Host x\n  Nonsense yes\n");
    const asked = askProgram("ssh", { host: "x" }, join(folder, "bad"), signal);
    await expect(asked).rejects.toMatchObject({ code: "ssh.config" });
    await expect(asked).rejects.toThrow("onsense");
  });
});

describe("read by ourselves", () => {
  test("a chain of hosts to go through", () => {
    expect(own("prod-1")).toMatchObject({
      user: "deploy",
      port: 2200,
      jumps: ["bastion", "alice@inner:2022"],
    });
  });

  test("paths with blanks", () => {
    writeFileSync(join(folder, "blank"), 'UserKnownHostsFile /a "/b c"\nIdentityFile "/d e"\n');
    const settings = settingsOf(readConfig({ host: "x" }, join(folder, "blank")), { host: "x" });
    expect(settings).toMatchObject({ userKnownHosts: ["/a", "/b c"], identityFiles: ["/d e"] });
  });

  test("a file that was asked for and is not there", () => {
    expect(() => readConfig({ host: "x" }, join(folder, "absent"))).toThrow("absent cannot be read");
  });

  test("files that include each other", () => {
    writeFileSync(join(folder, "loop"), `Include ${folder}/loop\n`);
    expect(() => readConfig({ host: "x" }, join(folder, "loop"))).toThrow("Include goes deeper");
  });

  test("StrictHostKeyChecking no does not take a changed key, only a new one", () => {
    const options = new Map([["stricthostkeychecking", ["no"]]]);
    expect(settingsOf(options, { host: "x" }).strict).toBe("accept-new");
  });

  test("a host name that would get through to a shell", () => {
    const options = new Map([["hostname", ["x;touch y"]]]);
    expect(() => settingsOf(options, { host: "x" })).toThrow("is no host");
  });

  test("keepalive is 15 s, four times, where nothing is said of it", () => {
    expect(settingsOf(new Map(), { host: "x" }).alive).toEqual({ interval: 15_000, count: 4 });
  });
});
