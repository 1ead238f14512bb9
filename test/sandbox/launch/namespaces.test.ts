/** A program's own view of the file system: what it cannot change, and whom it cannot reach. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { launchSteps } from "../../../src/sandbox/launch/compile.ts";
import { launchFailure } from "../../../src/sandbox/launch/launcher.ts";
import { must, reveal } from "../../../src/sandbox/launch/step.ts";
import { ENOENT } from "../../../src/sandbox/launch/syscalls.ts";
import { lacks, lacksRoot } from "../../needs.ts";
import {
  as,
  call,
  folder,
  host,
  isRoot,
  removeFolders,
  runSteps,
  unixAddress,
  until,
  users,
  type Who,
  World,
} from "./helper.ts";

/** /tmp is a place that programs see differently: most worlds of these tests are elsewhere. */
const elsewhere = "/var/tmp";
const ECONNREFUSED = 111;

afterAll(removeFolders);

/** With namespaces also where Landlock and seccomp would deny the same. */
const alone = { landlock: 0, seccomp: false };

async function namespacesFor(who: Who): Promise<boolean> {
  const world = new World(who, elsewhere);
  return (await world.sh("exit 0", {}, { namespaces: true })).code === 0;
}
const able = new Map(await Promise.all(users.map(async (who) => [who, await namespacesFor(who)] as const)));
const lacksNamespaces = (who: Who) => lacks(`user and mount namespaces, as ${who}`, able.get(who) === true);

function listenAt(path: string) {
  return Bun.listen({ unix: path, socket: { data() {} } });
}

/** A program that ends with the errno of connecting to a path. */
function connector(world: World, path: string): string {
  const address = unixAddress(path);
  return world.program(`connect-${Math.random()}`, [
    must("make a socket", "socket", 1, 1, 0),
    reveal("connect", "connect", 3, address, address.length),
  ]);
}

describe.each(users)("as %s", (who) => {
  const testIf = test.skipIf(lacksNamespaces(who));
  const enter = { namespaces: true };

  testIf("modes, owners, times and attributes of what is outside stay as they are", async () => {
    const world = new World(who, elsewhere);
    const { place } = world;
    const commands = (name: string) => ({
      [`${name} chmod`]: `chmod 600 ${place}/${name}/file`,
      [`${name} utime`]: `touch -d 2001-01-01 ${place}/${name}/file`,
      [`${name} chown`]: `chown "$(id -u):$(id -g)" ${place}/${name}/file`,
      [`${name} chmod of the folder`]: `chmod 700 ${place}/${name}`,
    });
    const before = statSync(world.at("none/file"));
    const may = await world.may({ ...commands("none"), ...commands("ro"), ...commands("rw") }, {}, enter);
    const answers = (name: string) => Object.keys(commands(name)).map((key) => may[key]);
    expect(answers("none")).toEqual(["no", "no", "no", "no"]);
    expect(answers("ro")).toEqual(["no", "no", "no", "no"]);
    expect(answers("rw")).toEqual(["yes", "yes", "yes", "yes"]);
    const after = statSync(world.at("none/file"));
    expect([after.mode, after.mtimeMs, after.ctimeMs]).toEqual([before.mode, before.mtimeMs, before.ctimeMs]);
    const { stderr } = await world.sh(`chmod 600 ${place}/ro/file`, {}, enter);
    expect(stderr).toContain("Read-only file system");
  });

  test("without namespaces they do not: what SECURITY.md says of such hosts is true", async () => {
    const world = new World(who, elsewhere);
    const may = await world.may({ chmod: `chmod 600 ${world.at("none/file")}` }, {}, { namespaces: false });
    expect(may).toEqual({ chmod: "yes" });
  });

  testIf("a socket outside is not reached, by whatever name it was bound", async () => {
    const world = new World(who, elsewhere);
    symlinkSync(world.at("none"), world.at("alias"));
    using _direct = listenAt(world.at("none/direct"));
    using _aliased = listenAt(world.at("alias/aliased"));
    world.own();
    for (const path of [world.at("none/direct"), world.at("alias/aliased"), world.at("none/aliased")]) {
      const program = connector(world, path);
      expect(Bun.spawnSync([program]).exitCode).toBe(0);
      expect((await world.run([program], {}, enter)).code).toBe(ECONNREFUSED);
    }
  });

  testIf("those that are granted are, and the tool's own, also in folders that are covered", async () => {
    const world = new World(who, elsewhere);
    mkdirSync(world.at("runtime"));
    symlinkSync(world.at("none"), world.at("alias"));
    using _own = listenAt(world.at("runtime/own"));
    using _other = listenAt(world.at("runtime/other"));
    using _granted = listenAt(world.at("alias/granted"));
    world.own();
    const request = {
      runtime: world.at("runtime"),
      sockets: [world.at("runtime/own")],
      policy: world.policy({ unix: [world.at("none/granted")] }),
    };
    const code = async (path: string) => (await world.run([connector(world, path)], request, enter)).code;
    expect(await code(world.at("runtime/own"))).toBe(0);
    expect(await code(world.at("none/granted"))).toBe(0);
    expect(await code(world.at("runtime/other"))).toBe(ENOENT);
    const { stdout } = await world.sh(`ls -A ${world.at("runtime")}; true`, request, enter);
    expect(stdout).not.toContain("other");
  });

  testIf("a socket that comes after the call began is not reached either", async () => {
    const world = new World(who, "/tmp");
    mkdirSync(world.at("runtime"));
    world.own();
    const late = folder("/tmp");
    const paths = [world.at("runtime/late"), join(late, "tmux")];
    if (isRoot) paths.push(`/run/ollie-test-${process.pid}`);
    const programs = paths.map((path) => connector(world, path));
    const script = [
      `: >${world.at("rwx/ready")}`,
      `while ! [ -e ${world.at("rwx/go")} ]; do sleep 0.01; done`,
      ...programs.map((program) => `${program}; echo $?`),
    ];
    const running = world.sh(script.join("\n"), { runtime: world.at("runtime") }, enter);
    await until("the call runs", () => existsSync(world.at("rwx/ready")));
    const servers = paths.map(listenAt);
    for (const path of paths) Bun.spawnSync(["chmod", "777", path]);
    world.write("rwx/go", "");
    const { stdout } = await running;
    for (const server of servers) server.stop(true);
    for (const path of paths) rmSync(path, { force: true });
    expect(stdout).toBe(paths.map(() => `${ENOENT}\n`).join(""));
  });

  testIf("/tmp is the session's own where nothing in it is granted", async () => {
    const world = new World(who, elsewhere);
    const name = `ollie-test-${Math.random()}`;
    const { stdout } = await world.sh(`ls -A /tmp; echo x >/tmp/${name} && cat /tmp/${name}`, {}, enter);
    expect(stdout).toBe("file\nx\n");
    expect(readFileSync(world.at("tmp", name), "utf8")).toBe("x\n");
    expect(existsSync(join("/tmp", name))).toBe(false);
  });

  testIf("where something is, nothing else is seen there", async () => {
    const world = new World(who, "/tmp");
    const { stdout } = await world.sh(`ls -A /tmp; touch /tmp/x || echo denied; echo y >made`, {}, enter);
    expect(stdout).toBe("denied\n");
    expect(readFileSync(world.at("rwx/made"), "utf8")).toBe("y\n");
    const policy = world.policy();
    policy.filesystem.list.push("/tmp");
    const listed = await world.sh("ls -A /tmp", { policy }, enter);
    expect(listed.stdout).toBe(`${basename(world.place)}\n`);
  });

  testIf("what is frozen cannot be changed, moved or replaced, nor can the folders above it", async () => {
    const world = new World(who, elsewhere);
    mkdirSync(world.at("rwx/.git/hooks"), { recursive: true });
    world.write("rwx/.git/config", "config");
    world.write("rwx/.git/hooks/pre-commit", "hook", 0o755);
    const git = world.at("rwx/.git");
    const policy = { ...world.policy(), frozen: [`${git}/hooks`, `${git}/config`] };
    const may = await world.may(
      {
        "write the file": `echo x >>${git}/config`,
        "replace the file": `echo x >${git}/x && mv -T ${git}/x ${git}/config`,
        "remove the file": `rm -f ${git}/config`,
        "create in the folder": `: >${git}/hooks/new`,
        "change a hook": `echo x >${git}/hooks/pre-commit`,
        "make a hook executable": `chmod 777 ${git}/hooks/pre-commit`,
        "move the folder": `mv ${git}/hooks ${git}/other`,
        "move the folder above": `mv ${git} ${git}2`,
        "remove everything": `rm -rf ${git}`,
        "link the file and write it": `ln ${git}/config ${git}/alias && echo x >${git}/alias`,
        "put another folder over it": `mount --bind ${git} ${git}/hooks`,
        "read it": `grep -q config ${git}/config`,
        "write beside it": `echo x >${git}/index`,
      },
      { policy },
      enter,
    );
    const allowed = Object.keys(may).filter((act) => may[act] === "yes");
    expect(allowed).toEqual(["read it", "write beside it"]);
    expect(readFileSync(`${git}/config`, "utf8")).toBe("config");
    expect(readdirSync(`${git}/hooks`)).toEqual(["pre-commit"]);
    expect(readFileSync(`${git}/hooks/pre-commit`, "utf8")).toBe("hook");
  });

  testIf("what is hidden is not there, but for what is granted in it", async () => {
    const world = new World(who, elsewhere);
    mkdirSync(world.at("state/sessions/other"), { recursive: true });
    mkdirSync(world.at("state/tmp/mine"), { recursive: true });
    using _owner = listenAt(world.at("state/9p"));
    world.own();
    const policy = world.policy();
    policy.filesystem.ro.push(world.place);
    policy.filesystem.rw.push(world.at("state/tmp/mine"));
    policy.hidden = [world.at("state")];
    const script = `ls -AR ${world.at("state")}; echo x >${world.at("state/tmp/mine/file")}`;
    const { stdout } = await world.sh(script, { policy }, enter);
    expect(stdout).not.toContain("sessions");
    expect(readFileSync(world.at("state/tmp/mine/file"), "utf8")).toBe("x\n");
    const { code } = await world.run([connector(world, world.at("state/9p"))], { policy }, enter);
    expect(code).toBe(ENOENT);
  });

  testIf("shared memory of other programs has no number here", async () => {
    const world = new World(who, elsewhere);
    const key = 0x6f000000 + (process.pid % 0xffffff);
    const IPC_CREAT = 0o1000;
    const make = reveal("make", call("shmget"), key, 4096, IPC_CREAT | 0o666);
    await runSteps([make], [], who);
    const find = reveal("find", call("shmget"), key, 4096, 0);
    const outside = await runSteps([find], [], who);
    const within = await world.run([world.program("find", [find])], {}, enter);
    Bun.spawnSync(["ipcrm", "-M", String(key)]);
    expect(outside.code).not.toBe(ENOENT);
    expect(within.code).toBe(ENOENT);
  });

  testIf("covers stay where they are", async () => {
    const world = new World(who, elsewhere);
    const may = await world.may(
      {
        unmount: "umount /run || umount -l /run",
        mount: `mount -t tmpfs none ${world.at("rwx")}`,
        "bind mount": `mount --bind /etc ${world.at("rwx")}`,
        "remount writable": "mount -o remount,bind,rw /",
        "mount in a further namespace": `unshare -Urm mount -t tmpfs none ${world.at("rwx")}`,
        "change the root": `unshare -Ur chroot ${world.at("rwx")} true`,
      },
      {},
      enter,
    );
    expect(Object.values(may)).toEqual(Object.values(may).map(() => "no"));
  });

  testIf("the program stands in the working folder, which is the one that may be written", async () => {
    const world = new World(who, elsewhere);
    const { stdout } = await world.sh("pwd; echo x >here; cat ../ro/file; pwd -P", {}, enter);
    expect(stdout).toBe(`${world.cwd}\nro${world.cwd}\n`);
    expect(readFileSync(world.at("rwx/here"), "utf8")).toBe("x\n");
  });

  testIf("a working folder that may not even be read is entered", async () => {
    for (const parent of [elsewhere, "/tmp"]) {
      const world = new World(who, parent);
      const { stdout } = await world.sh("pwd; ls", { cwd: world.at("none") }, enter);
      expect(stdout).toBe(`${world.at("none")}\n`);
    }
  });

  testIf("a working folder that has gone meanwhile is told as a fault", async () => {
    for (const leave of [
      (path: string) => rmSync(path, { recursive: true }),
      (path: string) => renameSync(path, `${path}2`),
    ]) {
      const world = new World(who, elsewhere);
      const steps = as(who, () => launchSteps(world.request(), { ...host(), ...enter }));
      leave(world.cwd);
      const ended = await runSteps(steps, ["/bin/true"], who);
      const fault = launchFailure({ code: ended.code!, stderr: ended.stderr });
      expect(fault?.message).toContain(`find ${world.cwd} as it was (ENOENT)`);
    }
  });

  testIf("an ordinary user has no capabilities and a single identity", async () => {
    const world = new World(who, elsewhere);
    const { stdout } = await world.sh(
      "cat /proc/self/uid_map; grep CapEff /proc/self/status; id -u",
      {},
      enter,
    );
    const [map, caps, uid] = stdout.trim().split("\n");
    if (isRoot && who === "root") {
      expect(caps).toBe("CapEff:\t00000000000000fb");
      expect(uid).toBe("0");
    } else {
      expect(map!.trim().split(/\s+/)).toEqual([uid!, uid!, "1"]);
      expect(caps).toBe("CapEff:\t0000000000000000");
    }
  });

  // Rights on all terminals, as the default policy has them.
  const onTerminals = (world: World) => {
    const policy = world.policy();
    policy.filesystem.rw.push("/dev/ptmx", "/dev/pts");
    return { policy };
  };
  /** Prints the number of a new terminal that it holds until the test ends. */
  const holder = [
    "import os,sys,time",
    "m,s=os.openpty()",
    "os.chmod(os.ttyname(s),0o666)",
    "print(os.ttyname(s),flush=True)",
    "time.sleep(60)",
  ].join("\n");

  test.each([able.get(who)!, false])(
    "no terminal of the user can be read or written (namespaces: %p)",
    async (namespaces) => {
      const world = new World(who, elsewhere);
      const terminal = Bun.spawn(["python3", "-c", holder], { stdout: "pipe" });
      try {
        const { value } = await terminal.stdout.getReader().read();
        const name = new TextDecoder().decode(value).trim();
        expect(name).toStartWith("/dev/pts/");
        const may = await world.may({ write: `echo x >${name}`, read: `: <${name}` }, onTerminals(world), {
          namespaces,
        });
        expect(may).toEqual({ write: "no", read: "no" });
      } finally {
        terminal.kill();
      }
    },
  );

  testIf("a program has terminals of its own", async () => {
    const world = new World(who, elsewhere);
    const own = `python3 -c 'import os;m,s=os.openpty();os.write(s,b"hello");print(os.ttyname(s),os.read(m,5))'`;
    const { stdout, stderr } = await world.sh(own, onTerminals(world), enter);
    expect(stdout + stderr).toBe("/dev/pts/0 b'hello'\n");
  });

  testIf("namespaces by themselves keep files from being changed", async () => {
    const world = new World(who, elsewhere);
    const may = await world.may(
      { outside: `: >${world.at("none/new")}`, "read-only": `: >${world.at("ro/new")}`, inside: ": >new" },
      {},
      { ...enter, ...alone },
    );
    expect(may).toEqual({ outside: "no", "read-only": "no", inside: "yes" });
  });
});

test.skipIf(lacksRoot() || lacksNamespaces("root"))("root's tools find no passwords", async () => {
  const world = new World("root", elsewhere);
  expect(readFileSync("/etc/shadow", "utf8")).not.toBe("");
  const { stdout } = await world.sh("cat /etc/shadow; head -c 4 /etc/passwd", {}, { namespaces: true });
  expect(stdout).toBe("root");
});

test.skipIf(lacksRoot() || lacksNamespaces("root"))(
  "what is unmounted outside is unmounted inside, too",
  async () => {
    const world = new World("root", elsewhere);
    const mounted = world.at("mounted");
    mkdirSync(mounted);
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "none", mounted]).success).toBe(true);
    try {
      writeFileSync(join(mounted, "file"), "");
      const script = `: >ready; while ! [ -e go ]; do sleep 0.01; done; grep -c ${mounted} /proc/self/mounts`;
      const running = world.sh(script, {}, { namespaces: true });
      await until("the call runs", () => existsSync(world.at("rwx/ready")));
      expect(Bun.spawnSync(["umount", mounted]).success).toBe(true);
      rmdirSync(mounted);
      world.write("rwx/go", "");
      expect((await running).stdout).toBe("0\n");
    } finally {
      Bun.spawnSync(["umount", "-l", mounted], { stderr: "ignore" });
    }
  },
);
