/** `plan`: a text file. What one open file writes becomes the plan when it is clunked, at once and as a whole. */
import { Fault } from "../fault.ts";
import { type CloseReason, type Maybe, type OpenFile, OTRUNC } from "../ninep/file.ts";
import type { LiveSession } from "../session/live.ts";
import { Serial } from "../store/serial.ts";
import type { Site } from "./context.ts";
import type { Content } from "./files.ts";
import { both, bytes } from "./reading.ts";
import { Spool } from "./spool.ts";

/** Bytes. */
const maxPlan = 16 << 20;

const writer: Content<LiveSession> = {
  look: () => ({ length: 0, print: () => 0 }),
  open: (site, mode, { peer }) => site.context.plans.open(site, mode, peer.connection),
  resize: ({ target, context }, length, { peer }) => context.plans.resize(target, length, peer.connection),
};

export const plan: Content<LiveSession> = both(
  bytes((session) => session.plan()),
  writer,
);

/** Who is writing which plan. */
export class Plans {
  readonly #desks = new WeakMap<LiveSession, Desk>();

  open(site: Site<LiveSession>, mode: number, connection: number): PlanWriter {
    const desk = this.#desk(site.target);
    const writer = new PlanWriter(site, desk, connection);
    if (mode & OTRUNC) writer.resize(0);
    desk.writers.add(writer);
    return writer;
  }

  /**
   * A mount that truncates sends the length by path, after the open and before the first write. It means the file opened last, whose
   * text is still to come; only without one is the plan itself cut.
   */
  async resize(session: LiveSession, length: number, connection: number): Promise<void> {
    const desk = this.#desk(session);
    const last = [...desk.writers].findLast((writer) => writer.connection === connection);
    if (last) return last.resize(length);
    await desk.change(async (plan) => {
      if (length > plan.length) throw new TooLong(length, plan.length);
      return length < plan.length ? plan.slice(0, length) : undefined;
    });
  }

  #desk(session: LiveSession): Desk {
    let desk = this.#desks.get(session);
    if (!desk) {
      desk = new Desk(session);
      this.#desks.set(session, desk);
    }
    return desk;
  }
}

/** Milliseconds for which a mount may believe a length that it was told: the attribute cache of plan9port's 9pfuse. */
const believed = 1000;

/** A moment in the life of a plan. */
interface Moment {
  /** How often the plan had changed. */
  changes: number;
  /** Milliseconds since 1970. */
  time: number;
}

/** The writers of one session's plan, and the order in which they commit. */
class Desk {
  /** In the order of their opens. */
  readonly writers = new Set<PlanWriter>();
  readonly #serial = new Serial();
  #changes = 0;
  /** Lengths that the plan had, and when it last had them. */
  readonly #past = new Map<number, Moment>();

  constructor(private readonly session: LiveSession) {}

  now(): Moment {
    return { changes: this.#changes, time: Date.now() };
  }

  /** Puts in place what `make` makes of the plan, if anything. */
  change(make: (plan: Uint8Array) => Maybe<Uint8Array | undefined>): Promise<void> {
    return this.#serial.run(async () => {
      const plan = this.session.plan();
      const text = await make(plan);
      if (!text) return;
      // The plan changes somewhere within the wait: whoever asks during it may be told the one length or the other.
      this.#past.set(plan.length, this.now());
      await this.session.writePlan(text);
      this.#changes++;
      this.#forget();
    });
  }

  /**
   * Whether somebody who opened the plan then may take `offset` for its end. Who appends asks for the length and writes there; what
   * others have added meanwhile must not be written over. (At 0 a stale length would look like a text that is written anew.)
   */
  mayBeEnd(offset: number, opened: Moment): boolean {
    if (offset === this.session.plan().length) return true;
    const past = this.#past.get(offset);
    if (!past) return false;
    return past.changes >= opened.changes || (offset > 0 && past.time >= opened.time - believed);
  }

  #forget(): void {
    const oldest = Math.min(Date.now(), ...[...this.writers].map((writer) => writer.opened.time)) - believed;
    for (const [length, { time }] of this.#past) if (time < oldest) this.#past.delete(length);
  }
}

class PlanWriter implements OpenFile {
  readonly opened: Moment;
  #spool?: Spool;
  /** Offset of the spool's first byte in the plan: 0 when it holds the whole text. */
  #base = 0;
  #whole = false;
  /** Set once a part was refused: what is left must not replace the plan. */
  #refused = false;

  constructor(
    private readonly site: Site<LiveSession>,
    private readonly desk: Desk,
    readonly connection: number,
  ) {
    this.opened = desk.now();
  }

  write(offset: number, data: Uint8Array): number {
    return this.#orRefuse(() => {
      const spool = this.#startAt(offset);
      const at = offset - this.#base;
      if (at > spool.length) throw new TooLong(offset, this.#base + spool.length);
      if (offset + data.length > maxPlan) throw new Fault("invalid", `a plan of more than ${maxPlan} bytes`);
      spool.write(at, data);
      return data.length;
    });
  }

  resize(length: number): void {
    this.#orRefuse(() => {
      const spool = length === 0 ? this.#emptyText() : this.#wholeText();
      if (length > spool.length) throw new TooLong(length, spool.length);
      spool.truncate(length);
    });
  }

  async close(reason: CloseReason): Promise<void> {
    this.desk.writers.delete(this);
    const spool = this.#spool;
    if (!spool) return;
    try {
      if (reason === "clunk")
        await this.desk.change((plan) => {
          this.site.alive();
          return this.#whole ? spool.read() : Buffer.concat([plan, spool.read()]);
        });
    } finally {
      spool.close();
    }
  }

  /** Decides with the first write whether this is an addition or a change, and turns the one into the other where it must. */
  #startAt(offset: number): Spool {
    if (!this.#spool && this.desk.mayBeEnd(offset, this.opened)) {
      this.#base = offset;
      this.#spool = new Spool(this.site.context.spoolDir);
    }
    return this.#spool && offset >= this.#base ? this.#spool : this.#wholeText();
  }

  #emptyText(): Spool {
    this.#spool ??= new Spool(this.site.context.spoolDir);
    this.#spool.truncate(0);
    this.#base = 0;
    this.#whole = true;
    return this.#spool;
  }

  #wholeText(): Spool {
    if (this.#spool && this.#whole) return this.#spool;
    const added = this.#spool?.read() ?? new Uint8Array(0);
    const plan = this.site.target.plan();
    const spool = this.#emptyText();
    spool.write(0, plan);
    spool.write(plan.length, added);
    return spool;
  }

  #orRefuse<T>(change: () => T): T {
    if (this.#refused)
      throw new Fault("invalid", "an earlier part of this text was refused; open plan again");
    try {
      return change();
    } catch (error) {
      this.#refused = true;
      this.#spool?.close();
      this.#spool = undefined;
      throw error;
    }
  }
}

class TooLong extends Fault {
  constructor(offset: number, length: number) {
    super("invalid", `${offset} is past the end of plan, which has ${length} bytes`);
  }
}
