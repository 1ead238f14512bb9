import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRemotes, remotesFile } from "../../../src/remote/policy/remotes.ts";

const folder = mkdtempSync(join(tmpdir(), "ollie-remotes-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

function load(text: string, via?: "ssh2") {
  const file = join(folder, `${count++}.yaml`);
  writeFileSync(file, text);
  return loadRemotes(file, via);
}

/** What is wrong with a file, without the path of the folder that it lies in. */
function problem(text: string): string {
  try {
    load(text);
  } catch (error) {
    return (error as Error).message.replace(/^.*?\/(\d+\.yaml)/, "FILE");
  }
  return "";
}

const box = (more: string) =>
  `schema_version: 1\ntargets:\n  box:\n    kind: ssh\n    host_alias: box\n${more}`;

const whole = `
schema_version: 1
default_target: buildbox
targets:
  buildbox:
    kind: ssh
    host_alias: buildbox
    ssh_program: /usr/bin/ssh
    ssh_config_path: /home/dev/.ssh/config
    known_hosts_path: /home/dev/.ssh/known_hosts
    bootstrap_command: /home/dev/.local/bin/ollie-remote
    environment_refs:
      DATABASE_URL: { kind: session_sqlite }
      SCHOOL_DATABASE_URL: { kind: session_sqlite }
      BUILD_REGION: { kind: host }
    runner:
      local_runner_path: /opt/ollie-remote
      target_triple: x86_64-unknown-linux-musl
      remote_session_root: /home/dev/.local/share/ollie
      remote_hard_policy_path: /home/dev/.config/ollie/remote-policy.yaml
    timeouts: { connect_secs: 15, upload_secs: 300, rpc_secs: 3600, close_secs: 10 }
    limits: { max_line_bytes: 8388608, max_install_output_bytes: 65536 }
    policy:
      allowed_programs: [cargo, rustc, git, mvn, java]
      allowed_env: []
      allowed_env_refs: [DATABASE_URL]
      inherited_env: [PATH, LANG, LC_ALL, USER]
      readable: ["**"]
      writable: ["**"]
      denied: [.env, "**/.env", "secrets/**", ".git/**", "lib/src/**"]
      max_timeout_secs: 3600
      max_output_bytes: 262144
      max_read_bytes: 262144
      max_write_bytes: 1048576
      max_list_entries: 2000
      allow_session_sqlite: true
`;

test("a profile with every key of the schema becomes what SSH, bootstrap and client need", () => {
  const profile = load(whole).profileFor("");
  expect(profile.name).toBe("buildbox");
  expect(profile.ssh).toEqual({
    name: "buildbox",
    configFile: "/home/dev/.ssh/config",
    knownHosts: "/home/dev/.ssh/known_hosts",
    sshProgram: "/usr/bin/ssh",
    connectTimeout: 15_000,
    via: "auto",
    batch: false,
    newHostKey: "ask",
  });
  expect(profile.boot).toMatchObject({
    root: "/home/dev/.local/share/ollie",
    policy: "/home/dev/.config/ollie/remote-policy.yaml",
    bootstrapCommand: "/home/dev/.local/bin/ollie-remote",
    localRunner: "/opt/ollie-remote",
    targetTriple: "x86_64-unknown-linux-musl",
  });
  expect(profile.timeouts).toMatchObject({ connect: 15_000, upload: 300_000, rpc: 3_600_000, close: 10_000 });
  expect(profile.envRefs.DATABASE_URL).toEqual({ kind: "session_sqlite" });
  expect(profile.policy.allowed_programs).toEqual(["cargo", "rustc", "git", "mvn", "java"]);
});

test("a host without a profile gets defaults that ask, and restrict nothing", () => {
  const profile = loadRemotes(join(folder, "none.yaml"), "ssh2").profileFor("alice@build.example:2222");
  expect(profile.name).toBeUndefined();
  expect(profile.ssh).toMatchObject({
    name: "alice@build.example:2222",
    newHostKey: "ask",
    batch: false,
    via: "ssh2",
  });
  expect(profile.policy).toEqual({});
  expect(profile.timeouts).toMatchObject({ rpc: 30_000, reconnectGrace: 120_000 });
});

test("what the profile says of the way wins over OLLIE_SSH", () => {
  expect(load(box("    via: openssh\n"), "ssh2").profileFor("box").ssh.via).toBe("openssh");
});

test("a name that is no profile is a host, and what is no host is refused", () => {
  const remotes = load(box(""));
  expect(remotes.names).toEqual(["box"]);
  expect(remotes.profileFor("other").ssh.name).toBe("other");
  expect(() => remotes.profileFor("-oProxyCommand=sh")).toThrow(/no host/);
  expect(() => remotes.profileFor("constructor")).not.toThrow();
  expect(() => remotes.profileFor("")).toThrow(/no default_target/);
});

test.each([
  ["schema_version: 2\ntargets: {}\n", "FILE: schema_version: must be 1"],
  ["targets: {}\n", "FILE: schema_version: must be 1"],
  [
    "schema_version: 1\ntargets: {}\nfoo: 1\n",
    "FILE: unknown key foo: known are schema_version default_target targets",
  ],
  [
    "schema_version: 1\ndefault_target: x\ntargets: {}\n",
    "FILE: default_target: there is no target x: there are none",
  ],
  [box("    host: x\n"), /unknown key targets\.box\.host: known are kind host_alias .*known_hosts_path/],
  [
    box("    known_hosts_path: .ssh/known_hosts\n"),
    "FILE: targets.box.known_hosts_path: must be an absolute path",
  ],
  [
    box("    runner: { local_runner_path: ~/x }\n"),
    "FILE: targets.box.runner.local_runner_path: must be an absolute path",
  ],
  [box("    runner: { root: /x }\n"), /unknown key targets\.box\.runner\.root: known are local_runner_path/],
  [
    box("    timeouts: { rpc_secs: 3601 }\n"),
    "FILE: targets.box.timeouts.rpc_secs: must be at most 3600 seconds",
  ],
  [
    box("    timeouts: { connect_secs: soon }\n"),
    "FILE: targets.box.timeouts.connect_secs: must be a number of seconds",
  ],
  [box("    limits: { max_line_bytes: 1 }\n"), /limits\.max_line_bytes: must be at least 262144/],
  [
    box("    environment_refs: { GITHUB_TOKEN: { kind: host } }\n"),
    /environment_refs\.GITHUB_TOKEN: looks like the name of a secret/,
  ],
  [
    box("    environment_refs: { AWS_SECRET_ACCESS: { kind: host } }\n"),
    /AWS_SECRET_ACCESS: looks like the name of a secret/,
  ],
  [
    box("    environment_refs: { STORE: { kind: session_sqlite } }\n"),
    /STORE: must be DATABASE_URL or end in _DATABASE_URL/,
  ],
  [
    box("    environment_refs: { MYDATABASE_URL: { kind: session_sqlite } }\n"),
    /MYDATABASE_URL: must be DATABASE_URL/,
  ],
  [box("    environment_refs: { PATH: { kind: host } }\n"), /environment_refs\.PATH: is set by the runner/],
  [box("    environment_refs: { REGION: eu }\n"), /environment_refs\.REGION: must be { kind: host }/],
  [
    box("    environment_refs: { REGION: { kind: file } }\n"),
    /REGION\.kind: must be one of host, session_sqlite/,
  ],
  [
    box("    environment_refs: { 'A B': { kind: host } }\n"),
    /environment_refs\.A B: must be the name of a variable/,
  ],
  [
    box("    policy: { max_args: 3 }\n"),
    /unknown key targets\.box\.policy\.max_args: known are allowed_programs/,
  ],
  [box("    policy: { writable: [/etc] }\n"), /policy\.writable\.0: must be relative/],
  [box("    policy: { writable: [../x] }\n"), /policy\.writable\.0: must be relative/],
  [box("    policy: { allowed_programs: cargo }\n"), /policy\.allowed_programs: must be a list/],
  [box("    auth: none\n"), "FILE: targets.box.auth: must be one of askpass, batch"],
  [
    "schema_version: 1\ntargets:\n  box: { kind: telnet, host_alias: x }\n",
    "FILE: targets.box.kind: must be ssh",
  ],
  [
    "schema_version: 1\ntargets:\n  box: { kind: ssh, host_alias: -x }\n",
    /targets\.box\.host_alias: "-x" is no host/,
  ],
  [
    "schema_version: 1\ntargets:\n  a/b: { kind: ssh, host_alias: x }\n",
    /targets\.a\/b: must be a name of letters/,
  ],
  ["schema_version: [\n", /^FILE: not YAML: /],
])("%# a mistake names file, key and what would be right", (text, wanted) => {
  const said = problem(text);
  if (typeof wanted === "string") expect(said).toBe(wanted);
  else expect(said).toMatch(wanted);
});

test("the file is where OLLIE_REMOTES says, which is absolute", () => {
  expect(remotesFile({ HOME: "/h" })).toBe("/h/.config/ollie/remotes.yaml");
  expect(remotesFile({ HOME: "/h", OLLIE_REMOTES: "/r.yaml" })).toBe("/r.yaml");
  expect(() => remotesFile({ HOME: "/h", OLLIE_REMOTES: "r.yaml" })).toThrow("must be an absolute path");
});
