/** The few calls of the C library that Bun has no function for. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { closeSync, readdirSync } from "node:fs";

const AF_UNIX = 1;
const SOCK_STREAM_CLOEXEC = 1 | 0o2000000;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SO_PEERPIDFD = 77;
const LOCK_EX_NB = 2 | 4;

export interface Credentials {
  pid: number;
  uid: number;
  gid: number;
}

interface Libc {
  getsockopt(fd: number, level: number, name: number, value: number, length: number): number;
  socketpair(domain: number, type: number, protocol: number, ends: number): number;
  flock(fd: number, operation: number): number;
}

let loaded: Libc | undefined;
let knows: boolean | undefined;

/** Who is at the other end of a unix socket, as of its connect: SO_PEERCRED, `unix(7)`. Throws where the system does not say. */
export function peerCredentials(fd: number): Credentials {
  const value = new Int32Array(3);
  const length = new Uint32Array([value.byteLength]);
  if (libc().getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ptr(value), ptr(length)) !== 0) {
    throw new Error("the system does not say who is at the other end of the socket");
  }
  return { pid: value[0]!, uid: value[1]! >>> 0, gid: value[2]! >>> 0 };
}

/**
 * A descriptor, to be closed, of the process at the other end of a unix socket, as of its connect: SO_PEERPIDFD. Whatever becomes of
 * its pid, it means that process. Undefined where the process is gone, and on a kernel that has no such option.
 */
export function peerProcess(fd: number): number | undefined {
  const value = new Int32Array(1);
  const length = new Uint32Array([value.byteLength]);
  return libc().getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, ptr(value), ptr(length)) === 0
    ? value[0]
    : undefined;
}

/** Whether the kernel has SO_PEERPIDFD (Linux 6.5 and later): asked of a pair of sockets, whose other end is this process. */
export function knowsPeerProcess(): boolean {
  knows ??= askOurselves();
  return knows;
}

function askOurselves(): boolean {
  const ends = new Int32Array(2);
  if (libc().socketpair(AF_UNIX, SOCK_STREAM_CLOEXEC, 0, ptr(ends)) !== 0) return false;
  const process = peerProcess(ends[0]!);
  for (const fd of [...ends, process]) if (fd !== undefined) closeSync(fd);
  return process !== undefined;
}

/** Takes the lock of an open file, `flock(2)`, if nobody has it. It is gone with the descriptor. */
export function tryLock(fd: number): boolean {
  return libc().flock(fd, LOCK_EX_NB) === 0;
}

function libc(): Libc {
  loaded ??= load();
  return loaded;
}

function load(): Libc {
  const { i32, ptr } = FFIType;
  let reason: unknown;
  for (const name of libcNames()) {
    try {
      const library = dlopen(name, {
        getsockopt: { args: [i32, i32, i32, ptr, ptr], returns: i32 },
        socketpair: { args: [i32, i32, i32, ptr], returns: i32 },
        flock: { args: [i32, i32], returns: i32 },
      });
      return library.symbols as unknown as Libc;
    } catch (error) {
      reason = error;
    }
  }
  throw new Error("no C library was found", { cause: reason });
}

/** glibc first, then musl, whose file is named after the machine. */
function libcNames(): string[] {
  const names = ["libc.so.6"];
  for (const folder of ["/lib", "/usr/lib"]) {
    try {
      const musl = readdirSync(folder).filter((name) => /^libc\.musl-.*\.so\.1$/.test(name));
      names.push(...musl.map((name) => `${folder}/${name}`));
    } catch {
      // The folder need not exist.
    }
  }
  return [...names, "libc.so"];
}
