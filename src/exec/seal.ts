/**
 * Keeps what this process knows from other processes of the same user: without this, any of them reads a key that was handed over in
 * the environment from `/proc/PID/environ`, or from memory with `ptrace(2)`.
 */
import { forbidDumps, memory } from "./libc.ts";
import { statOf } from "./proc.ts";

/**
 * Overwrites the values of variables in the block that the kernel shows as `/proc/PID/environ`. Whoever wants to know a value must
 * have read it before. Without effect where the system does not tell where the block is.
 */
export function eraseVariables(secret: (name: string) => boolean): void {
  const block = environmentBlock();
  for (let at = 0; at < block.length; ) {
    const end = block.indexOf(0, at);
    const next = end < 0 ? block.length : end;
    const equals = block.indexOf("=", at);
    if (equals >= 0 && equals < next && secret(block.toString("latin1", at, equals)))
      block.fill(0, equals + 1, next);
    at = next + 1;
  }
}

/**
 * From now on no other process but root's can read this process's memory or environment or trace it, and it leaves no core file.
 * Children are not affected. This process itself loses `/proc/self/environ`, `mem` and `auxv`.
 */
export function seal(): void {
  forbidDumps();
}

function environmentBlock(): Buffer {
  const [start, end] = statOf("self")!.environment;
  return start > 0 && end > start ? memory(start, end - start) : Buffer.alloc(0);
}
