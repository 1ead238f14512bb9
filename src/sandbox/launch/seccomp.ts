/**
 * The system calls that Landlock does not see: a filter in classic BPF, `seccomp(2)`.
 *
 * It keeps a program's processes recognisable (their tag is a resource limit, src/exec/tag.ts), the user's keyrings closed and their
 * terminal from being typed into, and, where the policy restricts the network, all ways of opening a socket that are not TCP over Landlock's rules.
 */
import { must, type Step } from "./step.ts";
import { EACCES, ENOSYS, EPERM, type Machine, numberOf, type SyscallName } from "./syscalls.ts";

export interface Filter {
  /** `tcp`: what Landlock's port rules then decide about. */
  network: "any" | "tcp" | "none";
  /** Whether sockets in the file system may be used at all. */
  unix: boolean;
}

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
/** Of a socket's type, less SOCK_NONBLOCK and SOCK_CLOEXEC. */
const typeMask = 0xf;
const IPPROTO_TCP = 6;
/** Opens a connection without connect(2), and so past Landlock. */
const MSG_FASTOPEN = 0x20000000;
const SOL_TCP = 6;
/** Puts another protocol in the place of TCP, such as SMC, of which Landlock knows nothing. */
const TCP_ULP = 31;
/** Both type into the terminal that a program has been given, and so at the prompt of the shell that waits there. */
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const RLIMIT_LOCKS = 10;
const auditArch: Record<Machine, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** On x64, the bit of the x32 ABI: the same calls under other numbers. */
const x32 = 0x40000000;

/** All conditions hold → the verdict. `errno` 0 allows. */
interface Rule {
  call: SyscallName;
  errno: number;
  when: Condition[];
}

interface Condition {
  argument: number;
  /** The upper 32 bits. */
  high?: boolean;
  mask?: number;
  is: "equal" | "other" | "set";
  value: number;
}

const argument = (index: number, value: number, mask?: number): Condition => ({
  argument: index,
  mask,
  is: "equal",
  value,
});
/** Anything but 0. */
const other = (index: number, high = false): Condition => ({ argument: index, high, is: "other", value: 0 });
const flag = (index: number, value: number): Condition => ({ argument: index, is: "set", value });
const deny = (errno: number, call: SyscallName, ...when: Condition[]): Rule => ({ call, errno, when });
const allow = (call: SyscallName, ...when: Condition[]): Rule => ({ call, errno: 0, when });

/** The first rule that fits decides; what fits none is allowed. */
function rulesOf({ network, unix }: Filter): Rule[] {
  const rules = [
    deny(EPERM, "setrlimit", argument(0, RLIMIT_LOCKS)),
    // Of its own limits this one; of another process's none, since the kernel ends who has no time left (RLIMIT_CPU).
    ...[argument(1, RLIMIT_LOCKS), other(0)].flatMap((whose) =>
      [other(2), other(2, true)].map((isSet) => deny(EPERM, "prlimit64", whose, isSet)),
    ),
    ...[TIOCSTI, TIOCLINUX].map((request) => deny(EPERM, "ioctl", argument(1, request))),
    ...(["add_key", "request_key", "keyctl"] as const).map((call) => deny(EPERM, call)),
  ];
  if (network !== "any" || !unix) {
    // Its own socket operation is none of the calls below.
    for (const call of ["io_uring_setup", "io_uring_enter", "io_uring_register"] as const)
      rules.push(deny(ENOSYS, call));
  }
  if (!unix) {
    rules.push(deny(EACCES, "socket", argument(0, AF_UNIX)));
    // A pair of datagram sockets can be sent from to any path.
    rules.push(deny(EACCES, "socketpair", argument(0, AF_UNIX), argument(1, SOCK_DGRAM, typeMask)));
  }
  if (network === "any") return rules;
  rules.push(allow("socket", argument(0, AF_UNIX)));
  // One of another kind, TIPC, is not tied to its peer.
  rules.push(deny(EACCES, "socketpair", { argument: 0, is: "other", value: AF_UNIX }));
  // What getaddrinfo(3) and getifaddrs(3) ask for the machine's own addresses.
  rules.push(allow("socket", argument(0, AF_NETLINK), argument(2, 0)));
  if (network === "tcp") {
    for (const domain of [AF_INET, AF_INET6])
      for (const protocol of [0, IPPROTO_TCP])
        rules.push(
          allow("socket", argument(0, domain), argument(1, SOCK_STREAM, typeMask), argument(2, protocol)),
        );
    rules.push(
      deny(EACCES, "sendto", flag(3, MSG_FASTOPEN)),
      deny(EACCES, "sendmsg", flag(2, MSG_FASTOPEN)),
      deny(EACCES, "sendmmsg", flag(3, MSG_FASTOPEN)),
      deny(EACCES, "setsockopt", argument(1, SOL_TCP), argument(2, TCP_ULP)),
    );
  }
  rules.push(deny(EACCES, "socket"));
  return rules;
}

const LOAD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER_OR_EQUAL = 0x35;
const JUMP_SET = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;

type Instruction = [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (offset: number): Instruction => [LOAD, 0, 0, offset];
const answer = (errno: number): Instruction => [RETURN, 0, 0, errno === 0 ? ALLOW : ERRNO | errno];

/** The filter's program, `struct sock_filter` after `struct sock_filter`. */
function filterProgram(filter: Filter, machine: Machine): Uint8Array {
  const program: Instruction[] = [
    load(4), // seccomp_data.arch: another one's calls have other numbers
    [JUMP_EQUAL, 1, 0, auditArch[machine]],
    answer(ENOSYS),
    load(0),
  ];
  if (machine === "x64") program.push([JUMP_GREATER_OR_EQUAL, 0, 1, x32], answer(ENOSYS));
  for (const rule of rulesOf(filter)) program.push(...compile(rule, machine));
  program.push(answer(0));
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  program.forEach(([code, ifTrue, ifFalse, value], place) => {
    bytes.setUint16(place * 8, code, true);
    bytes.setUint8(place * 8 + 2, ifTrue);
    bytes.setUint8(place * 8 + 3, ifFalse);
    bytes.setUint32(place * 8 + 4, value, true);
  });
  return new Uint8Array(bytes.buffer);
}

/** Jumps over itself, forward only, as soon as something does not fit. */
function compile({ call, errno, when }: Rule, machine: Machine): Instruction[] {
  const tests = when.map(({ argument: index, high, mask, is, value }): Instruction[] => [
    load(16 + 8 * index + (high ? 4 : 0)),
    ...(mask === undefined ? [] : [[AND, 0, 0, mask] satisfies Instruction]),
    is === "set" ? [JUMP_SET, 0, 0, value] : [JUMP_EQUAL, 0, 0, value],
  ]);
  const conditions = [[load(0), [JUMP_EQUAL, 0, 0, numberOf(call, machine)] satisfies Instruction], ...tests];
  const length = conditions.flat().length + 1;
  const instructions: Instruction[] = [];
  conditions.forEach((condition, index) => {
    instructions.push(...condition.slice(0, -1));
    const [code, , , value] = condition.at(-1)!;
    const over = length - instructions.length - 1;
    const unlike = index > 0 && when[index - 1]!.is === "other";
    instructions.push(unlike ? [code, over, 0, value] : [code, 0, over, value]);
  });
  return [...instructions, answer(errno)];
}

const SET_MODE_FILTER = 1;

/** no_new_privs must be set. */
export function seccompStep(filter: Filter, machine: Machine): Step {
  const program = filterProgram(filter, machine);
  const fprog = { fields: [program.length / 8, program] };
  return must("filter system calls", "seccomp", SET_MODE_FILTER, 0, fprog);
}
