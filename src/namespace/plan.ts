/** `plan`: a text file. What one open file writes becomes the plan when it is clunked, at once and as a whole. */
import { Fault } from "../fault.ts";
import { type CloseReason, type OpenFile, OTRUNC } from "../ninep/file.ts";
import type { LiveSession } from "../session/live.ts";
import type { Site } from "./context.ts";
import type { Content } from "./files.ts";
import { both, bytes } from "./reading.ts";
import { Serial } from "./serial.ts";
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
    const { writers, serial } = this.#desk(session);
    const last = [...writers].findLast((writer) => writer.connection === connection);
    if (last) return last.resize(length);
    await serial.run(async () => {
      const plan = session.plan();
      if (length > plan.length) throw new TooLong(length, plan.length);
      if (length < plan.length) await session.writePlan(plan.slice(0, length));
    });
  }

  #desk(session: LiveSession): Desk {
    let desk = this.#desks.get(session);
    if (!desk) {
      desk = { writers: new Set(), serial: new Serial() };
      this.#desks.set(session, desk);
    }
    return desk;
  }
}

/** Who writes one session's plan, in the order of their opens, and the order in which they commit. */
interface Desk {
  writers: Set<PlanWriter>;
  serial: Serial;
}

class PlanWriter implements OpenFile {
  /** Length at the open: a write there appends, whatever others have added in the meantime. */
  readonly #end: number;
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
    this.#end = site.target.plan().length;
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
      if (reason === "clunk") await this.desk.serial.run(() => this.#commit(spool.read()));
    } finally {
      spool.close();
    }
  }

  async #commit(text: Uint8Array): Promise<void> {
    this.site.alive();
    const session = this.site.target;
    await session.writePlan(this.#whole ? text : Buffer.concat([session.plan(), text]));
  }

  /** Decides with the first write whether this is an addition or a change, and turns the one into the other where it must. */
  #startAt(offset: number): Spool {
    if (!this.#spool && (offset === this.#end || offset === this.site.target.plan().length)) {
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
