/** A background job that a test moves by hand. */
import { Fault } from "../../src/fault.ts";
import type { LiveJob, Stamp, Topic } from "../../src/session/live.ts";
import type { TextLog } from "../../src/store/text-log.ts";
import type { FakeSession } from "./fake.ts";
import { FakeLog, nextQid, Stamps, started } from "./fake-parts.ts";

export class FakeJob implements LiveJob {
  readonly qid = nextQid();
  readonly created = started;
  readonly #stamps = new Stamps();
  readonly #listeners = new Set<() => void>();
  out: TextLog = new FakeLog();
  removed = false;
  state = "running";
  changes = 0;
  readonly told: string[] = [];

  constructor(
    readonly session: FakeSession,
    readonly id: string,
  ) {}

  get ended(): boolean {
    return this.state !== "running";
  }

  stamp(topic: Topic): Stamp {
    return this.#stamps.stamp(topic);
  }

  become(state: string): void {
    this.state = state;
    this.changes++;
    this.#stamps.touch("state");
    this.#notify();
  }

  get watchers(): number {
    return this.#listeners.size;
  }

  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  cmd(): string {
    return "shell: sleep 100";
  }

  exit(): string {
    return this.ended ? "0" : "";
  }

  checkCtl(line: string): void {
    if (line !== "kill") throw new Fault("invalid", `unknown verb ${line}; there are kill signal`);
  }

  async ctl(line: string): Promise<void> {
    this.told.push(line);
  }

  async remove(): Promise<void> {
    this.removed = true;
    this.session.jobList = this.session.jobList.filter((job) => job !== this);
    this.session.touch("jobs");
    this.#notify();
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
