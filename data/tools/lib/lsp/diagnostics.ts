/** What a language server has said of its own accord about the files, and waiting until it has. */
import type { Diagnostic } from "./protocol.ts";

/** Milliseconds after which a server that says which version it means has said all, and one that does not. */
const quiet = { versioned: 250, unversioned: 700 };

export interface Published {
  items: Diagnostic[];
  version?: number;
  /** Counts what was published, for all files together. */
  order: number;
  /** Milliseconds since 1970. */
  at: number;
}

export class Diagnostics {
  /** Number of the last one that came. */
  order = 0;
  private readonly byPath = new Map<string, Published>();
  private readonly waiting = new Set<() => void>();

  publish(path: string, items: Diagnostic[], version?: number): void {
    this.order++;
    this.byPath.set(path, { items, version, order: this.order, at: Date.now() });
    for (const look of this.waiting) look();
  }

  get(path: string): Published | undefined {
    return this.byPath.get(path);
  }

  /**
   * Resolves to what holds for this version of a file, once nothing more has come for a while; to undefined if nothing came in time.
   * @param since what was published up to then is of earlier versions, unless it says another
   */
  async settled(
    path: string,
    version: number,
    since: number,
    limit: number,
    signal: AbortSignal,
  ): Promise<Published | undefined> {
    const asked = Date.now();
    for (const end = asked + limit; !signal.aborted; ) {
      const last = this.byPath.get(path);
      const fits = last && (last.version === undefined ? last.order > since : last.version >= version);
      const due = fits ? quietFrom(last, asked) : end;
      const left = Math.min(due, end) - Date.now();
      if (left <= 0) return fits ? last : undefined;
      await this.next(left);
    }
    return undefined;
  }

  /** Resolves when something is published, at the latest after so many milliseconds. */
  private async next(limit: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, limit);
    this.waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.waiting.delete(resolve);
  }
}

/** When it counts as the last word. */
function quietFrom({ version, at }: Published, asked: number): number {
  return version === undefined ? Math.max(at, asked) + quiet.unversioned : at + quiet.versioned;
}
