/** Attempts on the network where the user has given tools none, or a port. Who listens outside looks whether anything comes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { until } from "../harness.ts";
import { hosts, perl, sys, Victim } from "./victim.ts";

const { full, fallback } = hosts;

/** In perl, with `$port` of a listener on the loopback for TCP and UDP, and `$granted` of one whose port may be connected to. */
const attempts: [what: string, program: string][] = [
  [
    "TCP",
    'socket(S, AF_INET, SOCK_STREAM, 0) or die $!; connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!; syswrite(S, "x") or die $!',
  ],
  [
    "TCP over IPv6",
    'socket(S, AF_INET6, SOCK_STREAM, 0) or die $!; connect(S, sockaddr_in6($port, inet_pton(AF_INET6, "::ffff:127.0.0.1"))) or die $!; syswrite(S, "x") or die $!',
  ],
  [
    "TCP that is bound to a port first",
    "socket(S, AF_INET, SOCK_STREAM, 6) or die $!; bind(S, sockaddr_in(0, INADDR_LOOPBACK)) or die $!; connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!",
  ],
  [
    "TCP with the data in the first packet",
    'socket(S, AF_INET, SOCK_STREAM, 0) or die $!; send(S, "x", 0x20000000, sockaddr_in($port, INADDR_LOOPBACK)) or die $!',
  ],
  [
    "TCP by way of no address first",
    'socket(S, AF_INET, SOCK_STREAM, 0) or die $!; connect(S, pack("Sx14", 0)); connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!',
  ],
  [
    "MPTCP",
    "socket(S, AF_INET, SOCK_STREAM, 262) or die $!; connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!",
  ],
  [
    "SMC",
    "socket(S, 43, SOCK_STREAM, 0) or die $!; connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!",
  ],
  [
    "SCTP",
    "socket(S, AF_INET, SOCK_STREAM, 132) or die $!; connect(S, sockaddr_in($port, INADDR_LOOPBACK)) or die $!",
  ],
  [
    "UDP",
    'socket(S, AF_INET, SOCK_DGRAM, 0) or die $!; send(S, "x", 0, sockaddr_in($port, INADDR_LOOPBACK)) or die $!',
  ],
  [
    "UDP-Lite",
    'socket(S, AF_INET, SOCK_DGRAM, 136) or die $!; send(S, "x", 0, sockaddr_in($port, INADDR_LOOPBACK)) or die $!',
  ],
  [
    "ping",
    'socket(S, AF_INET, SOCK_DGRAM, 1) or die $!; send(S, pack("CCnnn", 8, 0, 0, 1, 1), 0, sockaddr_in(0, INADDR_LOOPBACK)) or die $!',
  ],
  ["raw IP", "socket(S, AF_INET, SOCK_RAW, 17) or die $!"],
  ["raw packets", "socket(S, 17, SOCK_RAW, 0x0300) or die $!"],
  [
    "raw packets in a namespace of its own",
    `syscall(${sys("unshare")}, 0x50000000) == 0 or die $!; socket(S, 17, SOCK_RAW, 0x0300) or die $!`,
  ],
  ["vsock", "socket(S, 40, SOCK_STREAM, 0) or die $!"],
  ["netlink to the firewall", "socket(S, 16, SOCK_RAW, 12) or die $!"],
  ["bluetooth", "socket(S, 31, SOCK_RAW, 1) or die $!"],
  ["AF_ALG", "socket(S, 38, 5, 0) or die $!"],
  ["TIPC, as a pair", "socketpair(A, B, 30, SOCK_DGRAM, 0) or die $!"],
  ["io_uring", `my $p = "\\0" x 120; syscall(${sys("io_uring_setup")}, 8, $p) >= 0 or die $!`],
  [
    "a port to listen at",
    "socket(S, AF_INET, SOCK_STREAM, 0) or die $!; bind(S, sockaddr_in(0, INADDR_ANY)) or die $!; listen(S, 1) or die $!",
  ],
  [
    "a port to listen at, over UDP",
    "socket(S, AF_INET, SOCK_DGRAM, 0) or die $!; bind(S, sockaddr_in(0, INADDR_ANY)) or die $!",
  ],
  ["names", 'defined gethostbyname("example.invalid") or die "not permitted: no such name"'],
];
if (process.arch === "x64")
  attempts.push([
    "TCP by the numbers of x32",
    "my $s = syscall(0x40000000 + 41, 2, 1, 0); $s >= 0 or die $!",
  ]);

describe.each(Object.entries({ full, fallback }))("%s host", (_name, host) => {
  let heard = 0;
  const listen = () =>
    Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { open: () => void heard++, data: () => void heard++ },
    });
  const [denied, granted] = [listen(), listen()];
  const udp = Bun.udpSocket({
    port: denied.port,
    hostname: "127.0.0.1",
    socket: { data: () => void heard++ },
  });
  let none: Victim;
  let some: Victim;
  beforeAll(async () => {
    const config = (more: string) => `network:\n  unrestricted: false\n${more}`;
    none = await Victim.start({ ...host, sandbox: config("") });
    some = await Victim.start({ ...host, sandbox: config(`  connect_tcp: [${granted.port}]\n`) });
  });
  beforeEach(() => {
    heard = 0;
  });
  afterAll(async () => {
    await none.stop();
    await some.stop();
    denied.stop();
    granted.stop();
    (await udp).close();
  });

  describe.each(["no network", "a port"])("with %s", (has) => {
    const tried = (program: string) =>
      (has === "a port" ? some : none).run(
        perl(
          `use Socket qw(:all); my ($port, $granted) = (${denied.port}, ${granted.port}); ${program}; print "SUCCEEDED"`,
        ),
      );

    test.each(attempts)("%s", async (_what, program) => {
      const result = await tried(program);
      expect(result).not.toContain("SUCCEEDED");
      expect(result).toMatch(/denied|not permitted|not implemented|not supported|prohibited/i);
      expect(heard).toBe(0);
    });

    test("what may be reached", async () => {
      const victim = has === "a port" ? some : none;
      const result = await victim.run(`exec 3<>/dev/tcp/127.0.0.1/${granted.port} && echo REACHED`);
      if (has === "a port") expect(result).toContain("REACHED");
      else expect(result).toContain("the sandbox gives tools no network");
      await until("it is heard", () => heard > 0 || has !== "a port");
      expect(heard > 0).toBe(has === "a port");
    });
  });
});
