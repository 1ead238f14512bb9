import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeDaemonFile } from "../../../../src/remote/host/daemon-file.ts";
import { destroySession } from "../../../../src/remote/host/lifecycle/destroy.ts";
import { sweep } from "../../../../src/remote/host/lifecycle/sweep.ts";
import type { Places } from "../../../../src/remote/host/places.ts";
import { sessionFolder } from "../../../../src/remote/host/places.ts";
import { writeSession } from "../../../../src/remote/host/session-record.ts";
import { fromHard, policyHash } from "../../../../src/remote/policy/effective.ts";
import { envRefHash } from "../../../../src/remote/policy/session-policy.ts";

const id = (digit: number) => `0190b0a0-0000-7000-8000-00000000000${digit}`;
const day = 24 * 60 * 60 * 1000;
let top: string;
let places: Places;
const children: Bun.Subprocess[] = [];

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "ollie-life-"));
  places = { home: top, base: join(top, "base"), root: join(top, "root") };
  mkdirSync(places.base);
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  rmSync(top, { recursive: true, force: true });
});

function session(sessionId: string, times: { created?: number; used?: number; cwd?: string } = {}): string {
  const { created = Date.now(), cwd = top } = times;
  const { used = created } = times;
  const policy = fromHard({});
  writeSession(places.root, {
    v: 1,
    sessionId,
    client: "me",
    created,
    used,
    cwd,
    managed: false,
    policy,
    policyHash: policyHash(policy),
    envRefs: {},
    envRefHash: envRefHash({}),
    key: "",
    settings: { env: {}, sandboxes: {}, approved: [], toolsHash: "" },
    epoch: 1,
    sealed: false,
  });
  return sessionFolder(places.root, sessionId);
}

function start(words: string[], env: Record<string, string> = {}, cwd = "/"): Bun.Subprocess {
  const child = Bun.spawn(words, {
    cwd,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/bin:/bin", ...env },
  });
  children.push(child);
  return child;
}

/** A process that is a daemon by its command line; TERM does not end it. */
function daemon(sessionId: string, folder: string): Bun.Subprocess {
  const child = start([
    "sh",
    "-c",
    "trap '' TERM; while :; do read line; done",
    "ollie-remote",
    "daemon",
    sessionId,
  ]);
  const socket = join(top, "daemon.sock");
  writeFileSync(socket, "");
  writeDaemonFile(folder, { pid: child.pid, socket, token: "", digest: "", proto: { min: 1, max: 1 } });
  return child;
}

test("nothing of a destroyed session is left, but the project that it worked in", async () => {
  const project = join(top, "project");
  mkdirSync(project);
  writeFileSync(join(project, "file"), "mine");
  const folder = session(id(1), { cwd: project });
  const other = session(id(2));
  mkdirSync(join(folder, "cargo/registry"), { recursive: true, mode: 0o500 });
  writeFileSync(join(folder, "journal.ndjson"), "x".repeat(10_000));
  symlinkSync(project, join(folder, "link"));
  const running = daemon(id(1), folder);
  const operation = join(folder, "ops/1");
  mkdirSync(operation, { recursive: true });
  const strays = [
    start(["sh", "-c", "trap '' TERM; while :; do read line; done"], { TMPDIR: join(folder, "tmp/1") }),
    start(["sh", "-c", "read line"], { CARGO_HOME: join(folder, "cargo") }),
    start(["sh", "-c", "read line", "job-supervisor", ""], {}, operation),
  ];
  const bystanders = [
    start(["sh", "-c", "read line"], { TMPDIR: `${folder}0` }),
    start(["sh", "-c", "read line"], { X: other }),
    // The user, who looks at it.
    start(["sh", "-c", "read line"], { PWD: folder }, folder),
    start(["sh", "-c", "read line", "vi", join(folder, "journal.ndjson")]),
  ];
  const { bytes, ended } = await destroySession(places.root, { sessionId: id(1), confirm: id(1) });
  expect(bytes).toBeGreaterThan(10_000);
  expect(ended).toBe(4);
  for (const one of [running, ...strays]) await one.exited;
  expect(bystanders.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([
    null,
    null,
    null,
    null,
  ]);
  expect(readdirSync(join(places.root, "sessions"))).toEqual([id(2)]);
  expect(existsSync(join(top, "daemon.sock"))).toBe(false);
  expect(readFileSync(join(project, "file"), "utf8")).toBe("mine");
}, 30_000);

test("a process that only has the pid of a daemon that is dead is left alone", async () => {
  const folder = session(id(1));
  const stranger = start(["sh", "-c", "read line"]);
  writeDaemonFile(folder, {
    pid: stranger.pid,
    socket: "/nowhere",
    token: "",
    digest: "",
    proto: { min: 1, max: 1 },
  });
  await destroySession(places.root, { sessionId: id(1), confirm: id(1) });
  expect(stranger.exitCode).toBeNull();
});

test("the id has to be typed in full, and be that of a session", async () => {
  const folder = session(id(1));
  const code = (sessionId: string, confirm: string) =>
    destroySession(places.root, { sessionId, confirm }).then(
      () => "",
      (error) => error.code,
    );
  expect(await code(id(1), id(1).slice(0, 8))).toBe("session.confirm");
  expect(await code(id(1), "")).toBe("session.confirm");
  expect(await code(id(3), id(3))).toBe("session.absent");
  expect(existsSync(folder)).toBe(true);
});

test("what is past its time goes, and is told with its size", async () => {
  const now = Date.now();
  session(id(1), { created: now - 40 * day, used: now });
  session(id(2), { created: now - 8 * day });
  session(id(3), { created: now - 6 * day });
  const attached = session(id(4), { created: now - 8 * day });
  daemon(id(4), attached);
  const told = await sweep(places, { dry: true });
  expect(told.sessions.map(({ expired }) => expired)).toEqual(["old", "idle", undefined, undefined]);
  expect(told.sessions.every(({ bytes }) => bytes > 0)).toBe(true);
  expect(readdirSync(join(places.root, "sessions"))).toHaveLength(4);
  const swept = await sweep(places);
  expect([swept.problems, swept.freed > 0]).toEqual([[], true]);
  expect(readdirSync(join(places.root, "sessions")).sort()).toEqual([id(3), id(4)]);
  expect(told.sessions[2]!.until).toBe(now + day);
});

test("a session that cannot be read is kept for a month, and stops no sweep", async () => {
  const folder = session(id(1));
  writeFileSync(join(folder, "session.json"), "torn");
  mkdirSync(join(places.root, "sessions", ".gone-x"));
  expect((await sweep(places)).sessions[0]!.expired).toBeUndefined();
  expect(readdirSync(join(places.root, "sessions"))).toEqual([id(1)]);
  const old = statSync(folder).mtimeMs / 1000 - 31 * 24 * 60 * 60;
  utimesSync(folder, old, old);
  expect((await sweep(places)).sessions[0]!.expired).toBe("damaged");
  expect(readdirSync(join(places.root, "sessions"))).toEqual([]);
});

test("the session of whoever sweeps stays", async () => {
  session(id(1), { created: Date.now() - 40 * day });
  await sweep(places, { except: id(1), measure: false });
  expect(readdirSync(join(places.root, "sessions"))).toEqual([id(1)]);
});
