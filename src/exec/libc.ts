/** The few calls of libc that Bun has no word for. Loaded at the first use: it costs 1 ms and 1 MB. */
import { dlopen, type FFIFunction, type Library, type Pointer, ptr, toArrayBuffer } from "bun:ffi";
import { Fault } from "../fault.ts";

const O_CLOEXEC = 0o2000000;
const RLIMIT_CORE = 4;
const RLIMIT_LOCKS = 10;
const PR_SET_DUMPABLE = 4;
/** Commands of fcntl(2) and the lock type that excludes all others, on every architecture of Linux that Bun runs on. */
const F_GETLK = 5;
const F_SETLK = 6;
const F_WRLCK = 1;
const F_UNLCK = 2;
const MADV_DONTNEED = 4;
/** `struct flock` with 64-bit offsets: type and whence (16 bits each), start, length, pid. All zero but the type: the whole file. */
const flockBytes = 32;
const pidAt = 24;
/** glibc, then musl under the names its linker gives it. */
const libcNames = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1", "libc.so"];

/** Functions of the C library of this host. @throws Fault "unavailable" where none can be loaded */
export function fromLibc<S extends Record<string, FFIFunction>>(functions: S): Library<S>["symbols"] {
  let reason: unknown;
  for (const name of libcNames) {
    try {
      return dlopen(name, functions).symbols;
    } catch (error) {
      reason = error;
    }
  }
  throw new Fault("unavailable", `no C library found (tried ${libcNames.join(", ")})`, { cause: reason });
}

function load() {
  return fromLibc({
    pipe2: { args: ["ptr", "i32"], returns: "i32" },
    dup2: { args: ["i32", "i32"], returns: "i32" },
    prlimit: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" },
    getsid: { args: ["i32"], returns: "i32" },
    prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" },
    syscall: { args: ["i64", "u64", "u64", "u64"], returns: "i64" },
    execve: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    madvise: { args: ["u64", "u64", "i32"], returns: "i32" },
  });
}

let loaded: ReturnType<typeof load> | undefined;

function libc(): ReturnType<typeof load> {
  loaded ??= load();
  return loaded;
}

/** Makes `to` mean what `from` means; without effect where that is not possible. */
export function dup2(from: number, to: number): void {
  libc().dup2(from, to);
}

/**
 * `pipe(2)`, both ends close-on-exec. Bun.spawn's own "pipe" is a socket pair, and opening `/dev/stdout` on a socket fails with
 * ENXIO, so that `tee /dev/stderr` or `curl -o /dev/stdout` would not work in a tool.
 */
export function pipe(): { read: number; write: number } {
  const ends = new Int32Array(2);
  if (libc().pipe2(ptr(ends), O_CLOEXEC) !== 0)
    throw new Fault("io", "no pipe for a program's output: too many open files");
  return { read: ends[0]!, write: ends[1]! };
}

/**
 * RLIMIT_LOCKS of a process (0: this one), `prlimit(2)`, as the kernel keeps it: soft limit, then hard limit, each the low word and
 * the high word. Undefined where it is gone or the system does not say.
 */
export function lockLimit(pid: number): Uint32Array | undefined {
  const limit = new Uint32Array(4);
  return libc().prlimit(pid, RLIMIT_LOCKS, null, ptr(limit)) === 0 ? limit : undefined;
}

/** Sets this process's own RLIMIT_LOCKS; false where the system does not allow it. */
export function setLockLimit(limit: Uint32Array): boolean {
  return libc().prlimit(0, RLIMIT_LOCKS, ptr(limit), null) === 0;
}

/** PR_SET_DUMPABLE off, `prctl(2)`, and the soft limit of core files at 0, which children inherit and may raise again. */
export function forbidDumps(): void {
  const { prctl, prlimit } = libc();
  prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n);
  const limit = new BigUint64Array(2);
  if (prlimit(0, RLIMIT_CORE, null, ptr(limit)) !== 0) return;
  limit[0] = 0n;
  prlimit(0, RLIMIT_CORE, ptr(limit), null);
}

/** Bytes of this process's memory as they are, to be read and written; they have to stay there for as long as somebody does. */
export function memory(address: number, length: number): Buffer {
  return Buffer.from(toArrayBuffer(address as Pointer, 0, length));
}

/** The pages of a range are given back, `madvise(2)` with MADV_DONTNEED: what is a file's is read from it again, all else would be lost. */
export function giveBack(start: bigint, end: bigint): void {
  libc().madvise(start, end - start, MADV_DONTNEED);
}

/** The session of a process, whoever owns it, or undefined where there is no such process: `getsid(2)`. */
export function sessionOf(pid: number): number | undefined {
  const session = libc().getsid(pid);
  return session < 0 ? undefined : session;
}

/**
 * Takes the record lock of a whole file that is open for writing, `fcntl(2)`, for this process. False where another one has it.
 * It is gone with the process, and as soon as this process closes any descriptor of the file; children do not inherit it.
 */
export function tryLock(fd: number): boolean {
  return fcntl(fd, F_SETLK).status === 0;
}

/** The process whose lock keeps this one from having it: 0 where it has no pid here, undefined where there is none. */
export function lockOwner(fd: number): number | undefined {
  const { status, lock } = fcntl(fd, F_GETLK);
  if (status !== 0 || lock.getInt16(0, true) === F_UNLCK) return undefined;
  return Math.max(0, lock.getInt32(pidAt, true));
}

function fcntl(fd: number, command: number): { status: number; lock: DataView<ArrayBuffer> } {
  const lock = new DataView(new ArrayBuffer(flockBytes));
  lock.setInt16(0, F_WRLCK, true);
  return { status: libc().fcntl(fd, command, ptr(lock.buffer)), lock };
}

/** `syscall(2)` with three numbers; -1 stands for any error. */
export function systemCall(number: number, ...[a, b, c]: [number, number, number]): number {
  return Number(libc().syscall(number, BigInt(a), BigInt(b), BigInt(c)));
}

/**
 * `execve(2)`: this process, whatever its threads do, becomes the program. Returns if that failed, and not why: by then another thread
 * may have changed errno.
 * @param env `NAME=VALUE` each
 */
export function execve(path: string, argv: readonly string[], env: readonly string[]): void {
  const program = strings([path]);
  const words = strings(argv);
  const variables = strings(env);
  libc().execve(Number(program.table[0]) as Pointer, ptr(words.table), ptr(variables.table));
}

/** C strings and a table of their addresses that ends with a null pointer. */
function strings(texts: readonly string[]): { bytes: Buffer; table: BigUint64Array } {
  const bytes = Buffer.from(texts.map((text) => `${text}\0`).join("") || "\0");
  const start = BigInt(ptr(bytes));
  let at = 0;
  const addresses = texts.map((text) => {
    const address = start + BigInt(at);
    at += Buffer.byteLength(text) + 1;
    return address;
  });
  return { bytes, table: BigUint64Array.of(...addresses, 0n) };
}
