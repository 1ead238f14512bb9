/** Numbers of system calls: `arch/x86/entry/syscalls/syscall_64.tbl` and `include/uapi/asm-generic/unistd.h` of Linux. */
import { Fault } from "../../fault.ts";

const names = {
  // name: [x64, arm64]
  rt_sigaction: [13, 134],
  write: [1, 64],
  close: [3, 57],
  ioctl: [16, 29],
  socket: [41, 198],
  connect: [42, 203],
  sendto: [44, 206],
  sendmsg: [46, 211],
  socketpair: [53, 199],
  setsockopt: [54, 208],
  chdir: [80, 49],
  getppid: [110, 173],
  capset: [126, 91],
  prctl: [157, 167],
  setrlimit: [160, 164],
  mount: [165, 40],
  exit_group: [231, 94],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  openat: [257, 56],
  mkdirat: [258, 34],
  unlinkat: [263, 35],
  symlinkat: [266, 36],
  unshare: [272, 97],
  prlimit64: [302, 261],
  sendmmsg: [307, 269],
  seccomp: [317, 277],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  open_tree: [428, 428],
  move_mount: [429, 429],
  close_range: [436, 436],
  openat2: [437, 437],
  mount_setattr: [442, 442],
  landlock_create_ruleset: [444, 444],
  landlock_add_rule: [445, 445],
  landlock_restrict_self: [446, 446],
} as const;

export type SyscallName = keyof typeof names;
export type Machine = "x64" | "arm64";

export function numberOf(call: SyscallName, machine: Machine): number {
  return names[call][machine === "x64" ? 0 : 1];
}

/** @throws Fault on a processor that images have not been written for */
export function thisMachine(): Machine {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new Fault("invalid", `there is no sandbox for ${process.arch} processors`);
}

/** Of `open(2)` and its like: relative to the working folder, and flags. */
export const AT_FDCWD = -100;
export const O_WRONLY = 1;
export const O_CREAT = 0o100;
export const O_CLOEXEC = 0o2000000;
export const O_PATH = 0o10000000;

/** `errno(3)`. */
export const EPERM = 1;
export const ENOENT = 2;
export const EACCES = 13;
export const EROFS = 30;
export const ENOSYS = 38;
