/**
 * The three standard streams, as plain as read(2) and write(2): a write has reached the kernel when it resolves, so that a slow
 * reader slows the writer down, and a read takes no more than one system call gives.
 */
import { read, readFileSync, write } from "node:fs";
import { isatty } from "node:tty";
import { Fault } from "../fault.ts";

/** Nobody reads the output any more. */
export class BrokenPipe extends Error {
  override readonly name = "BrokenPipe";
}

/**
 * Bun opens /dev/null in place of a standard stream that was closed when the program began. Only that one is closed at the next exec: a
 * stream that was inherited cannot be.
 */
function closedAtStart(fd: 0 | 1): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & closeOnExec) !== 0;
  } catch {
    return false;
  }
}

/** O_CLOEXEC of open(2). */
const closeOnExec = 0o2000000;

const closed: [boolean, boolean] = [closedAtStart(0), closedAtStart(1)];

/** Whether a person sees what is written. */
export function toTerminal(): boolean {
  return isatty(1);
}

/** Whether stdout is a terminal that wants colours; see no-color.org. */
export function colours(): boolean {
  return toTerminal() && !process.env.NO_COLOR && process.env.TERM !== "dumb";
}

/** Writes everything to stdout. @throws BrokenPipe, or a Fault where the system refuses it */
export async function writeOut(data: string | Uint8Array): Promise<void> {
  if (closed[1]) throw new Fault("io", "stdout is closed");
  await writeAll(1, data).catch((error) => {
    if (error instanceof BrokenPipe) throw error;
    throw new Fault("io", `stdout cannot be written: ${words(error)}`, { cause: error });
  });
}

/** Writes to stderr; that it cannot be written is nobody's error. */
export async function writeError(text: string): Promise<void> {
  await writeAll(2, text).catch(() => {});
}

/** One read of stdin; undefined at its end. The bytes are the caller's. Rejects when `signal` is aborted, whatever stdin does. */
export async function readIn(signal?: AbortSignal, size = 65536): Promise<Uint8Array | undefined> {
  if (closed[0]) throw new Fault("io", "stdin is closed");
  const buffer = new Uint8Array(size);
  for (;;) {
    signal?.throwIfAborted();
    let abort = () => {};
    const count = await new Promise<number>((resolve, reject) => {
      abort = () => reject(signal!.reason);
      signal?.addEventListener("abort", abort);
      read(0, buffer, 0, size, null, (error, n) => (error ? reject(error) : resolve(n)));
    })
      .catch(waitIfBusy)
      .finally(() => signal?.removeEventListener("abort", abort));
    if (count !== undefined) return count === 0 ? undefined : buffer.subarray(0, count);
  }
}

async function writeAll(fd: number, data: string | Uint8Array): Promise<void> {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  let done = 0;
  while (done < bytes.length) {
    const count = await new Promise<number>((resolve, reject) => {
      write(fd, bytes, done, bytes.length - done, null, (error, n) => (error ? reject(error) : resolve(n)));
    }).catch(waitIfBusy);
    done += count ?? 0;
  }
}

/** Another process may have made a shared terminal or pipe non-blocking: then EAGAIN means "later". */
async function waitIfBusy(error: NodeJS.ErrnoException): Promise<undefined> {
  if (error.code === "EPIPE") throw new BrokenPipe();
  if (error.code !== "EAGAIN") throw error;
  await Bun.sleep(5);
}

/** `ENOSPC: no space left on device, write` without the names that only a programmer wants. */
function words({ message }: Error): string {
  return message.replace(/^E[A-Z]+: /, "").replace(/, (read|write)$/, "");
}
