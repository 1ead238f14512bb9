/** The one call of libc that Bun has no word for. Loaded at the first use: it costs 1 ms and 1 MB. */
import { dlopen, ptr } from "bun:ffi";
import { Fault } from "../fault.ts";

const O_CLOEXEC = 0o2000000;
/** glibc, then musl under the names its linker gives it. */
const names = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1", "libc.so"];

function load() {
  let reason: unknown;
  for (const name of names) {
    try {
      return dlopen(name, { pipe2: { args: ["ptr", "i32"], returns: "i32" } }).symbols;
    } catch (error) {
      reason = error;
    }
  }
  throw new Fault("unavailable", `no C library found (tried ${names.join(", ")})`, { cause: reason });
}

let symbols: ReturnType<typeof load> | undefined;

/**
 * `pipe(2)`, both ends close-on-exec. Bun.spawn's own "pipe" is a socket pair, and opening `/dev/stdout` on a socket fails with
 * ENXIO, so that `tee /dev/stderr` or `curl -o /dev/stdout` would not work in a tool.
 */
export function pipe(): { read: number; write: number } {
  symbols ??= load();
  const ends = new Int32Array(2);
  if (symbols.pipe2(ptr(ends), O_CLOEXEC) !== 0)
    throw new Fault("io", "no pipe for a program's output: too many open files");
  return { read: ends[0]!, write: ends[1]! };
}
