/** What the journal of a session says of its operations. */
import type { Supervisor } from "../../../exec/job/supervisor-process.ts";
import type { OpReport, OpStatus } from "../../protocol/operation.ts";

export interface Accepted {
  t: "accepted";
  opId: string;
  hash: string;
  at: number;
  title: string;
  detach: boolean;
  /** Seconds from `at` on, of what is detached. */
  timeout?: number;
}

export interface Started {
  t: "started";
  opId: string;
  at: number;
  /** Of a program that outlives the daemon: who supervises it. */
  supervisor?: Supervisor;
}

export interface Ended {
  t: "ended";
  opId: string;
  at: number;
  status: OpStatus;
  code?: number;
  signal?: string;
  outcome?: OpReport["outcome"];
  /** Why it was not run, or what else there is to say of steps. */
  remark?: string;
  /** Bytes of each stream. */
  streams: Record<string, number>;
}

export type JournalRecord = Accepted | Started | Ended;

/** One operation as its records tell it. */
export interface History {
  accepted: Accepted;
  started?: Started;
  ended?: Ended;
}

/** By id, in the order in which they were accepted. */
export function histories(records: readonly JournalRecord[]): Map<string, History> {
  const found = new Map<string, History>();
  for (const record of records) {
    const known = found.get(record.opId);
    if (record.t === "accepted") {
      if (!known) found.set(record.opId, { accepted: record });
    } else if (known && record.t === "started") known.started = record;
    else if (known && record.t === "ended") known.ended ??= record;
  }
  return found;
}

export function recordsOf({ accepted, started, ended }: History): JournalRecord[] {
  return [accepted, ...(started ? [started] : []), ...(ended ? [ended] : [])];
}
