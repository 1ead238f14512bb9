/** Waits: what must come true is waited for, never slept for. */

/** Milliseconds. */
const limit = 20_000;

/** Calls `look` until what it returns is not undefined, false, null or "". @throws Error if that never happens */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (const end = Date.now() + limit; Date.now() < end; await Bun.sleep(10)) {
    const seen = await look();
    if (seen) return seen;
  }
  throw new Error(`never happened: ${what}`);
}
