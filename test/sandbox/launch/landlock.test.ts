/** What Landlock alone denies and allows, without namespaces. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, rmdirSync, symlinkSync } from "node:fs";
import { readElf } from "../../../src/sandbox/elf.ts";
import { buildImage } from "../../../src/sandbox/launch/image.ts";
import { landlockSteps } from "../../../src/sandbox/launch/landlock.ts";
import { becomeProgram, must, reveal } from "../../../src/sandbox/launch/step.ts";
import { EACCES, EPERM } from "../../../src/sandbox/launch/syscalls.ts";
import {
  bystander,
  call,
  end,
  host,
  inetAddress,
  machine,
  returned,
  runSteps,
  unixAddress,
  users,
  World,
} from "./helper.ts";

const alone = { namespaces: false };
const AT_FDCWD = -100;
const { landlock } = host();

describe.each(users)("as %s", (who) => {
  test("each right allows what it says and nothing else", async () => {
    const world = new World(who);
    const { place } = world;
    const program = buildImage([end], machine);
    for (const name of ["list", "ro", "rox", "rw", "rwx", "none"])
      world.write(`${name}/program`, program, 0o755);
    const kinds = ["none", "list", "ro", "rox", "rw", "rwx"];
    const acts: Record<string, (path: string) => string> = {
      list: (path) => `ls ${path}`,
      read: (path) => `cat ${path}/file`,
      execute: (path) => `${path}/program`,
      create: (path) => `: >${path}/new`,
      append: (path) => `echo x >>${path}/file`,
      truncate: (path) => `truncate -s 1 ${path}/file`,
      mkdir: (path) => `mkdir ${path}/folder`,
      symlink: (path) => `ln -s file ${path}/link`,
      fifo: (path) => `mkfifo ${path}/fifo`,
      rename: (path) => `mv ${path}/file ${path}/moved`,
      remove: (path) => `rm ${path}/moved`,
    };
    const commands = Object.fromEntries(
      kinds.flatMap((kind) =>
        Object.entries(acts).map(([act, command]) => [`${kind} ${act}`, command(`${place}/${kind}`)]),
      ),
    );
    const may = await world.may(commands, {}, alone);
    const allowed = (kind: string) => Object.keys(acts).filter((act) => may[`${kind} ${act}`] === "yes");
    const write = ["create", "append", "truncate", "mkdir", "symlink", "fifo", "rename", "remove"];
    expect(Object.fromEntries(kinds.map((kind) => [kind, allowed(kind)]))).toEqual({
      none: [],
      list: ["list"],
      ro: ["list", "read"],
      rox: ["list", "read", "execute"],
      rw: ["list", "read", ...write],
      rwx: ["list", "read", "execute", ...write],
    });
  });

  test("nothing is moved or linked across the border, but within it", async () => {
    const world = new World(who);
    const { place } = world;
    const may = await world.may(
      {
        "link in": `ln ${place}/none/file ${place}/rw/in`,
        "link a file that may be read": `ln ${place}/ro/file ${place}/rw/in`,
        "link out": `ln ${place}/rw/file ${place}/none/out`,
        "rename out": `mv -T ${place}/rw/file ${place}/none/out`,
        "rename in": `mv -T ${place}/none/file ${place}/rw/in`,
        "from rw to rwx, where it could be executed": `perl -e 'rename "${place}/rw/file", "${place}/rwx/x" or exit 1'`,
        "from rwx to rw": `perl -e 'rename "${place}/rwx/file", "${place}/rw/x" or exit 1'`,
        "within a folder": `mkdir ${place}/rw/a && mv ${place}/rw/file ${place}/rw/a/b && ln ${place}/rw/a/b ${place}/rw/c`,
      },
      {},
      alone,
    );
    expect(may).toEqual({
      "link in": "no",
      "link a file that may be read": "no",
      "link out": "no",
      "rename out": "no",
      "rename in": "no",
      "from rw to rwx, where it could be executed": "no",
      "from rwx to rw": "yes",
      "within a folder": "yes",
    });
    expect(readFileSync(world.at("none/file"), "utf8")).toBe("none");
  });

  test("a link that took the place of a granted folder grants nothing where it leads", async () => {
    const world = new World(who);
    mkdirSync(world.at("rwx/build"));
    world.own();
    const policy = world.policy();
    policy.filesystem.rw.push(world.at("rwx/build"));
    const steps = landlockSteps(policy, landlock);
    // After the policy was made, and before its rules are.
    rmdirSync(world.at("rwx/build"));
    symlinkSync(world.at("none"), world.at("rwx/build"));
    const create = reveal("create", "mkdirat", AT_FDCWD, world.at("none/new"), 0o700);
    expect((await runSteps([...steps, create], [], who)).code).toBe(EACCES);
  });

  test("what has gone since is not granted, and the rest is", async () => {
    const world = new World(who);
    const policy = world.policy();
    const steps = landlockSteps(policy, landlock);
    renameSync(world.at("rw"), world.at("gone"));
    const ended = await runSteps([...steps, becomeProgram], ["/bin/cat", world.at("ro/file")], who);
    expect(ended).toEqual({ code: 0, stdout: "ro", stderr: "" });
  });

  test("single files and devices", async () => {
    const world = new World(who);
    const policy = world.policy();
    policy.filesystem.rw.push(world.at("none/file"));
    policy.filesystem.ro.push("/dev/zero");
    const may = await world.may(
      {
        "write the file": `echo x >${world.at("none/file")}`,
        "its neighbour": `echo x >${world.at("none/other")}`,
        "replace the file": `mv -T ${world.at("rw/file")} ${world.at("none/file")}`,
        "/dev/null": "echo x >/dev/null",
        "read /dev/zero": "head -c 1 /dev/zero",
        "write /dev/zero": "echo x >/dev/zero",
        "/dev/full": "head -c 1 /dev/full",
      },
      { policy },
      alone,
    );
    expect(may).toEqual({
      "write the file": "yes",
      "its neighbour": "no",
      "replace the file": "no",
      "/dev/null": "yes",
      "read /dev/zero": "yes",
      "write /dev/zero": "no",
      "/dev/full": "no",
    });
  });

  test.if(landlock >= 5)("an ioctl reaches only devices that may be written", async () => {
    const world = new World(who);
    const policy = world.policy();
    policy.filesystem.ro.push("/dev/zero");
    const RNDGETENTCNT = 0x80045200;
    const ask = (device: string, flags: number) => [
      must("open", "openat", AT_FDCWD, device, flags, 0),
      reveal("ask", "ioctl", 3, RNDGETENTCNT, new Uint8Array(8)),
    ];
    const code = async (device: string, flags: number) =>
      (await world.run([world.program("ask", ask(device, flags))], { policy }, alone)).code;
    const ENOTTY = 25;
    expect(await code("/dev/zero", 0)).toBe(EACCES);
    expect(await code("/dev/null", 2)).toBe(ENOTTY);
  });

  test.if(landlock >= 4)("TCP: bind and connect at the ports that are named", async () => {
    const world = new World(who);
    using granted = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    using other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const free = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const mine = free.port;
    free.stop(true);
    const policy = world.policy({ connect: [granted.port], bind: [mine] });
    const at = async (name: "bind" | "connect", port: number) => {
      const steps = [
        must("make a socket", "socket", 2, 1, 0),
        reveal(name, name === "bind" ? call("bind") : "connect", 3, inetAddress(port), 16),
      ];
      return (await world.run([world.program(name, steps)], { policy }, alone)).code;
    };
    expect(await at("connect", granted.port)).toBe(0);
    expect(await at("connect", other.port)).toBe(EACCES);
    expect(await at("bind", mine)).toBe(0);
    expect(await at("bind", other.port)).toBe(EACCES);
    expect(await at("bind", 0)).toBe(EACCES);
  });

  test.if(landlock >= 6)("neither signals nor abstract sockets reach outside", async () => {
    const world = new World(who);
    const name = `@ollie-test-${process.pid}-${Math.random()}`;
    using _server = Bun.listen({ unix: `\0${name.slice(1)}`, socket: { data() {} } });
    const address = unixAddress(name);
    const connect = [
      must("make a socket", "socket", 1, 1, 0),
      reveal("connect", "connect", 3, address, address.length),
    ];
    expect((await runSteps(connect, [], who)).code).toBe(0);
    const ended = await world.run([world.program("connect", connect)], {}, { ...alone, seccomp: false });
    expect(ended.code).toBe(EPERM);

    using victim = bystander(who);
    const { stdout } = await world.sh(
      `kill -0 ${victim.pid} || echo denied; sleep 9 & kill $! && echo own`,
      {},
      alone,
    );
    expect(stdout).toBe("denied\nown\n");
  });

  test("the memory and the files of processes outside are closed", async () => {
    const world = new World(who);
    using victim = bystander(who);
    const proc = `/proc/${victim.pid}`;
    const may = await world.may(
      {
        mem: `: <${proc}/mem`,
        environ: `cat ${proc}/environ`,
        root: `ls ${proc}/root/`,
        cwd: `ls ${proc}/cwd/`,
        fd: `readlink ${proc}/fd/0`,
        maps: `cat ${proc}/maps`,
        "its own": "cat /proc/self/maps",
      },
      {},
      alone,
    );
    const PTRACE_SEIZE = 0x4206;
    const trace = [reveal("trace", call("ptrace"), PTRACE_SEIZE, victim.pid, 0, 0)];
    const { code } = await world.run([world.program("trace", trace)], {}, alone);
    expect(code).toBe(EPERM);
    expect(may).toEqual({
      mem: "no",
      environ: "no",
      root: "no",
      cwd: "no",
      fd: "no",
      maps: "no",
      "its own": "yes",
    });
  });

  test("what SECURITY.md says that it does not keep a program from", async () => {
    const world = new World(who);
    const loader = readElf("/bin/true")!.interpreter!;
    const may = await world.may(
      {
        "ask for a file": `stat ${world.at("none/file")}`,
        "enter a folder": `cd ${world.at("none")}`,
        "execute what may be read": `cp /bin/true ${world.at("rw/true")}; ${world.at("rw/true")}`,
        "run it by the loader": `${loader} ${world.at("rw/true")}`,
      },
      {},
      alone,
    );
    expect(may).toEqual({
      "ask for a file": "yes",
      "enter a folder": "yes",
      "execute what may be read": "no",
      "run it by the loader": "yes",
    });
    const steps = [must("make a socket", "socket", 2, 1, 0), reveal("listen", call("listen"), 3, 1)];
    const policy = world.policy({ connect: [1] });
    if (landlock >= 4)
      expect((await world.run([world.program("listen", steps)], { policy }, alone)).code).toBe(0);
  });

  test.each([1, 2, 3, 4, 5, 6].filter((abi) => abi <= landlock))("the rules of ABI %d", async (abi) => {
    const world = new World(who);
    const { place } = world;
    const may = await world.may(
      {
        create: `: >${place}/none/new`,
        read: `cat ${place}/none/file`,
        "write granted": `echo x >${place}/rw/file`,
        "move granted": `mkdir ${place}/rw/a && perl -e 'rename "${place}/rw/file", "${place}/rw/a/b" or exit 1'`,
        truncate: `perl -e 'truncate "${place}/none/file", 0 or exit 1'`,
        "abstract socket": world.program("abstract", [
          must("make a socket", "socket", 1, 1, 0),
          must("connect", "connect", 3, unixAddress(abstract), abstract.length + 2),
          end,
        ]),
      },
      {},
      { ...alone, landlock: abi, seccomp: false },
    );
    expect(may).toEqual({
      create: "no",
      read: "no",
      "write granted": "yes",
      "move granted": abi >= 2 ? "yes" : "no",
      truncate: abi >= 3 ? "no" : "yes",
      "abstract socket": abi >= 6 ? "no" : "yes",
    });
    const tcp = [
      must("make a socket", "socket", 2, 1, 0),
      reveal("bind", call("bind"), 3, inetAddress(0), 16),
    ];
    const { code } = await world.run(
      [world.program("tcp", tcp)],
      {},
      { ...alone, landlock: abi, seccomp: false },
    );
    expect(code).toBe(abi >= 4 ? EACCES : returned(0));
  });
});

const abstract = `@ollie-abi-${process.pid}-${Math.random()}`;
Bun.listen({ unix: `\0${abstract.slice(1)}`, socket: { data() {} } }).unref();
