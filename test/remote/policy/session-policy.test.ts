import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromHard } from "../../../src/remote/policy/effective.ts";
import { readHardPolicies } from "../../../src/remote/policy/hard-policy.ts";
import type { EnvRefs } from "../../../src/remote/policy/host-policy.ts";
import type { HardPolicy } from "../../../src/remote/policy/keys.ts";
import { openPolicy } from "../../../src/remote/policy/session-policy.ts";
import { lacksRoot } from "../../needs.ts";

const top = mkdtempSync(join(tmpdir(), "ollie-policy-"));
const home = join(top, "home");
const environment = {
  LANG: "C.UTF-8",
  USER: "dev",
  AWS_SECRET_ACCESS_KEY: "s3cret",
  REGION: "eu",
  PATH: "/evil",
};

function program(path: string): string {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, "#!/bin/sh\n", { mode: 0o755 });
  return path;
}

function session(hard: HardPolicy = {}, refs: EnvRefs = {}, loginPath?: string) {
  return openPolicy(fromHard(hard), refs, { home, environment, folder: join(top, "session"), loginPath });
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
}

beforeAll(() => {
  program(join(home, ".rustup/toolchains/stable-x86_64/bin/cargo"));
  writeFileSync(join(home, ".rustup/settings.toml"), 'version = "12"\ndefault_toolchain = "stable-x86_64"\n');
  program(join(home, ".cargo/bin/rustup"));
  for (const name of ["cargo", "rustfmt"]) symlinkSync("rustup", join(home, ".cargo/bin", name));
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

test("cargo is the toolchain's own, not the proxy; a proxy keeps its name", () => {
  const policy = session({ allowed_programs: ["cargo", "rustfmt"] });
  expect(policy.checkProgram("cargo", "/")).toEqual({
    path: join(home, ".rustup/toolchains/stable-x86_64/bin/cargo"),
    argv0: "cargo",
  });
  expect(policy.checkProgram("rustfmt", "/")).toEqual({
    path: join(home, ".cargo/bin/rustfmt"),
    argv0: "rustfmt",
  });
});

test("a list of programs is all that runs, by name or by the path the name leads to", () => {
  const policy = session({ allowed_programs: ["sh"] });
  const { path } = policy.checkProgram("sh", "/");
  expect(policy.checkProgram(path, "/").path).toBe(path);
  for (const other of ["cat", "/bin/cat", "./sh", "../../bin/sh", `${top}/sh`])
    expect([other, codeOf(() => policy.checkProgram(other, "/"))]).toEqual([other, "policy.program"]);
});

test("the PATH of the login shell decides only where every program is allowed", () => {
  const own = program(join(top, "bin/mytool"));
  expect(session({}, {}, join(top, "bin")).checkProgram("mytool", "/").path).toBe(own);
  const listed = session({ allowed_programs: ["mytool"] }, {}, join(top, "bin"));
  expect(codeOf(() => listed.checkProgram("mytool", "/"))).toBe("op.program");
});

test("program_paths say where a program is, and a program in the working folder is one by its path", () => {
  const own = program(join(top, "work/gradlew"));
  const policy = session({ allowed_programs: ["git", "./gradlew"], program_paths: { git: own } });
  expect(policy.checkProgram("git", "/")).toEqual({ path: own, argv0: "git" });
  expect(policy.checkProgram("./gradlew", join(top, "work")).path).toBe(own);
});

test("the environment is the runner's own: PATH, HOME, a private CARGO_HOME, and of the host's what is listed", () => {
  const policy = session({ inherited_env: ["LANG", "PATH"] });
  const env = policy.environmentFor({ RUST_LOG: "debug" });
  expect(env).toMatchObject({ LANG: "C.UTF-8", HOME: home, RUST_LOG: "debug" });
  expect(env.CARGO_HOME).toStartWith(join(top, "session"));
  expect(statSync(env.CARGO_HOME!).mode & 0o777).toBe(0o700);
  expect(env.PATH!.split(":")).not.toContain("/evil");
  expect(JSON.stringify(env)).not.toContain("s3cret");
});

test.each(["PATH", "HOME", "CARGO_HOME"])("a request cannot set %s", (name) => {
  expect(codeOf(() => session({ allowed_env: [name] }).environmentFor({ [name]: "/x" }))).toBe("policy.env");
});

test("references have the host's values, and SQLite files lie with the session", () => {
  const refs = { REGION: { kind: "host" }, APP_DATABASE_URL: { kind: "session_sqlite" } } as const;
  const env = session({}, refs).environmentFor({});
  expect(env.REGION).toBe("eu");
  expect(env.APP_DATABASE_URL).toBe(`sqlite://${top}/session/data/app_database_url.sqlite?mode=rwc`);
});

test.each([
  ["a secret's name", {}, { AWS_SECRET_ACCESS_KEY: { kind: "host" } }],
  ["no value", {}, { NOWHERE: { kind: "host" } }],
  ["not listed", { allowed_env_refs: ["OTHER"] }, { REGION: { kind: "host" } }],
  ["no SQLite here", { allow_session_sqlite: false }, { DATABASE_URL: { kind: "session_sqlite" } }],
] as [string, HardPolicy, EnvRefs][])("a reference is refused: %s", (_, hard, refs) => {
  expect(codeOf(() => session(hard, refs))).toBe("policy.env_ref");
});

test("arguments are bounded, code steps and tools of clients need to be allowed", () => {
  const step = (args: string[]) => ({ program: "sh", args, env: {} });
  const policy = session({ max_args: 2, max_arg_bytes: 4, allow_code_steps: false });
  expect(codeOf(() => policy.checkStep(step(["a", "b"])))).toBeUndefined();
  expect(codeOf(() => policy.checkStep(step(["a", "b", "c"])))).toBe("policy.limit");
  expect(codeOf(() => policy.checkStep(step(["ééé"])))).toBe("policy.limit");
  expect(codeOf(() => policy.checkStep({ code: "id", lang: "sh" }))).toBe("policy.code");
  const tool = { tool: "bash", args: {}, callId: "1", agent: "a", session: "s", sandbox: "" };
  expect(codeOf(() => session({ allowed_programs: ["cargo"] }).checkStep(tool))).toBe("policy.tool");
  expect(codeOf(() => session().checkStep(tool))).toBeUndefined();
});

test("what is denied is denied with all that lies below, whatever else allows it", () => {
  const policy = session({ readable: ["**"], writable: ["src/**"] });
  for (const path of [
    ".env",
    "a/.env",
    ".git",
    ".git/config",
    "sub/.git/hooks/x",
    "secrets",
    "k.pem",
    "a/b.key",
  ])
    expect([path, policy.allowsPath(path, "read")]).toEqual([path, false]);
  expect(policy.allowsPath("src/a.ts", "write")).toBe(true);
  expect(policy.allowsPath("lib/a.ts", "write")).toBe(false);
  expect(policy.allowsPath("lib/a.ts", "read")).toBe(true);
});

function policies(files: { system?: string; user?: string; flag?: string }) {
  const folder = mkdtempSync(join(top, "etc-"));
  const put = (name: string, text?: string) => {
    if (text !== undefined) writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  mkdirSync(join(folder, "ollie"));
  put("ollie/remote-policy.yaml", files.user);
  const flag = files.flag === undefined ? undefined : put("flag.yaml", files.flag);
  return readHardPolicies({ HOME: home, XDG_CONFIG_HOME: folder }, flag, put("system.yaml", files.system));
}

test("without a policy file the sandbox is what confines", () => {
  const { policy, files } = policies({});
  expect(files).toEqual([]);
  expect(policy.allowed_programs).toEqual(["*"]);
  expect(policy.denied).toContain("**/.env");
});

test("the administrator's file caps the user's", () => {
  const { policy, publisherKeys } = policies({
    system:
      "allowed_programs: [git, cargo]\nmax_args: 5\nprogram_paths: { git: /opt/git }\npublisher_keys: []\n",
    user: "allowed_programs: [cargo, sh]\nmax_args: 50\nallow_elevated: false\nprogram_paths: { git: /tmp/git }\n",
  });
  expect(policy).toMatchObject({
    allowed_programs: ["cargo"],
    max_args: 5,
    allow_elevated: false,
    program_paths: { git: "/opt/git" },
  });
  expect(publisherKeys).toEqual([[]]);
});

test("a policy that is broken, or that others can write, stops everything", () => {
  expect(codeOf(() => policies({ user: "allowed_program: [git]\n" }))).toBe("policy.file");
  expect(codeOf(() => policies({ flag: "max_args: many\n" }))).toBe("policy.file");
  expect(codeOf(() => readHardPolicies({ HOME: home }, join(top, "none.yaml"), join(top, "none")))).toBe(
    "policy.file",
  );
  const file = join(top, "open.yaml");
  writeFileSync(file, "max_args: 3\n");
  chmodSync(file, 0o620);
  expect(() => readHardPolicies({ HOME: home }, file, join(top, "none"))).toThrow(`chmod 600 ${file}`);
});

test.skipIf(lacksRoot())("a policy that belongs to somebody else is not trusted", () => {
  const file = join(top, "theirs.yaml");
  writeFileSync(file, "max_args: 3\n", { mode: 0o600 });
  chownSync(file, 12345, 12345);
  expect(() => readHardPolicies({ HOME: home }, file, join(top, "none"))).toThrow("belongs to user 12345");
});
