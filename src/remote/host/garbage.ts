/** Keeps a process small through which much passes. */

/** Bytes that have passed after which what is left of them is collected. */
const share = 8 * 1024 * 1024;

let passed = 0;

/**
 * To be told of all bytes that pass. The engine sees only the small objects in front of such buffers, and would let hundreds of megabytes of them
 * lie before it looks: a collection now costs some milliseconds, since nothing else here is large.
 */
export function passes(bytes: number): void {
  passed += bytes;
  if (passed < share) return;
  passed = 0;
  Bun.gc(true);
}
