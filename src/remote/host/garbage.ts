/** Keeps a process small through which much passes, and which waits for most of its life. */
import { readFileSync } from "node:fs";
import { giveBack } from "../../exec/libc.ts";

/** Bytes that have passed after which what is left of them is collected. */
const share = 4 * 1024 * 1024;
/** Bytes that have to pass until a rest is worth it: some questions whether this process is still there are not. */
const little = 2048;

let passed = 0;
let sinceRest = little;

/**
 * To be told of all bytes that pass. The engine sees only the small objects in front of such buffers, and would let hundreds of megabytes of them
 * lie before it looks: a collection now costs some milliseconds, since nothing else here is large.
 */
export function passes(bytes: number): void {
  passed += bytes;
  sinceRest += bytes;
  if (passed < share) return;
  passed = 0;
  Bun.gc(true);
}

/** For when nothing is to be done for now: gives back what was needed to start, or for what has been done. */
export function rest(): void {
  if (sinceRest < little) return;
  sinceRest = 0;
  Bun.gc(true);
  for (const { start, end } of code()) giveBack(start, end);
}

/** Where programs and libraries are mapped to be run (proc_pid_maps(5)). Nobody writes there: what is needed again is the file's. */
function code(): { start: bigint; end: bigint }[] {
  const lines = readFileSync("/proc/self/maps", "latin1").matchAll(
    /^([0-9a-f]+)-([0-9a-f]+) r-xp [0-9a-f]+ \S+ [1-9]\d* /gm,
  );
  return [...lines].map(([, start, end]) => ({ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }));
}
