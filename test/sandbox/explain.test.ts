import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { explain, type Scene } from "../../src/sandbox/explain.ts";
import { House, may } from "./house.ts";

let house: House;
let scene: Scene;
/** A folder and a file that the user may change and the sandbox does not give; one that it lets be read; a program. */
let closed: string;
let file: string;
let readable: string;
let program: string;
let socket: string;
let server: Server;
let rules: string;
/** Below /tmp, seen by nobody in a cage. */
let unseen: string;

beforeAll(async () => {
  house = new House();
  closed = house.dir("closed");
  file = house.file("closed/file", "x");
  readable = house.file("readable/file", "x");
  program = house.file("closed/program", "#!/bin/sh\n");
  chmodSync(program, 0o755);
  house.file("project/script", "#!/bin/sh\n");
  for (const name of ["objects", "refs", "hooks"]) house.dir(`project/.git/${name}`);
  for (const name of ["HEAD", "config"]) house.file(`project/.git/${name}`);
  house.config("default", "filesystem: { ro: [~/readable] }");
  socket = join(closed, "docker.sock");
  server = createServer().listen(socket);
  await new Promise((resolve) => server.once("listening", resolve));
  unseen = mkdtempSync(join(tmpdir(), "ollie-unseen-"));
  writeFileSync(join(unseen, "file"), "x");
  const { policy, rulesFile, places } = house.confine();
  rules = rulesFile;
  scene = { policy, cwd: house.cwd, home: house.home, rulesFile, places, replaced: () => [] };
});
afterAll(() => {
  server?.close();
  rmSync(unseen, { recursive: true, force: true });
  house?.remove();
});

const said = (output: string, changed: Partial<Scene> = {}) =>
  explain(output, { ...scene, ...changed }).join("\n");
const put = (text: string) =>
  text
    .replaceAll("NEW", join(closed, "new"))
    .replaceAll("CLOSED", closed)
    .replaceAll("FILE", file)
    .replaceAll("READABLE", readable)
    .replaceAll("PROGRAM", program);

describe("a write that the sandbox denied is explained", () => {
  test.each([
    "sh: 1: cannot create NEW: Permission denied",
    "bash: line 1: NEW: Permission denied",
    "/bin/sh: NEW: Permission denied",
    "touch: cannot touch 'NEW': Permission denied",
    "touch: cannot touch ‘NEW’: Read-only file system",
    "mkdir: cannot create directory 'NEW': Permission denied",
    "cp: cannot create regular file 'NEW': Permission denied",
    "mv: cannot move 'a' to 'NEW': Permission denied",
    "ln: failed to create hard link 'NEW' => 'a': Invalid cross-device link",
    "Error: EACCES: permission denied, open 'NEW'",
    "Error: EROFS: read-only file system, mkdir 'NEW'",
    "Error: EXDEV: cross-device link not permitted, rename 'a' -> 'NEW'",
    "npm error code EACCES\nnpm error syscall mkdir\nnpm error path NEW\nnpm error errno -13",
    "npm ERR! Error: EACCES: permission denied, mkdir 'NEW'",
    "PermissionError: [Errno 13] Permission denied: 'NEW'",
    "OSError: [Errno 30] Read-only file system: 'NEW'",
    "OSError: [Errno 18] Invalid cross-device link: 'a' -> 'NEW'",
    "error: failed to open: NEW\n\nCaused by:\n  Permission denied (os error 13)",
    "open NEW: permission denied",
    "mkdir NEW: read-only file system",
    "could not create module cache: mkdir NEW: permission denied",
    "fatal: Unable to create 'NEW': Permission denied",
    "fatal: could not create work tree dir 'NEW': Permission denied",
    "fatal: cannot mkdir NEW: Permission denied",
    "java.io.FileNotFoundException: NEW (Permission denied)",
    "java.nio.file.AccessDeniedException: NEW",
    "java.nio.file.FileSystemException: NEW: Read-only file system",
    "rm: cannot remove 'FILE': Permission denied",
  ])("%s", (output) => {
    const text = said(put(output));
    expect(text).toContain("does not let tools write");
    expect(text).toContain(`filesystem.rw: ["~/closed`);
    expect(text).toContain("~/.config/ollie/sandbox/default.yaml");
    expect(text).toContain("elevated: true");
  });
});

describe("the right that was missing is named", () => {
  test.each([
    ["cat: FILE: Permission denied", "read", "ro"],
    ["ls: cannot open directory 'CLOSED': Permission denied", "read", "ro"],
    ["Error: EACCES: permission denied, scandir 'CLOSED'", "read", "ro"],
    ["bash: line 1: PROGRAM: Permission denied", "read and execute", "rox"],
    ["fork/exec PROGRAM: permission denied", "execute", "rox"],
    ["Error: spawn PROGRAM EACCES", "execute", "rox"],
    ["sh: 1: cannot create READABLE: Permission denied", "write", "rw"],
    ["PermissionError: [Errno 13] Permission denied: 'READABLE'", "write", "rw"],
  ])("%s", (output, verb, key) => {
    const text = said(put(output));
    expect(text).toContain(`does not let tools ${verb} `);
    expect(text).toContain(`filesystem.${key}: [`);
  });
});

describe("no rule is named that would be of no use", () => {
  test("in a folder that holds something protected nothing new can be made", () => {
    const text = said(`mkdir: cannot create directory '${join(house.home, "new/inner")}': Permission denied`);
    expect(text).toContain("nothing new can be made in ~, which holds something protected");
    expect(text).toContain('once the user has made ~/new, filesystem.rw: ["~/new"]');
    house.dir("new");
    house.config("default", "filesystem: { rw: [~/new] }");
    expect(may(house.confine().policy, join(house.home, "new/inner"))).toBe("rw");
    house.config("default", "filesystem: { rw: ['~'] }");
    expect(may(house.confine().policy, join(house.home, "other"))).toBe("");
  });

  test("a folder that holds the home folder is never listed as a whole", () => {
    const text = said("ls: cannot open directory '/': Permission denied");
    expect(text).toContain("does not let tools read /, and no rule can: it holds the home folder");
  });

  test("of a folder that is covered tools see what is named in it", () => {
    const text = said(`ls: cannot open directory '${closed}': Permission denied`, {
      replaced: () => [closed],
    });
    expect(text).toContain("they see in it only what a rule names");
    expect(text).toContain('filesystem.ro: ["~/closed/NAME"]');
  });
});

describe("what the sandbox has no part in is not blamed on it", () => {
  test.each([
    "all is well",
    "cat: script: Permission denied",
    "touch: cannot touch 'here': Permission denied",
    "cat: /no/such/file: No such file or directory",
    "Error: ENOENT: no such file or directory, open 'missing'",
    "HTTP 403: permission denied",
    "git@github.com: Permission denied (publickey).",
    "ERROR 1045: Access denied for user 'root'@'localhost'",
    "curl: (6) Could not resolve host: example.invalid",
    "Error: listen EACCES: permission denied 0.0.0.0:80",
    "cat: /proc/1/environ: Permission denied",
    "mount: /mnt: Operation not permitted",
    "rm: cannot remove '/proc/1': Operation not permitted",
    "ollie-9p: permission denied: /root is not for tools",
  ])("%s", (output) => {
    expect(said(output)).toBe("");
  });

  test("ordinary permissions: the same words, with and without them", () => {
    const mine = mkdtempSync(join(tmpdir(), "ollie-mine-"));
    // Root is stopped by no permission, and so looks as somebody else.
    const other =
      process.getuid!() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
    const child = join(import.meta.dir, "explain.child.ts");
    const asks = (mode: number, why = "Permission denied") => {
      chmodSync(mine, mode);
      const output = `touch: cannot touch '${mine}/x': ${why}`;
      const { stdout, stderr } = Bun.spawnSync([...other, process.execPath, child, output]);
      return `${stdout}${stderr}`.trim();
    };
    try {
      expect(asks(0o777)).toContain("the sandbox does not let tools write");
      expect(asks(0o555)).toBe("");
      // The words are the sandbox's, and the reason is not.
      expect(asks(0o555, "Read-only file system")).toContain("not the user's to write without the sandbox");
    } finally {
      rmSync(mine, { recursive: true });
    }
  });
});

describe("what no rule opens", () => {
  test("git's config", () => {
    for (const output of [
      "error: could not write config file .git/config: Device or resource busy",
      "error: could not lock config file .git/config: Permission denied",
      "bash: .git/hooks/pre-commit: Read-only file system",
    ]) {
      const text = said(output);
      expect(text).toContain("protected, since git runs what it says");
      expect(text).not.toContain("filesystem.");
    }
  });

  test("ollie's own files", () => {
    const text = said(`touch: cannot touch '${house.home}/.config/ollie/agents/x.json': Permission denied`);
    expect(text).toContain("no rule can");
    expect(text).not.toContain("filesystem.");
  });
});

describe("files that tools do not see", () => {
  const replaced = () => ["/tmp", "/run"];
  const outside = () => join(unseen, "file");

  test.each([
    (path: string) => `cat: ${path}: No such file or directory`,
    (path: string) => `Error: ENOENT: no such file or directory, open '${path}'`,
    (path: string) => `FileNotFoundError: [Errno 2] No such file or directory: '${path}'`,
    (path: string) => `open ${path}: no such file or directory`,
  ])("%p", (words) => {
    const text = said(words(outside()), { replaced });
    expect(text).toContain(`${outside()} exists, but tools have a /tmp of their own`);
    expect(said(words(outside()))).toBe("");
  });

  test("nor their folder: that is what exists", () => {
    const text = said(`touch: cannot touch '${unseen}/new': No such file or directory`, { replaced });
    expect(text).toContain(
      `${unseen} exists, but tools have a /tmp of their own: filesystem.rw: ["${unseen}"]`,
    );
    expect(said(`touch: cannot touch '${unseen}/no/new': No such file or directory`, { replaced })).toBe("");
  });

  test("ollie's own are not given away", () => {
    const secret = house.file(".local/state/ollie/sessions/x/chat");
    const hidden = [join(house.state, "sessions")];
    const changed = { replaced: () => [house.home], policy: { ...scene.policy, hidden } };
    expect(said(`cat: ${secret}: No such file or directory`, changed)).toBe("");
  });
});

describe("the network", () => {
  const network = { unrestricted: false, bind: [], connect: [80], unix: [] };
  const without = () => ({ policy: { ...scene.policy, network } });

  test.each([
    ["Error: connect EACCES 192.0.2.1:443", "network.connect_tcp: [443]"],
    ["dial tcp 192.0.2.1:443: connect: permission denied", "network.connect_tcp: [443]"],
    ["PermissionError: [Errno 13] Permission denied: connect", "network.unrestricted: true"],
    ["curl: (6) Could not resolve host: example.org", "network.unrestricted: true"],
    ["Error: getaddrinfo EAI_AGAIN registry.example.org", "network.unrestricted: true"],
    ["Error: listen EACCES: permission denied 0.0.0.0:8080", "[8080]"],
    ["curl: (7) Failed to connect to 192.0.2.1 port 443 after 0 ms: Couldn't connect to server", "[443]"],
    [
      "BIO_socket:Permission denied:../crypto/bio/bio_sock2.c:50:calling socket()",
      "network.unrestricted: true",
    ],
  ])("%s", (output, rule) => {
    const text = said(output, without());
    expect(text).toContain("the sandbox gives tools only TCP ports 80");
    expect(text).toContain(rule);
  });

  test("is not blamed where the port is open and nobody listens", () => {
    const output = "curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server";
    expect(said(output, without())).toBe("");
  });

  test("a socket in the file system has a rule of its own", () => {
    for (const words of ["connect: permission denied", "connect EACCES"]) {
      const text = said(`dial unix ${socket}: ${words}`);
      expect(text).toContain(`network.unix: ["${socket}"]`);
    }
  });
});

describe("the sentences", () => {
  test("are few, and say the same only once", () => {
    const lines = Array.from(
      { length: 20 },
      (_, i) => `touch: cannot touch '${closed}/${i % 10}': Permission denied`,
    );
    const sentences = explain(lines.join("\n"), scene);
    expect(sentences.length).toBeLessThanOrEqual(3);
    expect(sentences.join().match(/elevated/g)).toHaveLength(1);
  });

  test("name $TMPDIR instead of /tmp", () => {
    const text = said("touch: cannot touch '/tmp/x': Permission denied");
    expect(text).toContain("$TMPDIR");
  });

  test("take no harm from any output", () => {
    for (const output of [
      "'".repeat(5000),
      `${"/a".repeat(4000)}: Permission denied`,
      "\0: Permission denied: '\0'",
    ])
      expect(said(output)).toBe("");
    expect(said(`cat: ${closed}/\x1b[2J: Permission denied`)).not.toContain("\x1b");
    expect(rules).toContain("default.yaml");
  });
});
