/** `olliesrv sandbox-exec`: what a program may do in it, and how it ends. */
import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, dist, Home, type RunOptions } from "./harness.ts";

setDefaultTimeout(60_000);

let home: Home;
beforeAll(build);
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.remove());

const olliesrv = join(dist, "olliesrv");
const system = ["/usr", "/bin", "/lib", "/lib64"].filter(existsSync);
/** What programs of the system need. */
const base = [`--rox=${system.join(",")}`, "--rw=/dev/null"];
const exec = (args: string[], options: RunOptions = {}) =>
  home.run([olliesrv, "sandbox-exec", ...args], options);

function work(name: string, content: string, mode = 0o644): string {
  const path = join(home.work, name);
  writeFileSync(path, content, { mode });
  chmodSync(path, mode);
  return path;
}

describe("the file system", () => {
  test("what is not granted is denied", async () => {
    work("secret", "x");
    const { status, stdout, stderr } = await exec([...base, "cat", "secret"]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("Permission denied");
  });

  test("ro, rw, rox, rwx", async () => {
    for (const name of ["ro", "rox", "rw", "rwx"]) mkdirSync(join(home.work, name));
    for (const name of ["ro", "rox", "rw", "rwx"]) work(`${name}/p`, "#!/bin/sh\nexit 0\n", 0o755);
    const script = `for f in ro rox rw rwx; do
      cat $f/p >/dev/null 2>&1 && r=r || r=-
      touch $f/new 2>/dev/null && w=w || w=-
      $f/p 2>/dev/null && x=x || x=-
      echo $f $r$w$x; done`;
    const grants = ["ro", "rox", "rw", "rwx"].flatMap((name) => [`--${name}`, name]);
    const { stdout } = await exec([...base, ...grants, "--", "sh", "-c", script]);
    expect(stdout).toBe("ro r--\nrox r-x\nrw rw-\nrwx rwx\n");
  });

  test("lists with commas, and options that are repeated", async () => {
    for (const name of ["a", "b", "c"]) work(name, name);
    const { stdout } = await exec([...base, "--ro", "a,b", "--ro=c", "cat", "a", "b", "c"]);
    expect(stdout).toBe("abc");
  });

  test("a path that does not exist is an error, unless it may be missing", async () => {
    const args = ["--ro", "nowhere", "true"];
    expect(await exec([...base, ...args])).toEqual({
      status: 126,
      stdout: "",
      stderr: "sandbox-exec: nowhere does not exist: --ignore-missing goes on without it\n",
    });
    expect((await exec(["--ignore-missing", ...base, ...args])).status).toBe(0);
  });

  test("--unrestricted-filesystem", async () => {
    const { status } = await exec(["--unrestricted-filesystem", "touch", "new"]);
    expect(status).toBe(0);
    expect(existsSync(join(home.work, "new"))).toBe(true);
  });
});

describe("the program", () => {
  test("--add-exec and --ldd grant it, its loader and its libraries, and nothing else", async () => {
    expect(await exec(["--add-exec", "--ldd", "cat"], { stdin: "text" })).toEqual({
      status: 0,
      stdout: "text",
      stderr: "",
    });
    const { status, stderr } = await exec(["--add-exec", "--ldd", "cat", "/etc/passwd"]);
    expect(status).toBe(1);
    expect(stderr).toContain("Permission denied");
  });

  test("of a script, too", async () => {
    const script = work("script", '#!/bin/sh\necho "$0 $1"\n', 0o755);
    const { stdout } = await exec(["--add-exec", "--ldd", script, "--ldd"]);
    expect(stdout).toBe(`${script} --ldd\n`);
  });

  test("without them it cannot be executed, which is said", async () => {
    const { status, stderr } = await exec(["/bin/true"]);
    expect(status).toBe(126);
    expect(stderr).toStartWith("ollie: sandbox: cannot run /bin/true: is it granted to be executed");
  });

  test("its exit status and its signals are those of sandbox-exec", async () => {
    expect((await exec([...base, "sh", "-c", "exit 7"])).status).toBe(7);
    expect((await exec([...base, "sh", "-c", "kill -TERM $$"])).status).toBe(143);
  });

  test("what is not found is 127, what cannot be executed 126", async () => {
    work("file", "");
    const missing = await exec(["nothing-of-this-name"]);
    expect(missing).toEqual({
      status: 127,
      stdout: "",
      stderr: "sandbox-exec: nothing-of-this-name is not found\n",
    });
    expect((await exec(["./nothing"])).status).toBe(127);
    expect((await exec(["./file"])).status).toBe(126);
    expect((await exec([home.work])).status).toBe(126);
  });

  test("the process becomes it: its pid, no parent between", async () => {
    const script = [`"${olliesrv}" sandbox-exec ${base.join(" ")} sh -c 'echo $$' & p=$!; wait $p; echo $p`];
    const { stdout } = await home.run(["sh", "-c", script.join("\n")]);
    const [inside, outside] = stdout.trim().split("\n");
    expect(inside).toBe(outside);
  });

  test("it gets no descriptor, limit or ignored signal of the launcher", async () => {
    const script = "ls /proc/self/fd | wc -l; ulimit -S -n; grep -E '^Sig(Ign|Blk)' /proc/self/status";
    const { stdout } = await exec([...base, "--ro=/proc", "sh", "-c", script]);
    const none = "0000000000000000";
    // 0, 1, 2, and the one with which ls reads the folder.
    expect(stdout).toBe(`4\n1024\nSigBlk:\t${none}\nSigIgn:\t${none}\n`);
  });

  test("nothing is left of the image", async () => {
    const env = { XDG_RUNTIME_DIR: join(home.folder, "run") };
    const { stdout } = await exec([...base, `--ro=${env.XDG_RUNTIME_DIR}`, "ls", "-A", env.XDG_RUNTIME_DIR], {
      env,
    });
    expect(stdout).toBe("");
    expect(readdirSync(env.XDG_RUNTIME_DIR)).toEqual([]);
  });

  test("where one folder does not do, another one is taken", async () => {
    const env = { XDG_RUNTIME_DIR: join(home.folder, "nowhere"), TMPDIR: home.folder };
    expect((await exec([...base, "true"], { env })).status).toBe(0);
  });
});

describe("the environment", () => {
  const env = { SECRET: "x", GIVEN: "y" };

  test("is empty", async () => {
    expect((await exec([...base, "env"], { env })).stdout).toBe("");
  });

  test("but for what is given: from the caller, or with a value", async () => {
    const args = ["--env", "GIVEN", "--env=A=b=c,d", "--env", "NOT_SET", "--env", "EMPTY="];
    const { stdout } = await exec([...base, ...args, "env"], { env });
    expect(stdout).toBe("GIVEN=y\nA=b=c,d\nEMPTY=\n");
  });

  test("files of the working folder that Bun would load are not loaded", async () => {
    work("bunfig.toml", 'preload = ["./preload.ts"]\n');
    work("preload.ts", 'require("node:fs").writeFileSync("loaded", "");\n');
    work(".env", "FROM_FILE=1\n");
    const { stdout } = await exec([...base, "--env", "FROM_FILE", "env"]);
    expect(stdout).toBe("");
    expect(existsSync(join(home.work, "loaded"))).toBe(false);
  });
});

describe("the network", () => {
  const connect = (port: number) => [
    "perl",
    "-MIO::Socket::INET",
    "-e",
    perl(`PeerPort => ${port}, Proto => "tcp"`),
  ];
  const perl = (how: string) =>
    `my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", ${how}); print $s ? "open" : $!`;
  const grants = [...base, "--ro=/etc"];

  test("is closed, for TCP as for UDP", async () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    expect((await exec([...grants, ...connect(server.port)])).stdout).toBe("Permission denied");
    const udp = ["perl", "-MIO::Socket::INET", "-e", perl('PeerPort => 9, Proto => "udp"')];
    expect((await exec([...grants, ...udp])).stdout).toBe("Permission denied");
    expect((await exec([...grants, "--connect-tcp", `${server.port}`, ...udp])).stdout).toBe(
      "Permission denied",
    );
  });

  test("--connect-tcp opens the port, --unrestricted-network everything", async () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    using other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const port = ["--connect-tcp", `1,${server.port}`];
    expect((await exec([...grants, ...port, ...connect(server.port)])).stdout).toBe("open");
    expect((await exec([...grants, ...port, ...connect(other.port)])).stdout).toBe("Permission denied");
    expect((await exec([...grants, "--unrestricted-network", ...connect(other.port)])).stdout).toBe("open");
  });

  test("sockets in the file system are part of the file system", async () => {
    const path = join(home.work, "socket");
    using _server = Bun.listen({ unix: path, socket: { data() {} } });
    const ask = [
      "perl",
      "-MIO::Socket::UNIX",
      "-e",
      `print IO::Socket::UNIX->new(Peer => "${path}") ? "open" : $!`,
    ];
    const open = "--unrestricted-network";
    expect((await exec([...grants, open, ...ask])).stdout).toBe("Permission denied");
    expect((await exec([...grants, open, "--best-effort", "--unix", path, ...ask])).stdout).toBe("open");
    expect((await exec(["--unrestricted-filesystem", open, ...ask])).stdout).toBe("open");
  });
});

describe("processes outside", () => {
  test("get no signals, unless the scope is unrestricted", async () => {
    const victim = Bun.spawn(["sleep", "1000"]);
    const ask = ["sh", "-c", `kill -0 ${victim.pid} 2>/dev/null && echo yes || echo no`];
    const denied = await exec([...base, ...ask]);
    const allowed = await exec([...base, "--unrestricted-scoped", ...ask]);
    victim.kill("SIGKILL");
    expect([denied.stdout, allowed.stdout]).toEqual(["no\n", "yes\n"]);
  });
});

describe("what is said", () => {
  test("debug: what is granted, but not values of variables", async () => {
    const args = ["--log-level=debug", "--env", "KEY=value", "--connect-tcp=80", "true"];
    const { stderr } = await exec([...base, ...args]);
    expect(stderr).toMatch(/^sandbox-exec: Landlock ABI \d+, seccomp on\n/);
    for (const line of [...system.map((path) => `--rox ${path}`), "--connect-tcp 80", "--env KEY"])
      expect(stderr).toContain(`sandbox-exec: ${line}\n`);
    expect(stderr).not.toContain("value");
  });

  test("the flags of the audit log are taken", async () => {
    const flags = ["--log-disable-originating", "--log-enable-subprocesses", "--log-disable-subdomains"];
    expect(await exec([...base, ...flags, "--best-effort", "true"])).toMatchObject({ status: 0 });
  });

  test.each([
    [["--bind-tcp", "x", "true"], "--bind-tcp x: a port is a number from 0 to 65535"],
    [["--connect-tcp", "65536", "true"], "--connect-tcp 65536: a port is a number from 0 to 65535"],
    [["--log-level", "loud", "true"], "--log-level must be one of error, info, debug"],
    [["--env", "=x", "true"], "--env =x: which variable?"],
    [["--rwo", "/", "true"], "unknown option '--rwo'"],
    [["--ro"], "option '--ro <value>' argument missing"],
    [["--ro", "/"], "expected olliesrv sandbox-exec"],
  ])("%j is wrong use", async (args, why) => {
    const { status, stdout, stderr } = await exec(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toStartWith(`olliesrv: ${why}`);
  });

  test("options of the program are its own, with -- and without", async () => {
    expect((await exec([...base, "echo", "--help", "-x"])).stdout).toBe("--help -x\n");
    expect((await exec([...base, "--", "echo", "--rw", "--"])).stdout).toBe("--rw --\n");
    expect((await exec(["--help"])).stdout).toStartWith("usage: olliesrv sandbox-exec");
  });
});

test("a sandbox in a sandbox takes away more", async () => {
  work("a", "a");
  work("b", "b");
  const inner = ["sandbox-exec", ...base, "--ro=a", "cat", "a", "b"];
  const outer = [...base, `--rox=${dist}`, "--ro=/proc,.", "--rwx=/dev/shm", "--env=PATH"];
  const { stdout, status } = await exec([...outer, olliesrv, ...inner]);
  expect(stdout).toBe("a");
  expect(status).toBe(1);
  expect(readFileSync(join(home.work, "b"), "utf8")).toBe("b");
});
