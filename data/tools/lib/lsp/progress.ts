/** What a language server says it is busy with, such as the index that its answers depend on. */
interface Report {
  kind: "begin" | "report" | "end";
  title?: string;
  message?: string;
  percentage?: number;
}

/** Milliseconds in which a server begins what it begins at once, and what it has announced. Some announce what they never begin. */
const settling = 300;
const announced = 1000;
/** Milliseconds between two looks. */
const pause = 50;

export class Progress {
  private readonly running = new Map<string | number, Report>();
  /** Until when something is expected, in milliseconds since 1970. */
  private expected = 0;
  /** It has been idle once: what it does at its start is done. */
  private settled = false;

  /** The server has been told to begin. */
  begin(): void {
    this.expected = Date.now() + settling;
  }

  announce(): void {
    this.expected = Date.now() + announced;
  }

  hear(token: string | number, report: Report): void {
    this.expected = 0;
    if (report.kind === "end") this.running.delete(token);
    else this.running.set(token, { ...this.running.get(token), ...report });
  }

  /** Waits until what it does at its start is done, at most so many milliseconds. */
  async start(limit: number, signal: AbortSignal): Promise<void> {
    if (!this.settled) await this.idle(limit, signal);
  }

  /** Waits until it is busy with nothing, at most so many milliseconds. */
  async idle(limit: number, signal: AbortSignal): Promise<void> {
    for (const end = Date.now() + limit; !signal.aborted && Date.now() < end; await Bun.sleep(pause)) {
      if (this.running.size > 0 || Date.now() < this.expected) continue;
      this.settled = true;
      return;
    }
  }

  /** In words, or undefined where it is busy with nothing. */
  describe(): string | undefined {
    const [first] = this.running.values();
    if (!first) return undefined;
    const percentage = first.percentage === undefined ? "" : `${Math.round(first.percentage)}%`;
    return [first.title, first.message, percentage].filter(Boolean).join(", ") || "something";
  }
}
