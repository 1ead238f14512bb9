/** System calls that Landlock does not see: denied by the filter, and only where the policy says so. */
import { describe, expect, test } from "bun:test";
import { launchSteps } from "../../../src/sandbox/launch/compile.ts";
import { must, reveal, type Step } from "../../../src/sandbox/launch/step.ts";
import { EACCES, ENOSYS, EPERM } from "../../../src/sandbox/launch/syscalls.ts";
import { lacksRoot } from "../../needs.ts";
import { as, call, host, inetAddress, isRoot, machine, returned, users, World } from "./helper.ts";

const { seccomp, landlock } = host();
const alone = { namespaces: false };
const ENOTTY = 25;
const EINVAL = 22;
/** The memory of an image cannot be written: what a call was about to return did not find a place, so the call was not denied. */
const EFAULT = 14;
const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16, packet: 17, alg: 38, vsock: 40 };
const SOCK = { stream: 1, dgram: 2, raw: 3, packet: 10 };
/** The first descriptor that is free. */
const opened = returned(3);

test("this kernel has filters", () => expect(seccomp).toBe(true));

describe.each(users)("as %s", (who) => {
  const world = new World(who);
  const status = async (steps: Step[], network = {}, abilities = {}) => {
    const name = `program-${Math.random()}`;
    const policy = world.policy(network);
    return (await world.run([world.program(name, steps)], { policy }, { ...alone, ...abilities })).code;
  };
  const socket = (domain: number, type: number, protocol = 0) =>
    reveal("make a socket", "socket", domain, type, protocol);

  const forbidden: Record<string, Step> = {
    "TCP, where no port is named": socket(AF.inet, SOCK.stream),
    "TCP over IPv6": socket(AF.inet6, SOCK.stream),
    UDP: socket(AF.inet, SOCK.dgram),
    "UDP over IPv6": socket(AF.inet6, SOCK.dgram),
    raw: socket(AF.inet, SOCK.raw, 1),
    ping: socket(AF.inet, SOCK.dgram, 1),
    MPTCP: socket(AF.inet, SOCK.stream, 262),
    SCTP: socket(AF.inet, SOCK.stream, 132),
    "packets by the old name": socket(AF.inet, SOCK.packet),
    AF_PACKET: socket(AF.packet, SOCK.raw),
    AF_VSOCK: socket(AF.vsock, SOCK.stream),
    AF_ALG: socket(AF.alg, 5),
    "netlink but for routes": socket(AF.netlink, SOCK.raw, 15),
    "with flags in the type": socket(AF.inet, SOCK.dgram | 0o2004000),
    "with high bits in the domain": { ...socket(0, SOCK.dgram), args: [(1n << 40n) | 2n, SOCK.dgram, 0] },
    "a pair that is not AF_UNIX": reveal("make a pair", call("socketpair"), 30, 4, 0, new Uint8Array(8)),
  };
  test.each(Object.entries(forbidden))("no network: %s", async (_name, step) => {
    expect(await status([step])).toBe(EACCES);
  });

  test("no network: what stays in this machine goes on", async () => {
    const granted = { unix: ["/dev/null"] };
    expect(await status([socket(AF.unix, SOCK.stream)], granted)).toBe(opened);
    expect(await status([socket(AF.netlink, SOCK.raw, 0)])).toBe(opened);
  });

  test("an unrestricted network", async () => {
    for (const step of [socket(AF.inet, SOCK.stream), socket(AF.inet, SOCK.dgram)])
      expect(await status([step], { unrestricted: true })).toBe(opened);
  });

  test.if(landlock >= 4)("with ports: TCP and nothing else", async () => {
    const ports = { connect: [443] };
    expect(await status([socket(AF.inet, SOCK.stream)], ports)).toBe(opened);
    expect(await status([socket(AF.inet6, SOCK.stream, 6)], ports)).toBe(opened);
    for (const name of ["UDP", "raw", "MPTCP", "SCTP", "AF_VSOCK"])
      expect(await status([forbidden[name]!], ports)).toBe(EACCES);
  });

  test.if(landlock >= 4)("with ports: no connection without connect(2)", async () => {
    const MSG_FASTOPEN = 0x20000000;
    const tcp = must("make a socket", "socket", AF.inet, SOCK.stream, 0);
    const ports = { connect: [443] };
    const send = reveal("send", "sendto", 3, "x", 1, MSG_FASTOPEN, inetAddress(9), 16);
    expect(await status([tcp, send], ports)).toBe(EACCES);
    expect(await status([tcp, reveal("send", "sendmsg", 3, 0, MSG_FASTOPEN)], ports)).toBe(EACCES);
    expect(await status([tcp, reveal("send", "sendmmsg", 3, 0, 1, MSG_FASTOPEN)], ports)).toBe(EACCES);
    const smc = reveal("become SMC", "setsockopt", 3, 6, 31, "smc", 3);
    expect(await status([tcp, smc], ports)).toBe(EACCES);
    // Without flags these fail for reasons of their own.
    expect(await status([tcp, reveal("send", "sendmsg", 3, 0, 0)], ports)).toBe(EFAULT);
  });

  test("io_uring has sockets of its own", async () => {
    const setup = reveal("set up", "io_uring_setup", 1, new Uint8Array(120));
    expect(await status([setup])).toBe(ENOSYS);
  });

  test("sockets in the file system, where neither namespaces nor Landlock keep them away", async () => {
    const old = { landlock: Math.min(landlock, 8) };
    const pair = (type: number) => reveal("make a pair", "socketpair", AF.unix, type, 0, new Uint8Array(8));
    const open = { unrestricted: true };
    expect(await status([socket(AF.unix, SOCK.stream)], open, old)).toBe(EACCES);
    expect(await status([pair(SOCK.stream)], open, old)).toBe(EFAULT);
    expect(await status([pair(SOCK.dgram)], open, old)).toBe(EACCES);
    expect(await status([pair(SOCK.dgram | 0o2000000)], open, old)).toBe(EACCES);
    // One that is granted opens all, which is told.
    expect(await status([socket(AF.unix, SOCK.stream)], { ...open, unix: ["/dev/null"] }, old)).toBe(opened);
  });

  test("the tag of a call's processes stays", async () => {
    const RLIMIT_LOCKS = 10;
    const limit = new Uint8Array(16);
    const change = reveal("change", "prlimit64", 0, RLIMIT_LOCKS, limit, 0);
    expect(await status([change])).toBe(EPERM);
    expect(await status([reveal("change", "setrlimit", RLIMIT_LOCKS, limit)])).toBe(EPERM);
    expect(await status([reveal("ask", "prlimit64", 0, RLIMIT_LOCKS, 0, limit)])).toBe(EFAULT);
    const RLIMIT_CORE = 4;
    expect(await status([reveal("change", "setrlimit", RLIMIT_CORE, limit)])).toBe(0);
  });

  test("keyrings and the terminal's input are closed", async () => {
    expect(await status([reveal("ask", "keyctl", 0, -3, 0)])).toBe(EPERM);
    expect(await status([reveal("add", "add_key", "user", "x", "y", 1, -3)])).toBe(EPERM);
    expect(await status([reveal("request", "request_key", "user", "x", 0, 0)])).toBe(EPERM);
    const TIOCSTI = 0x5412;
    const TIOCLINUX = 0x541c;
    const TCGETS = 0x5401;
    expect(await status([reveal("type", "ioctl", 0, TIOCSTI, "x")])).toBe(EPERM);
    expect(await status([reveal("paste", "ioctl", 0, TIOCLINUX, "x")])).toBe(EPERM);
    expect(await status([reveal("ask", "ioctl", 0, TCGETS, new Uint8Array(64))])).toBe(ENOTTY);
  });

  test.if(machine === "x64")("the same calls under other numbers", async () => {
    const x32 = 0x40000000;
    expect(await status([reveal("make a socket", x32 + 41, AF.inet, SOCK.dgram, 0)])).toBe(ENOSYS);
    const program = world.write("rox/i386", i386(), 0o755);
    expect((await world.run([program], {}, alone)).code).toBe(ENOSYS);
  });

  test("no privilege comes back", async () => {
    const ended = await world.sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status", {}, alone);
    const fields = Object.fromEntries(
      ended.stdout
        .trim()
        .split("\n")
        .map((line) => line.split(":\t")),
    );
    const kept = isRoot && who === "root" ? "00000000000000fb" : "0000000000000000";
    expect(fields).toMatchObject({ CapEff: kept, CapPrm: kept, CapAmb: "0000000000000000" });
    expect(fields).toMatchObject({ NoNewPrivs: "1", Seccomp: "2" });
  });
});

test.skipIf(lacksRoot())("capabilities that an ordinary user was given are gone", async () => {
  const world = new World("ordinary user");
  const steps = as("ordinary user", () => launchSteps(world.request(), { ...host(), ...alone }));
  const image = world.program("launch", steps);
  const given = ["--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"];
  const user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
  const { stdout } = Bun.spawnSync(
    ["setpriv", ...user, ...given, image, "/bin/grep", "-h", "CapEff", "/proc/self/status"],
    { cwd: world.cwd },
  );
  expect(stdout.toString()).toBe("CapEff:\t0000000000000000\n");
});

test("a call with an impossible argument is not mistaken for another", async () => {
  const world = new World(users[0]!);
  const steps = [reveal("ask", "prctl", 0x7fffffff, 0, 0, 0, 0)];
  expect((await world.run([world.program("ask", steps)], {}, alone)).code).toBe(EINVAL);
});

/** A static x86-64 program that asks for its pid as a 32-bit one would, `int $0x80`, and ends with the errno. */
function i386(): Uint8Array {
  const code = Uint8Array.fromHex("b814000000cd80f7d889c7b8e70000000f05");
  const file = new Uint8Array(0x78 + code.length);
  const view = new DataView(file.buffer);
  view.setUint32(0, 0x7f454c46);
  view.setUint32(4, 0x02010100);
  view.setUint16(16, 2, true);
  view.setUint16(18, 62, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(24, 0x400078n, true);
  view.setBigUint64(32, 0x40n, true);
  view.setUint16(52, 0x40, true);
  view.setUint16(54, 0x38, true);
  view.setUint16(56, 1, true);
  view.setUint32(0x40, 1, true);
  view.setUint32(0x44, 5, true);
  view.setBigUint64(0x50, 0x400000n, true);
  view.setBigUint64(0x58, 0x400000n, true);
  view.setBigUint64(0x60, BigInt(file.length), true);
  view.setBigUint64(0x68, BigInt(file.length), true);
  view.setBigUint64(0x70, 0x1000n, true);
  file.set(code, 0x78);
  return file;
}
